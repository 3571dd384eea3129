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

from typing import TYPE_CHECKING, Any

from wengert.scipy._continuous import CONTINUOUS
from wengert.scipy._discrete import DISCRETE
from wengert.scipy._multivariate import MULTIVARIATE
from wengert.scipy._samples import SAMPLES
from wengert.support.hints import names_on_demand

_EXPORTED: dict[str, Any] = {**CONTINUOUS, **DISCRETE, **MULTIVARIATE, **SAMPLES}
__all__ = sorted(_EXPORTED)
globals().update(_EXPORTED)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = names_on_demand("wengert.scipy.stats")


def __dir__() -> list[str]:
    return __all__
