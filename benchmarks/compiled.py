"""Compiled functions: the time of a call, and the time from a function to its first result.

Every library has two threads unless the command line says otherwise. `numpy` is the same written by hand.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement import check_agreement
from benchmarks.compiled_jacobians import JACOBIANS
from benchmarks.compiled_list import EXAMPLES, Example, rosenbrock
from benchmarks.compiled_networks import NETWORKS
from benchmarks.measure import Case, Program, Times
from benchmarks.namespaces import namespace

__all__ = ["cases"]

Function = Callable[..., Any]
SHORT = 2e-3
"""Seconds below which a call is repeated, so that the clock does not count."""
PREPARING = 2
"""Calls after the first one that may take longer than later ones: here those up to the native entry."""
WAKING = 1e-2
"""Seconds for which a program runs before its time is taken, in every library: until then threads of the library before
it look for work where this one's should run, its own are asleep, and the caches hold other arrays."""
ROUNDS_OF_COMPILING = 3
ALL = (*EXAMPLES, *NETWORKS, *JACOBIANS)
SINGLE = 1e-4
"""How far results of single precision may lie apart."""


def cases(threads: int) -> Iterator[Case]:
    """Yield the cases; PyTorch and Wengert compute with a number of threads."""
    for example in ALL:
        yield Case(example.name, 1, functools.partial(calls, example, threads, []), rounds=31, budget=8.0)
    yield Case("BFGS of SciPy on Rosenbrock, 10 variables", 1, minimiser, rounds=31, budget=8.0)
    for example in ALL:
        name = f"compile: {example.name}"
        yield Case(name, 1, functools.partial(first_call, example, threads), rounds=ROUNDS_OF_COMPILING, budget=60.0)


def calls(example: Example, threads: int, expected: list[Any], library: str) -> Program | None:
    """Return the program that calls what a library compiled; its results must agree with the first one's."""
    made = compiled(example, threads, library)
    if made is None:
        return None
    function, arguments = made
    found = flat(function(*arguments))
    expected.extend(() if expected else found)
    single = any(x.dtype == np.float32 for x in example.arguments)
    check_agreement(found, expected, f"{library}: {example.name}", *[SINGLE] * single)
    return repeated(functools.partial(function, *arguments))


def flat(result: Any) -> list[Any]:
    """Return the arrays of a result, which libraries nest in their own ways."""
    if isinstance(result, tuple | list):
        return [part for item in result for part in flat(item)]
    return [result]


def repeated(function: Callable[[], object]) -> Program:
    """Return a program that takes the mean time of a call, later ones than those that prepare the others."""
    for _ in range(PREPARING):
        function()
    start = time.perf_counter()
    function()
    times = max(1, int(SHORT / (time.perf_counter() - start)))

    def program() -> Times:
        awake = time.perf_counter() + WAKING
        while time.perf_counter() < awake:
            function()
        start = time.perf_counter()
        for _ in range(times):
            function()
        return {"": (time.perf_counter() - start) / times}

    return program


def minimiser(library: str) -> Program | None:
    """Return the program that minimises with SciPy, by value and gradient at once or by its own two functions."""
    if library not in {"wengert", "jax-jit", "numpy"}:
        return None
    from scipy.optimize import minimize, rosen, rosen_der

    start = np.full(10, 1.3)
    if library == "numpy":
        return repeated(lambda: minimize(rosen, start, jac=rosen_der, method="BFGS"))
    example = next(example for example in EXAMPLES if example.function is rosenbrock)
    function, _ = COMPILERS[library](example, 1)  # type: ignore[misc]  # both can do it

    def value_and_gradient(x: Any) -> tuple[Any, Any]:
        value, (gradient,) = function(x)
        return value, gradient

    return repeated(lambda: minimize(value_and_gradient, start, jac=True, method="BFGS"))


def first_call(example: Example, threads: int, library: str) -> Program | None:
    """Return the program that makes a function anew, so that nothing is known of it, and calls it."""
    if library in {"numpy", "wengert-eager"} or compiled(example, threads, library) is None:
        return None
    if library in FORGETTING:
        FORGETTING[library]()

    def program() -> Times:
        start = time.perf_counter()
        function, arguments = compiled(example, threads, library)  # type: ignore[misc]  # asked above
        function(*arguments)
        return {"": time.perf_counter() - start}

    return program


