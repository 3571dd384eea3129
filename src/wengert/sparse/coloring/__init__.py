"""Colourings: which columns and rows of a pattern share a product, and how their elements are told apart."""
