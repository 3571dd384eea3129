"""Sparse derivatives: Jacobians and Hessians that know which of their elements may be other than zero."""

__all__: list[str] = []
