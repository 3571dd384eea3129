"""Integrals of functions and of samples."""
