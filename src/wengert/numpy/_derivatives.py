"""What docstrings of public functions say of derivatives: by which parameters there are some, and what a kink gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.opaque_kinds import Constant
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.numpy_overrides import DIFFERENTIABLE_BY, NOTHING

TIES = "Elements that tie share the derivative equally."
AT_ZERO = "At 0 the derivative is 0."
CHOSEN = "What is not chosen gets nothing, not even a NaN."
TRIANGLE = "One triangle is read; the other one gets 0."
REPEATED = "Where {} repeat, the derivative is right, or a LinAlgError."
KINKS = {
    **{primitive.name: primitive.kink for primitive in PRIMITIVES.values() if primitive.kink},
    **dict.fromkeys(("abs", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm"), AT_ZERO),
    **dict.fromkeys(("amax", "amin", "max", "min", "nanmax", "nanmin", "ptp", "median", "nanmedian"), TIES),
    **dict.fromkeys(("nanpercentile", "nanquantile", "percentile", "quantile"), TIES),
    **dict.fromkeys(("where", "select", "choose"), CHOSEN),
    **dict.fromkeys(("std", "nanstd"), "Where all elements are equal, the derivative is 0."),
    **dict.fromkeys(("mod", "divmod"), "At a jump the derivative is that beside it."),
    "interp": "At points of `xp` the derivative is that of the line to the right.",
    **dict.fromkeys(("unique", "unique_all", "unique_values"), "Of equal elements the first gets it."),
    **dict.fromkeys(("linalg.cholesky", "linalg.eigvalsh"), TRIANGLE),
    "linalg.eigh": f"{TRIANGLE} {REPEATED.format('eigenvalues')}",
    "linalg.eig": REPEATED.format("eigenvalues"),
    "linalg.svd": f"{REPEATED.format('singular values')} Vectors of singular values of 0 have none.",
    "linalg.svdvals": "Singular values of 0 get 0.",
    **dict.fromkeys(("linalg.pinv", "linalg.lstsq"), "The rank counts as constant."),
}
"""What derivatives are where there is none, or more than one to choose from."""

INFINITE = "Where the derivative is infinite, values on which nothing depends get 0, not NaN."


def describe_derivatives(module: Any, name: str, function: Any, docstring: str) -> str:
    """Return the docstring of a public function, with a paragraph about its derivatives after the summary.

    Of a ufunc NumPy's summary stands in place of its docstring.

    >>> print(describe_derivatives(np, "absolute", np.absolute, ""))
    Calculate the absolute value element-wise; see `numpy.absolute`.
    <BLANKLINE>
    Differentiable by `x`. At 0 the derivative is 0.
    """
    known = name if module is np else f"{module.__name__.rpartition('.')[2]}.{name}"
    text = ufunc_summary(function) if isinstance(function, np.ufunc) else inspect.cleandoc(docstring)
    summary, _, rest = text.partition("\n\n")
    return "\n\n".join(part for part in (summary, derivative_statement(known, function), rest) if part)


def ufunc_summary(ufunc: np.ufunc) -> str:
    """Return the summary of a ufunc in NumPy's docstring."""
    _, _, text = (ufunc.__doc__ or "").partition("\n\n")
    summary, _, _ = text.strip().partition("\n\n")
    return f"{' '.join(summary.split()).rstrip('.')}; see `numpy.{ufunc.__name__}`."


def derivative_statement(name: str, function: Any) -> str:
    """Return the sentences about derivatives of a function: the parameters that have some, and their value at kinks."""
    if DIFFERENTIABLE_BY.get(function) == NOTHING:
        return "There is nothing to differentiate."
    primitive = PRIMITIVES.get(function.__name__)
    names = differentiable_parameters(function)
    where = [f"Differentiable by {join_names(names)}."] if names else ["Its derivative is zero."]
    if name in KINKS:
        where.append(KINKS[name])
    if names and isinstance(primitive, Elementwise) and primitive.singular:
        where.append(INFINITE)
    return " ".join(where)


def differentiable_parameters(function: Any) -> list[str]:
    """Return the names of the parameters that a function has derivatives by."""
    if function in DIFFERENTIABLE_BY:
        return DIFFERENTIABLE_BY[function].split()
    primitive = PRIMITIVES.get(function.__name__)
    if isinstance(primitive, Constant):
        return []
    operands = list(inspect.signature(function).parameters)
    if not isinstance(function, np.ufunc):
        return operands[:1]
    rules = primitive.rules if isinstance(primitive, Elementwise) else [True] * function.nin
    return [operand for operand, rule in zip(operands, rules, strict=False) if rule is not None]


def join_names(names: Sequence[str]) -> str:
    """Return names as code, as a sentence has them."""
    *others, last = [f"`{name}`" for name in names]
    return f"{', '.join(others)} and {last}" if others else last
