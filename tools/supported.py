"""Write docs/supported.md: what may be done with each function, found out by doing it with a call of it.

Run `python -m tools.supported` after a function or a rule was added, and read the difference before you commit it. The
calls are the samples that the tests use, and those below for what is made of other functions.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse

import wengert as wg
from tests.samples import SAMPLES
from tests.samples.base import Sample, fixed, normal, positive, sample, spaced
from tests.samples.calls import Call, call_of, float_leaves, leaves_of, random_like
from tests.samples.running import representatives
from tools import public_names
from wengert.core.forms.batching import each_lane
from wengert.core.values import numpy_overrides
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.errors import WengertError
from wengert.lowering.partition import partition_graph
from wengert.numpy._namespace import plain_names
from wengert.passes.pipeline import flatten_calls
from wengert.scipy.sparse import diags_array

__all__ = ["CALLS", "MODULES", "WITHOUT", "Row", "functions", "main", "page", "row"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "supported.md"
APART = (
    *("wengert.scipy", "wengert.scipy.stats", "wengert.scipy.optimize", "wengert.scipy.sparse"),
    "wengert.nn",
)
"""Modules of modules, of distributions, which are objects with methods, of solvers, which take functions, and of sparse
arrays, which are containers."""
MODULES = tuple(
    module
    for module in public_names.MODULES
    if module.split(".")[1:2] in (["numpy"], ["scipy"], ["nn"], ["random"]) and module not in APART
)
HEAD = """# What is supported

What may be done with each function, found out by doing it with a call of it: `python -m tools.supported` writes this
page, and a test holds it to be true.

| column | |
|---|---|
| reverse, forward | `grad` and `vjp`, `jvp`. "zero": the derivative is zero wherever there is one |
| second | derivatives of the second order; as rules are made of functions with rules, higher ones follow |
| batched | under `vmap`: "yes" for all lanes at once, "each" for one lane after the other |
| traced | under `jit`. "no": the result has a shape, or is a Python value, that depends on elements |
| native | how much of it native code computes: "yes" all, "part" what is no routine of NumPy or SciPy, "no" nothing |
| in | the file below `src/wengert/` that says what it means for Tensors |

