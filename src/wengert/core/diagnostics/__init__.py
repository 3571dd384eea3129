"""Diagnostics: the lines that errors name, what arguments have to be, and what to write instead."""
