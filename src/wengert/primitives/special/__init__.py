"""SciPy's special functions as primitives, a module a family; loaded when SciPy's functions are first asked for.

Values are SciPy's own. Each partial is a product, a quotient or a sum of terms of one sign as far as the function
allows, so that tails keep their digits; where SciPy has no function for it, the derivatives are primitives with their
order as a parameter.
"""

from wengert.primitives.special import (  # noqa: F401 - they declare their primitives
    bessel,
    distribution,
    elementary,
    error,
    gamma,
    hypergeometric,
    incomplete,
    integrals,
    quantiles,
    quotients,
    sums,
    zeta,
)