A call of a function stands for all: an option may be refused where the table says "yes". Matrices of up to 1,024 rows
are meant. Real numbers are meant; most
functions take complex ones, too ([choices](choices.md#complex-numbers)). A function that is one routine of NumPy or
SciPy is no slower for not being native. Distributions are in `wengert.scipy.stats`, sparse arrays in
`wengert.scipy.sparse`. The names of NumPy and SciPy that
are not here are in [what is left out](left-out.md).
"""

A = normal(3, 3) + 3.0 * np.eye(3)
V, W = normal(4), normal(4, seed=1)
SPREAD = spaced(5)
KEY = fixed(np.array([1, 2], dtype=np.uint64))
SIGNAL, MATRIX, VOLUME = normal(1, 2, 6), normal(1, 2, 6, 6), normal(1, 2, 4, 4, 4)
SAMPLED = np.arange(6.0), normal(6), positive(3)
KNOTS = np.array([0.0, 0.0, 0.0, 0.0, 2.5, 5.0, 5.0, 5.0, 5.0])
SECTIONS = np.array([[1.0, 0.2, 0.1, 1.0, 0.3, 0.1]])
COUNTS = fixed(np.array([1, 0, 2]))
SPARSE = fixed(scipy.sparse.csr_array(np.diag(np.arange(2.0, 6.0))))


def of(*args: Any, **kwargs: Any) -> Sample:
    """Return a call with arguments; what is `fixed` is not differentiated."""
    return sample("", np.positive, *args, **kwargs)


def convolutions() -> Iterator[tuple[str, Sample]]:
    """Yield calls of what runs over windows, in one to three dimensions."""
    for n, x in enumerate((SIGNAL, MATRIX, VOLUME), 1):
        weight = normal(2, 2, *[3] * n)
        yield f"conv{n}d", of(x, weight)
        yield f"conv_transpose{n}d", of(x, weight)
        yield f"avg_pool{n}d", of(x, 2)
        yield f"max_pool{n}d", of(spaced(*x.shape), 2)


CALLS: dict[str, dict[str, Sample]] = {
    "wengert.numpy": {
        "full": of(3, positive()),
        "full_like": of(fixed(V), positive()),
        "fromiter": of(V, float),
        "kaiser": of(4, positive()),
        "allclose": of(V, W),
        "apply_along_axis": of(np.sin, 0, A),
        "apply_over_axes": of(np.sum, A, fixed([0])),
        **dict.fromkeys(("around", "nan_to_num", "array", "copy", "require", "sort_complex", "trim_zeros"), of(V)),
        **{f"as{name}": of(V) for name in ("anyarray", "array", "array_chkfinite", "contiguousarray", "fortranarray")},
        "astype": of(V, np.float32),
        "copyto": of(V, W),
        "divmod": of(positive(3), positive(3, seed=1)),
        "fill_diagonal": of(A, positive()),
        "histogram": of(V),
        "histogram2d": of(V, W),
        "histogramdd": of(normal(4, 2)),
        **dict.fromkeys(("intersect1d", "setdiff1d", "setxor1d"), of(SPREAD, SPREAD[:3])),
        "ix_": of(fixed(np.arange(3))),
        "piecewise": of(V, fixed(np.array([True, False, True, False])), fixed([np.sin, np.cos])),
        "place": of(V, fixed(np.array([True, False, True, False])), W),
        **dict.fromkeys(("poly", "polyder", "polyint", "roots"), of(positive(3))),
        **dict.fromkeys(("polyadd", "polysub", "polymul", "polydiv"), of(positive(4), positive(3, seed=1))),
        "polyfit": of(SPREAD, normal(5), 2),
        "put": of(V, fixed(np.array([0, 2])), positive(2)),
        "put_along_axis": of(V, fixed(np.array([0, 2])), positive(2), 0),
        "putmask": of(V, fixed(np.array([True, False, True, False])), W),
        **{f"unique_{name}": of(SPREAD) for name in ("all", "counts", "inverse", "values")},
    },
    "wengert.numpy.linalg": {"multi_dot": of([A, A, A])},
    "wengert.numpy.fft": {"fftshift": of(V), "ifftshift": of(V), "ifft2": of(A)},
    "wengert.scipy.special": {
        "comb": of(fixed(5.0), fixed(2.0)),
        "factorial": of(fixed(np.arange(4))),
        "multigammaln": of(np.asarray(positive() + 2.0), 2),
        "softplus": of(V),
        "zeta": of(positive(3) + 1.0),
    },
    "wengert.scipy.fft": {
        **dict.fromkeys(("fftshift", "ifftshift", "rfft", "ihfft", "hfft", "irfft", "fft", "ifft"), of(V)),
        **{name: of(A) for name in ("fft2", "fftn", "ifft2", "ifftn", "rfft2", "rfftn", "irfft2", "irfftn")},
        **{inverse + name: of(A) for name in ("dct", "dctn", "dst", "dstn") for inverse in ("", "i")},
    },
    "wengert.scipy.linalg": {
        **dict.fromkeys(("solve_continuous_are", "solve_discrete_are"), of(A, normal(3, 2), np.eye(3), np.eye(2))),
        **dict.fromkeys(("coshm", "sinm", "tanhm"), of(A)),
        "logm": of(A @ A.T),
        "lu_solve": of((A, fixed(np.arange(3))), normal(3)),
    },
    "wengert.scipy.signal": {
        **dict.fromkeys(("convolve", "correlate", "fftconvolve", "oaconvolve"), of(V, W)),
        **dict.fromkeys(("convolve2d", "correlate2d"), of(A, A)),
        "detrend": of(V),
        "filtfilt": of(positive(2), positive(2, seed=1), normal(20)),
        "lfilter": of(positive(2), positive(2, seed=1), V),
        "lfilter_zi": of(positive(2), fixed(np.array([1.0, 0.3]))),
        "sosfilt": of(fixed(SECTIONS), V),
        "sosfilt_zi": of(SECTIONS),
        "sosfiltfilt": of(SECTIONS, normal(20), padlen=3),
        "deconvolve": of(V, np.array([1.0, 0.5])),
        "hilbert": of(V),
        "lfiltic": of(positive(2), positive(2, seed=1), V),
        "medfilt": of(SPREAD),
        "resample": of(V, 6),
        "resample_poly": of(normal(8), 2, 1),
        "savgol_filter": of(normal(6), 3, 1),
        "upfirdn": of(W, V),
    },
    "wengert.scipy.ndimage": {
        **dict.fromkeys(("convolve1d", "correlate1d"), of(A, normal(3))),
        **dict.fromkeys(("convolve", "correlate"), of(A, normal(3, 3, seed=1))),
        **dict.fromkeys(("gaussian_filter", "gaussian_filter1d"), of(A, 1.0)),
        **dict.fromkeys(("gaussian_laplace", "gaussian_gradient_magnitude"), of(A, 1.0)),
        **dict.fromkeys(("laplace", "prewitt", "sobel", "uniform_filter", "uniform_filter1d"), of(A)),
        **dict.fromkeys(("uniform_filter", "uniform_filter1d"), of(A, 3)),
        "map_coordinates": of(A, positive(2, 4)),
        "affine_transform": of(A, normal(2, 2)),
        "rotate": of(A, positive(), reshape=False),
        "shift": of(A, positive()),
        **dict.fromkeys(("spline_filter", "spline_filter1d"), of(A)),
        "zoom": of(A, fixed(2.0)),
    },
    "wengert.scipy.interpolate": {
        **dict.fromkeys(("Akima1DInterpolator", "BarycentricInterpolator", "CubicSpline", "interp1d"), of(*SAMPLED)),
        **dict.fromkeys(("InterpolatedUnivariateSpline", "KroghInterpolator", "PchipInterpolator"), of(*SAMPLED)),
        **dict.fromkeys(("pchip", "make_interp_spline"), of(*SAMPLED)),
        **dict.fromkeys(("barycentric_interpolate", "krogh_interpolate", "pchip_interpolate"), of(*SAMPLED)),
        "CubicHermiteSpline": of(*SAMPLED[:2], normal(6, seed=2), SAMPLED[2]),
        "make_lsq_spline": of(*SAMPLED[:2], fixed(KNOTS), SAMPLED[2]),
        "BSpline": of(fixed(KNOTS), normal(5), 3, SAMPLED[2]),
        "PPoly": of(normal(3, 5), SAMPLED[0], SAMPLED[2]),
        "RectBivariateSpline": of(fixed(np.arange(4.0)), fixed(np.arange(4.0)), normal(4, 4), positive(2), positive(2)),
        "RegularGridInterpolator": of((fixed(np.arange(4.0)), fixed(np.arange(3.0))), normal(4, 3), positive(2, 2)),
        "interpn": of((fixed(np.arange(4.0)), fixed(np.arange(3.0))), normal(4, 3), positive(2, 2)),
        "splev": of(SAMPLED[2], (fixed(KNOTS), normal(5), 3)),
        "splint": of(positive(), 2.0 + positive(), (fixed(KNOTS), normal(5), 3)),
        **dict.fromkeys(("splder", "splantider"), of((fixed(KNOTS), normal(5), 3))),
        "splrep": of(*SAMPLED[:2]),
    },
    "wengert.scipy.integrate": {
        **dict.fromkeys(("cumulative_trapezoid", "simpson", "trapezoid", "romb"), of(SPREAD)),
        **dict.fromkeys(("fixed_quad", "quad", "quad_vec"), of(np.sin, positive(), 2.0 + positive())),
        "cumulative_simpson": of(SPREAD),
        "nquad": of(np.multiply, ((0.0, positive()), (0.0, positive()))),
        "dblquad": of(np.multiply, 0.0, positive(), 0.0, positive()),
        "tplquad": of(lambda z, y, x: x * y * z, 0.0, positive(), 0.0, 1.0, 0.0, 1.0),
        "odeint": of(lambda y, t: -y, V, fixed([0.0, 1.0])),
        "solve_bvp": of(
            lambda x, y: np.stack([y[1], 1.0 + 0.0 * x]),
            lambda ya, yb: np.stack([ya[0], yb[0]]),
            (0.0, positive()),
            fixed(np.zeros((2, 2))),
        ),
        "solve_dae": of(lambda t, y, yp: yp + y, (0.0, positive()), V, t_eval=fixed([0.0])),
        "solve_ivp": of(lambda t, y: -y, (0.0, positive()), V, t_eval=fixed([0.0])),
    },
    "wengert.scipy.sparse.linalg": {
        **dict.fromkeys(("factorized", "splu", "spsolve"), of(SPARSE, V)),
        **dict.fromkeys(("bicgstab", "cg", "gmres", "minres"), of(SPARSE, V, rtol=1e-12)),
        **dict.fromkeys(("lsmr", "lsqr"), of(SPARSE, V, atol=1e-14, btol=1e-14)),
        "expm_multiply": of(SPARSE, V),
        **dict.fromkeys(("eigs", "eigsh"), of(positive(4), 1, return_eigenvectors=False)),
        "svds": of(positive(4), 1, return_singular_vectors=False),
    },
    "wengert.scipy.spatial.distance": {
        "cdist": of(normal(3, 2), normal(4, 2)),
        "pdist": of(normal(3, 2)),
        "squareform": of(normal(3)),
        **dict.fromkeys(("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine"), of(V, W)),
        **dict.fromkeys(("euclidean", "hamming", "minkowski", "sqeuclidean"), of(V, W)),
        "jensenshannon": of(positive(3), positive(3, seed=1)),
        "mahalanobis": of(V, W, fixed(np.eye(4))),
        "seuclidean": of(V, W, positive(4)),
    },
    "wengert.nn.functional": {
        **dict(convolutions()),
        "batch_norm": of(normal(5, 2)),
        "layer_norm": of(normal(5, 2), 2),
        "cross_entropy": of(normal(3, 4), COUNTS),
        "nll_loss": of(normal(3, 4), COUNTS),
        "mse_loss": of(V, W),
        "dropout": of(V, key=KEY),
        "embedding": of(COUNTS, normal(3, 2)),
        "one_hot": of(COUNTS, 3),
        "grid_sample": of(MATRIX, 0.5 * normal(1, 3, 3, 2)),
        **dict.fromkeys(("interpolate", "upsample"), of(MATRIX, scale_factor=2)),
        "scaled_dot_product_attention": of(A, A, A),
        **dict.fromkeys(("l1_loss", "smooth_l1_loss", "huber_loss", "pairwise_distance"), of(V, W)),
        **dict.fromkeys(("binary_cross_entropy", "kl_div"), of(1 / (2 + positive(4)), 1 / (2 + positive(4, seed=1)))),
        "binary_cross_entropy_with_logits": of(V, 1 / (2 + positive(4))),
        "group_norm": of(normal(3, 4), 2),
        "rms_norm": of(normal(5, 2), 2),
        "linear": of(V, normal(3, 4), normal(3)),
        "cosine_similarity": of(A, normal(3, 3)),
        "normalize": of(A),
        **dict.fromkeys(("elu", "gelu", "glu", "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu", "relu6"), of(V)),
        **dict.fromkeys(("selu", "sigmoid", "silu", "softplus", "softsign", "tanh"), of(V)),
    },
    "wengert.random": {
        **{name: of(KEY, size=3) for name in ("bits", "exponential")},
        **dict.fromkeys(("normal", "uniform"), of(KEY, positive(3), 2.0 + positive(3))),
        "exponential": of(KEY, positive(3)),
        "beta": of(KEY, positive(3), positive(3, seed=1)),
        "gamma": of(KEY, positive(3)),
        "dirichlet": of(KEY, positive(3)),
        "bernoulli": of(KEY, fixed(0.5), size=3),
        "categorical": of(KEY, V),
        "choice": of(KEY, V),
        "permutation": of(KEY, V),
        "integers": of(KEY, 10, size=3),
        "poisson": of(KEY, fixed(positive(3))),
        "fold_in": of(KEY, 1),
        "split": of(KEY),
    },
}
"""Calls of functions without a sample, by module and name."""
USUAL = [of(V), of(A), of(V, W), of(A, A), of(A, 2)]
"""Calls that are tried for functions that have no other."""
EVALUATED = {"factorized": 1, "make_interp_spline": 1, "make_lsq_spline": 1, "RectBivariateSpline": 2}
"""Functions, and classes, whose results are called with the last arguments: how many these are, 1 for others."""
SOLVING: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("solve_bvp", "solve_dae", "solve_ivp"), lambda function, *args, **kwargs: function(*args, **kwargs).y
    ),
    "splu": lambda function, matrix, b: function(matrix).solve(b),
    **dict.fromkeys(("lsmr", "lsqr"), lambda function, *args, **kwargs: function(*args, **kwargs)[0]),
    **dict.fromkeys(
        ("eigs", "eigsh", "svds"), lambda function, x, *args, **kwargs: function(diags_array(x), *args, **kwargs)
    ),
}
"""Functions that return more than the solution, or what solves, and what gives that."""
WRITING = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
"""Functions that write to their first argument and return nothing."""
NOTHING = frozenset({"ndenumerate"}) | {
    name
    for module in (np, np.fft)
    for name, function in vars(module).items()
    if callable(function)
    and not isinstance(function, type)
    and numpy_overrides.DIFFERENTIABLE_BY.get(function) == "nothing"
}
"""Functions that make arrays of no others, or look at types, shapes, files and settings: nothing is differentiated."""
WITHOUT = {
    "wengert.numpy": NOTHING | {name for name, x in plain_names().items() if inspect.isroutine(x)},
    "wengert.numpy.fft": NOTHING,
    "wengert.scipy.fft": frozenset({"fftfreq", "rfftfreq", "next_fast_len", "prev_fast_len"}),
    "wengert.scipy.linalg": frozenset({"dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"}),
    "wengert.scipy.signal": frozenset({"savgol_coeffs"}),
    "wengert.random": frozenset({"key"}),
}
"""The names of each module that no row is about."""


@dataclass(frozen=True)
class Row:
    """Hold what may be done with a function."""

    name: str
    reverse: str
    forward: str
    second: str
    batched: str
    traced: str
    native: str
    source: str

    def __str__(self) -> str:
        cells = (f"`{self.name}`", self.reverse, self.forward, self.second, self.batched, self.traced, self.native)
        return f"| {' | '.join(cells)} | {self.source} |"


def functions(module: str) -> list[str]:
    """Return the names of a module's functions, those left out that have nothing to differentiate."""
    namespace = importlib.import_module(module)
    found = [(name, getattr(namespace, name)) for name in namespace.__all__]
    given = CALLS.get(module, {})
    callables = [name for name, thing in found if callable(thing) and (not inspect.isclass(thing) or name in given)]
    return [name for name in callables if name not in WITHOUT.get(module, ())]


def call_for(module: str, name: str) -> Sample:
    """Return a call of a function: the best of its samples, unless one is given here."""
    function = getattr(importlib.import_module(module), name)
    given = CALLS.get(module, {}).get(name)
    if given is not None:
        return replace(given, function=as_called(name, function), primitive=name)
    other = counterpart(module, name)
    exact = [s for s in SAMPLES if s.function in (function, other)]
    named = [s for s in SAMPLES if getattr(s.function, "__name__", "") in (name, getattr(other, "__name__", name))]
    samples = representatives(exact or named)
    samples = samples or [call for call in USUAL if runs(replace(call, function=function))]
    if not samples:
        raise LookupError(f"{module}.{name} has neither a sample nor a call in tools/supported.py")
    samples.sort(key=lambda s: (call_of(s).leaves == [], s.order < 2))
    own = [replace(s, function=function) for s in samples]
    return next((s for s in own if depends(call_of(s))), own[0])


def runs(sample: Sample) -> bool:
    """Tell whether a call does."""
    call = call_of(sample)
    try:
        call(*call.copies())
    except (WengertError, TypeError, ValueError, IndexError, AttributeError):
        return False
    return True


def as_called(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives what one is after: what was written to, what an interpolant is at some places."""

    def written(x: Any, *rest: Any) -> Any:
        found = wg.numpy.copy(x)
        function(found, *rest)
        return found

    def evaluated(*args: Any) -> Any:
        count = EVALUATED.get(name, 1)
        return function(*args[:-count])(*args[-count:])

    if name in WRITING:
        return written
    if name in SOLVING:
        return functools.partial(SOLVING[name], function)
    return evaluated if name in EVALUATED or inspect.isclass(function) else function


def counterpart(module: str, name: str) -> Any:
    """Return what NumPy or SciPy has under a name, None if it is ours alone."""
    if module.startswith(("wengert.nn", "wengert.random")):
        return None
    return getattr(importlib.import_module(module.removeprefix("wengert.")), name, None)


def row(module: str, name: str) -> Row:
    """Return what may be done with a function, by doing it with one call."""
    call = call_of(call_for(module, name))
    leaves = call.copies()

    def results(*xs: Any) -> Any:
        return float_leaves(call(*xs))

    def pulled(*xs: Any) -> Any:
        found, pullback = wg.vjp(results, *xs)
        return pullback([random_like(x) for x in found])

    def pushed() -> Any:
        return wg.jvp(results, leaves, [random_like(x) for x in leaves])

    def twice() -> Any:
        first, pullback = wg.vjp(lambda *xs: list(pulled(*xs)), *leaves)
        return pullback([random_like(x) for x in first])

    zero = "" if depends(call) else "zero"
    return Row(
        name,
        reverse=zero or answer(lambda: pulled(*leaves)),
        forward=zero or answer(pushed),
        second=zero or answer(twice),
        batched=batched(call, leaves),
        traced=answer(lambda: wg.graph.trace(lambda *xs: leaves_of(call(*xs)))(*leaves)),
        native=native(call, leaves),
        source=source(module, name),
    )


def depends(call: Call) -> bool:
    """Tell whether a derivative of a call's results is other than zero by definition."""
    recorded = [wg.tensor(x, requires_grad=True) for x in call.leaves]
    found = leaves_of(call(*recorded))
    return any(isinstance(x, wg.Tensor) and x.requires_grad for x in found)


def answer(attempt: Callable[[], Any]) -> str:
    """Return "yes" if something can be done, and "no" if it is refused."""
    try:
        attempt()
    except WengertError:
        return "no"
    return "yes"


def batched(call: Call, leaves: list[Any]) -> str:
    """Return whether lanes are computed at once, one after the other, or not at all."""
    if not leaves:
        return "yes"
    lanes = [np.stack([x, x]) for x in leaves]
    with warnings.catch_warnings(), mock.patch("wengert.traces.batch.each_lane", wraps=each_lane) as each:
        warnings.simplefilter("ignore")
        done = answer(lambda: wg.vmap(lambda *xs: leaves_of(call(*xs)))(*lanes))
    return "each" if done == "yes" and each.called else done


def native(call: Call, leaves: list[Any]) -> str:
    """Return how much of a call native code computes."""
    try:
        graph = wg.graph.trace(lambda *xs: leaves_of(call(*xs)))(*leaves)
    except WengertError:
        return "no"
    parts = [x.program is not None for x in partition_graph(flatten_calls(graph)).parts if x.graph.equations]
    return "yes" if all(parts) else "part" if any(parts) else "no"


def source(module: str, name: str) -> str:
    """Return the file that says what a function means for Tensors."""
    function = getattr(importlib.import_module(module), name)
    meaning = FUNCTIONS.get(counterpart(module, name), function)
    path = Path(inspect.getsourcefile(inspect.unwrap(meaning)) or "")
    return path.relative_to(ROOT / "src" / "wengert").as_posix() if path.is_relative_to(ROOT / "src") else "SciPy"


def table(module: str) -> Iterator[str]:
    """Yield the lines about a module."""
    yield f"\n## {module}\n"
    yield "| function | reverse | forward | second | batched | traced | native | in |"
    yield "|---|---|---|---|---|---|---|---|"
    with np.errstate(all="ignore"):
        yield from (str(row(module, name)) for name in functions(module))
    without = sorted(WITHOUT.get(module, frozenset()).intersection(importlib.import_module(module).__all__))
    if without:
        yield f"\nNothing to differentiate: {', '.join(f'`{name}`' for name in without)}."


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD.rstrip("\n"), *(line for module in MODULES for line in table(module)), ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
