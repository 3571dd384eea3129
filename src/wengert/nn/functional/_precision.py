"""Half precision: what sums computes in single precision, and returns halves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from wengert.primitives.half_precision import HALF, SINGLE, widened

F = TypeVar("F", bound=Callable[..., Any])


def in_single(function: F) -> F:
    """Return a function that computes with arrays of half precision in single precision, and returns half precision.

    >>> import numpy as np
    >>> in_single(lambda x: (x * x).sum() / x.size)(np.full(70_000, 2.0, np.float16))
    np.float16(4.0)
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        dtypes = [getattr(x, "dtype", None) for x in (*args, *kwargs.values())]
        if HALF not in dtypes:
            return function(*args, **kwargs)
        found = function(*map(widened, args), **{name: widened(x) for name, x in kwargs.items()})
        return found.astype(HALF) if found.dtype == SINGLE and SINGLE not in dtypes else found

    return call  # type: ignore[return-value]  # it has the type of the function
