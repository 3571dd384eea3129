"""Quadratic programs: solved in full, sparse, traced and in lanes, and differentiated by their conditions."""
