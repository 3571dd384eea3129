"""Primitives: what all of them have, by the kind of their Jacobian, and how they are declared."""
