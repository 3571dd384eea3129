"""What SciPy's special functions mean for Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.dispatch import apply, implements
from wengert.core.tensor import FUNCTIONS, Tensor, is_concrete, raw
from wengert.numpy._ufuncs import ufunc_function
from wengert.primitives.special import gamma
from wengert.primitives.special.declaration import OF_SCIPY
from wengert.traces.operators import operand

for _ufunc, _primitive in OF_SCIPY.items():
    implements(_ufunc)(ufunc_function(_ufunc, _primitive, "scipy.special"))

zeta_of_two = FUNCTIONS[sp._ufuncs._zeta]


@implements(sp.zeta)
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Return the zeta function of Riemann, or with q of Hurwitz; see `scipy.special.zeta`."""
    return zeta_of_two(x, q, out=out)


@implements(sp.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """Return derivatives of the digamma function; see `scipy.special.polygamma`."""
    return apply(gamma.polygamma, operand("polygamma", n), operand("polygamma", x))


@implements(sp.multigammaln)
def multigammaln(a: Any, d: Any) -> Any:
    """Return the logarithm of the gamma function of d dimensions; see `scipy.special.multigammaln`."""
    if type(a) is not Tensor or is_concrete(a):
        sp.multigammaln(raw(a), d)  # which says what is wrong with them
    steps = np.stack([a - (j - 1.0) / 2 for j in range(1, d + 1)])
    return d * (d - 1) * 0.25 * np.log(np.pi) + np.sum(sp.gammaln(steps), axis=0)
