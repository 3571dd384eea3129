"""SciPy's distributions for Tensors: `wengert.scipy.stats`.

Each has SciPy's parameters, and of its methods those for which there are formulas, which return Tensors: `logpdf` and
`pdf`, or for whole numbers `logpmf` and `pmf`; `logcdf`, `cdf`, `sf`, `logsf`, `ppf`, `isf`, `entropy`, `mean`, `var`,
`std`. `rvs` takes a key of `wengert.random`, and its numbers are differentiable in the parameters.
`zscore` and `entropy` are functions, of samples and of probabilities.

>>> import wengert as wg
>>> from wengert.scipy import stats
>>> wg.grad(stats.norm.logpdf, argnums=(0, 1))(1.0, 0.5)
(-0.5, 0.5)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special as sp

from wengert.core.diagnostics.argument_checks import require_real
from wengert.core.values.dispatch import as_tensor
from wengert.errors import UsageError
from wengert.scipy._distributions import numbers
from wengert.scipy._multivariate import MULTIVARIATE
from wengert.scipy._piecewise import propagate_nan
from wengert.scipy._univariate import CONTINUOUS, DISCRETE
from wengert.support.hints import names_on_demand


def require_propagated(name: str, nan_policy: str) -> None:
    """Raise a UsageError unless NaN is to be treated as any number."""
    if nan_policy != "propagate":
        given, needed = f"nan_policy={nan_policy!r}", "'propagate' is needed"
        raise UsageError(name, given, needed, "Leave NaN out first, with numpy.where or by indexing")


def zscore(a: Any, axis: Any = 0, ddof: float = 0, nan_policy: str = "propagate") -> Any:
    """Return by how many standard deviations each number differs from the mean; NaN where all are equal."""
    require_propagated("zscore", nan_policy)
    a = as_tensor(a)
    require_real("zscore", "a", a.dtype)
    a = a if a.dtype.kind == "f" else a.astype(float)
    mean = np.mean(a, axis=axis, keepdims=True)
    spread = np.std(a, axis=axis, ddof=ddof, keepdims=True)
    equal = spread <= np.abs(np.finfo(a.dtype).eps * mean)
    return as_tensor(np.where(equal, propagate_nan(a), (a - mean) / np.where(equal, 1.0, spread)))


def entropy(
    pk: Any,
    qk: Any = None,
    base: float | None = None,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Return the entropy of probabilities, or that relative to others; both are divided by their sums.

    Raises:
        UsageError: the base is not positive, or NaN is to be left out.
    """
    require_propagated("entropy", nan_policy)
    if base is not None and base <= 0:
        raise UsageError("entropy", f"base={base!r}", "a positive number is needed", "Pass 2 for bits")
    given = numbers("entropy", pk) if qk is None else np.broadcast_arrays(*numbers("entropy", pk, qk))
    shares = [x / np.sum(x, axis=axis, keepdims=True) for x in given]
    found = np.sum((sp.entr if qk is None else sp.rel_entr)(*shares), axis=axis, keepdims=keepdims)
    return as_tensor(found if base is None else found / math.log(base))


_EXPORTED: dict[str, Any] = {**CONTINUOUS, **DISCRETE, **MULTIVARIATE}
__all__ = sorted([*_EXPORTED, "entropy", "zscore"])
globals().update(_EXPORTED)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = names_on_demand("wengert.scipy.stats")


def __dir__() -> list[str]:
    return __all__
