"""Memory: which buffers are shared, how they lie, and what is written to them."""
