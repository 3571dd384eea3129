"""Routines of linear algebra and searches as code of programs: small, banded, sparse, in lanes, by address."""
