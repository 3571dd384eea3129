"""Calls of public functions as people write them, from which unusual ones are derived."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.samples.base import Fixed, normal
from tools import supported

__all__ = ["MODULES", "Usual", "usual_calls"]

NETWORKS = "wengert.nn.functional"
MODULES = (*(x for x in supported.MODULES if x.split(".")[1] in ("numpy", "scipy")), "wengert.scipy.stats", NETWORKS)
OTHERS = "tools.unusual.networks"
"""What has the functions of networks in NumPy."""
LEFT_ALONE = frozenset(
    {
        *("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"),  # they write
        *("empty_like", "from_dlpack"),
        *("fixed_quad", "quad_vec", "solve_bvp", "vectorize"),  # they take functions
    }
)
ROW, MATRIX = normal(4), normal(3, 3)
KNOTS = supported.KNOTS
CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "wengert.numpy": {
        "arange": (4,),
        **dict.fromkeys(("bartlett", "blackman", "hamming", "hanning", "eye", "identity", "tri"), (4,)),
        **dict.fromkeys(("empty_like", "ones_like", "zeros_like", "ndim", "shape", "size"), (ROW,)),
        **dict.fromkeys(("ones", "zeros", "indices"), ((2, 3),)),
        **dict.fromkeys(("tril_indices", "triu_indices", "diag_indices"), (4,)),
        **dict.fromkeys(("tril_indices_from", "triu_indices_from", "diag_indices_from"), (MATRIX,)),
        **dict.fromkeys(("iscomplexobj", "isrealobj", "isscalar", "isfortran", "iterable", "min_scalar_type"), (ROW,)),
        "broadcast_shapes": ((2, 1), (3,)),
        "fromfunction": (np.add, (2, 3)),
        "result_type": (ROW, np.float32),
    },
    "wengert.scipy.linalg": {
        **dict.fromkeys(("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"), (4,)),
    },
    "wengert.scipy.interpolate": {
        **dict.fromkeys(("splder", "splantider"), ((KNOTS, np.append(normal(5), np.zeros(4)), 3),)),
        "RectBivariateSpline": (
            *(np.arange(4.0), np.arange(4.0), normal(4, 4)),
            *(np.array([0.5, 1.5]), np.array([0.7, 2.5])),
        ),
    },
    "wengert.scipy.signal": {"savgol_coeffs": (5, 2)},
    "wengert.scipy.stats": {"zscore": (ROW,), "entropy": (np.array([0.2, 0.3, 0.5]),)},
}
SHAPES: dict[str, tuple[float, ...]] = {
    "beta": (2.3, 1.7),
    "chi2": (3.4,),
    "f": (5.2, 7.1),
    "gamma": (2.6,),
    "genextreme": (0.2,),
    "t": (4.5,),
    "genpareto": (0.15,),
    "invgamma": (3.3,),
    "invgauss": (1.4,),
    "lognorm": (0.7,),
    "loguniform": (0.4, 2.9),
    "lomax": (2.4,),
    "pareto": (2.6,),
    "powerlaw": (1.7,),
    "skewnorm": (1.6,),
    "truncnorm": (-0.7, 1.9),
    "vonmises": (1.3,),
    "weibull_min": (1.8,),
    "bernoulli": (0.3,),
    "binom": (7, 0.3),
    "geom": (0.3,),
    "nbinom": (3.5, 0.4),
    "poisson": (2.7,),
    "zipf": (6.5,),
}
"""Parameters of distributions."""
METHODS = {
    "logpdf": np.array([0.45, 0.7]),
    "pdf": np.array([0.45, 0.7]),
    "cdf": np.array([0.45, 0.7]),
    "sf": np.array([0.45, 0.7]),
    "ppf": np.array([0.2, 0.9]),
    "logpmf": np.array([0.0, 1.0]),
    "pmf": np.array([0.0, 1.0]),
    "mean": None,
    "var": None,
    "entropy": None,
}
"""Methods of distributions, and what they are asked for."""


@dataclass(frozen=True)
class Usual:
    """Hold a call: a function of ours, the one it is to agree with, and arguments; how they may be given by name."""

    module: str
    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    signature: inspect.Signature | None = None
    doc: str = ""

    @property
    def label(self) -> str:
        """The name in full, without that of the library."""
        return f"{self.module.removeprefix('wengert.')}.{self.name}"

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """What the other library's function takes."""
        return [] if self.signature is None else list(self.signature.parameters.values())


def plain(value: Any) -> Any:
    """Return an argument of a sample as it is passed."""
    if isinstance(value, Fixed):
        return value.value
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)([plain(x) for x in value])
    return value


def signature_of(function: Any) -> inspect.Signature | None:
    """Return what a function takes; None where that is not known."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def arguments(module: str, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of a call: one that is given here, or a sample's."""
    given = CALLS.get(module, {}).get(name)
    if given is not None:
        return given, {}
    sample = supported.call_for(module, name)
    return tuple(plain(x) for x in sample.args), {key: plain(x) for key, x in sample.kwargs.items()}


def evaluated(function: Callable[..., Any], count: int, *args: Any, **kwargs: Any) -> Any:
    """Return what an interpolant is at the last arguments."""
    return function(*args[:-count], **kwargs)(*args[-count:])


def usual_calls(modules: tuple[str, ...] = MODULES) -> Iterator[Usual]:
    """Yield a call of each function of some modules that another library has, too."""
    for module in modules:
        namespace = importlib.import_module(module)
        mirrored = importlib.import_module(OTHERS if module == NETWORKS else module.removeprefix("wengert."))
        for name in sorted(namespace.__all__):
            ours, theirs = getattr(namespace, name), getattr(mirrored, name, None)
            if name in LEFT_ALONE or theirs is None or theirs is ours:
                continue
            if module.endswith(".stats") and hasattr(theirs, "rvs"):
                yield from of_distribution(module, name, ours, theirs)
            elif callable(ours) and (name in CALLS.get(module, {}) or name not in supported.WITHOUT.get(module, ())):
                try:
                    args, kwargs = arguments(module, name)
                except LookupError:
                    continue
                signature, doc = signature_of(theirs), theirs.__doc__ or ""
                if inspect.isclass(theirs) or name in supported.EVALUATED:
                    count = supported.EVALUATED.get(name, 1)
                    ours, theirs = (
                        functools.partial(evaluated, ours, count),
                        functools.partial(evaluated, theirs, count),
                    )
                yield Usual(module, name, ours, theirs, args, kwargs, signature, doc)


def of_distribution(module: str, name: str, ours: Any, theirs: Any) -> Iterator[Usual]:
    """Yield calls of the methods of a distribution."""
    if name not in SHAPES and (not hasattr(theirs, "shapes") or theirs.shapes):
        return
    for method, point in METHODS.items():
        if hasattr(ours, method) and hasattr(theirs, method):
            args = SHAPES.get(name, ()) if point is None else (point, *SHAPES.get(name, ()))
            own, other = getattr(ours, method), getattr(theirs, method)
            kwargs = {"loc": 0.1, "scale": 1.3} if "pdf" in method else {}
            yield Usual(module, f"{name}.{method}", own, other, args, kwargs)
