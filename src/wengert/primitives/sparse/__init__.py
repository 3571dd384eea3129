"""Sparse matrices: where their elements stand in memory, and the operations that read or give them."""