def compiled(example: Example, threads: int, library: str) -> tuple[Function, Sequence[Any]] | None:
    """Return what a library compiles, not yet called, and its arguments; None if it cannot do this."""
    compiler = COMPILERS.get(library)
    cannot = example.loops and library not in {"wengert", "wengert-eager", "jax-jit"}
    return None if compiler is None or cannot else compiler(example, threads)


def wengert(example: Example, _threads: int) -> tuple[Function, Sequence[Any]]:
    """Compile with Wengert, at the first call, as the others do."""
    import wengert as wg
    from wengert.support import config

    config.AT_ONCE = True
    return wg.jit(eagerly(example)), example.arguments


def eagerly(example: Example) -> Function:
    """Return what Wengert computes, not compiled."""
    import wengert as wg

    own = example.function  # what a function captures is looked at while it is traced: not the arguments
    return transformed(wg, lambda *arguments: own(np, *arguments), example)


def transformed(library: Any, written: Function, example: Example) -> Function:
    """Return what is wanted of a function, by a library that has Wengert's names."""
    over = example.over
    ways: dict[str, Callable[[], Function]] = {
        "value": lambda: written,
        "gradient": lambda: library.grad(written, over),
        "value and gradient": lambda: library.value_and_grad(written, over),
        "each element's gradient": lambda: library.vmap(library.value_and_grad(written, over)),
        "Jacobian": lambda: library.jacfwd(written, over),
        "rows of the Jacobian": lambda: library.jacrev(written, over),
        "each element's Jacobian": lambda: library.vmap(library.jacfwd(written, over)),
    }
    return ways[example.wanted]()


def jax(example: Example, _threads: int) -> tuple[Function, Sequence[Any]]:
    """Compile with JAX, in double precision."""
    library = importlib.import_module("jax")
    xp = namespace("jax")

    made = library.jit(transformed(library, lambda *arguments: example.function(xp, *arguments), example))
    return lambda *xs: library.block_until_ready(made(*xs)), [xp.asarray(x) for x in example.arguments]


def torch(example: Example, threads: int) -> tuple[Function, Sequence[Any]] | None:
    """Compile with PyTorch, whose gradients are those of its tape."""
    if "Jacobian" in example.wanted:
        return None
    library = importlib.import_module("torch")
    library.set_num_threads(threads)
    library.compiler.reset()  # it compiles few forms of what it takes for one function
    xp = namespace("torch")
    made = library.compile(functools.partial(example.function, xp))
    arguments = [library.as_tensor(x) for x in example.arguments]
    if example.wanted == "value":
        return made, arguments
    leaves = [arguments[i].requires_grad_() for i in example.over]

    def step(*arguments: Any) -> Any:
        for leaf in leaves:
            leaf.grad = None
        value = made(*arguments)
        value.sum().backward()
        gradients = tuple(leaf.grad for leaf in leaves)
        return gradients if example.wanted == "gradient" else (value.detach(), gradients)

    return step, arguments


def numba(example: Example, _threads: int) -> tuple[Function, Sequence[Any]] | None:
    """Compile what is written for numba: a few operations on arrays, without gradients."""
    if example.for_numba is None:
        return None
    return importlib.import_module("numba").njit(example.for_numba), example.arguments


def forget_kept_code() -> None:
    """Let Wengert find nothing of earlier processes on disk, and keep nothing there."""
    cache: Any = importlib.import_module("wengert.native.cache")
    switches: Any = importlib.import_module("wengert.support.config")
    switches.CACHE = "0"
    cache.object_cache.cache_clear()


def forget_kept_graphs() -> None:
    """Let PyTorch compile anew what it has on disk."""
    options: Any = importlib.import_module("torch._inductor.config")
    options.force_disable_caches = True


FORGETTING: dict[str, Callable[[], None]] = {"wengert": forget_kept_code, "torch-compile": forget_kept_graphs}
"""What makes libraries forget what they keep on disk, so that compiling is measured; the others keep nothing there."""


def numpy(example: Example, _threads: int) -> tuple[Function, Sequence[Any]] | None:
    """Return what is written by hand."""
    return None if example.by_hand is None else (example.by_hand, example.arguments)


COMPILERS: dict[str, Callable[[Example, int], tuple[Function, Sequence[Any]] | None]] = {
    "wengert": wengert,
    "wengert-eager": lambda example, _threads: (eagerly(example), example.arguments),
    "jax-jit": jax,
    "torch-compile": torch,
    "numba": numba,
    "numpy": numpy,
}
