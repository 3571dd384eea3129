"""Forms: how primitives run over their elements, and what shapes, dtypes and orders results have."""
