"""Passes: from graphs to graphs of the same values, and what they share."""
