"""Linear algebra of matrices."""
