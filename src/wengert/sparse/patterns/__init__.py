"""Patterns: which elements of derivatives may be other than zero, found on the linear half of a program."""
