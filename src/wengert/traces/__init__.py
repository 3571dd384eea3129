"""Traces: the readings of an operation. The tape is reverse mode."""
