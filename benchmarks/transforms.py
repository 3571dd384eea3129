"""Transformations of functions: Jacobians, Hessians, products with them, batches and Taylor coefficients.

Each case is one function written against a library's namespace, and the way that library's users differentiate it.
`jax-jit` is JAX with everything compiled beforehand; the others compile nothing.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

Function = Callable[..., Any]
ORDERS = (4, 10)
CALLS = 8  # of a function in a run: a program that uses a derivative does not find its caches emptied each time
SHIFT = 1.5
generator = np.random.default_rng(0)
MATRIX = generator.normal(size=(100, 100)) / 10
POINT = generator.normal(size=100)
START = generator.uniform(0.5, 1.5, size=50)
LANES = generator.uniform(0.5, 2.0, size=1_000)
LAYERS = [generator.normal(size=shape) / 4 for shape in ((16, 32), (32, 32), (32, 1))]
DIRECTIONS = [generator.normal(size=layer.shape) for layer in LAYERS]
DATA = generator.normal(size=(32, 16))


class Transforms:
    """Hold what one library offers: its namespace, arrays, and transformations by their usual names."""

    def __init__(self, numpy: Any, array: Function, finish: Function, found: dict[str, Function]) -> None:
        self.numpy = numpy
        self.array = array
        self.finish = finish
        self.found = found

    def get(self, name: str) -> Function | None:
        """Return a transformation; None if the library has none of this name."""
        return self.found.get(name)


def wengert(_threads: int) -> Transforms:
    """Return Wengert's transformations."""
    import wengert as wg

    def taylor(f: Function, order: int) -> Function:
        return lambda x: wg.taylor(f, (x,), (1.0,), order)

    names = ("jacobian", "jacrev", "jacfwd", "hessian", "grad", "vmap")
    found = {name: getattr(wg, name) for name in names}
    hvp = functools.partial(functools.partial, wg.hvp)
    return Transforms(np, np.asarray, lambda f: f, found | {"hvp": hvp, "taylor": taylor})


def torch(threads: int) -> Transforms:
    """Return those of torch.func."""
    library = importlib.import_module("torch")
    library.set_num_threads(threads)
    func = library.func

    def array(values: Any) -> Any:
        return library.as_tensor(values, dtype=library.float64)

    def taylor(f: Function, order: int) -> Function | None:
        return nested(f, order, lambda g: lambda x: func.jvp(g, (x,), (library.ones_like(x),))[1])

    names = ("jacrev", "jacfwd", "hessian", "grad", "vmap")
    found = {name: getattr(func, name) for name in names}
    hvp = forward_over_reverse(func.grad, func.jvp)
    return Transforms(library, array, lambda f: f, found | {"jacobian": func.jacrev, "hvp": hvp, "taylor": taylor})


def autograd(_threads: int) -> Transforms:
    """Return those of HIPS autograd, which has neither batches nor forward mode for everything."""
    library = importlib.import_module("autograd")
    numpy = importlib.import_module("autograd.numpy")

    def hvp(f: Function) -> Function:
        gradient = library.grad(lambda layers: f(*layers))

        def along(layers: Any, directions: Any) -> Any:
            return sum(numpy.sum(g * v) for g, v in zip(gradient(layers), directions, strict=True))

        product = library.grad(along)
        return lambda primals, tangents: product(tuple(primals), tuple(tangents))

    def taylor(f: Function, order: int) -> Function | None:
        return nested(f, order, library.grad)

    found = {name: getattr(library, name) for name in ("jacobian", "hessian", "grad")}
    found |= {"jacrev": library.jacobian, "hvp": hvp, "taylor": taylor}
    return Transforms(numpy, np.asarray, lambda f: f, found)


def jax(_threads: int, *, compiled: bool = False) -> Transforms:
    """Return JAX's, in double precision."""
    library = importlib.import_module("jax")
    library.config.update("jax_enable_x64", True)
    jet = importlib.import_module("jax.experimental.jet").jet

    def finish(f: Function) -> Function:
        function = library.jit(f) if compiled else f
        return lambda *args: library.block_until_ready(function(*args))

    def taylor(f: Function, order: int) -> Function:
        one, zero = library.numpy.ones(()), library.numpy.zeros(())
        return lambda x: jet(f, (x,), ([one, *[zero] * (order - 1)],))

    names = ("jacrev", "jacfwd", "hessian", "grad", "vmap")
    found = {name: getattr(library, name) for name in names}
    hvp = forward_over_reverse(library.grad, library.jvp)
    numpy = library.numpy
    return Transforms(numpy, numpy.asarray, finish, found | {"jacobian": library.jacrev, "hvp": hvp, "taylor": taylor})


LIBRARIES: dict[str, Callable[[int], Transforms]] = {
    "wengert": wengert,
    "torch": torch,
    "autograd": autograd,
    "jax": jax,
    "jax-jit": functools.partial(jax, compiled=True),
}


def forward_over_reverse(grad: Function, jvp: Function) -> Function:
    """Return the product of a Hessian with a vector as users of a library without one write it."""

    def product(f: Function) -> Function:
        gradient = grad(f, tuple(range(len(LAYERS))))
        return lambda primals, tangents: jvp(gradient, tuple(primals), tuple(tangents))[1]

    return product


def nested(f: Function, order: int, derivative: Function) -> Function | None:
    """Return the Taylor coefficients as users of a library without them find them: derivatives of derivatives.

    Their cost grows exponentially with the order, so high ones are left out.
    """
    if order > min(ORDERS):
        return None
    functions = [f]
    for _ in range(order):
        functions.append(derivative(functions[-1]))
    return lambda x: [g(x) / math.factorial(k) for k, g in enumerate(functions)]


def cases(threads: int) -> Iterator[Case]:
    """Yield the cases; PyTorch computes with a number of threads."""

    @functools.cache
    def library(name: str) -> Transforms:
        return LIBRARIES[name](threads)

    def case(name: str, transformation: str, write: Callable[[Any], Function], *data: Any, **options: Any) -> Case:
        def make(peer: str) -> Program | None:
            lib = library(peer)
            transform = lib.get(transformation)
            function = None if transform is None else transform(write(lib.numpy), **options)
            return None if function is None else prepared(lib, function, data)

        return Case(name, CALLS, make)

    for transformation in ("jacobian", "jacrev", "jacfwd"):
        yield case(f"Jacobian, 100 to 100: {transformation}", transformation, dense_map, POINT)
    yield case("Hessian of Rosenbrock, 50 variables", "hessian", rosenbrock, START)
    yield case("Hessian of a network times a vector", "hvp", network, LAYERS, DIRECTIONS)
    yield Case("gradient of 20 Newton steps, 1,000 lanes", CALLS, solver(library))
    for order in ORDERS:
        yield case(f"{order} Taylor coefficients", "taylor", series, np.float64(0.3), order=order)


def prepared(lib: Transforms, function: Function, data: tuple[Any, ...]) -> Program:
    """Return the program that calls a function on data, given as arrays of the library."""
    arguments = [[lib.array(x) for x in item] if isinstance(item, list) else lib.array(item) for item in data]
    function = lib.finish(function)

    def run() -> None:
        for _ in range(CALLS):
            function(*arguments)

    return timed(run)


def dense_map(xp: Any) -> Function:
    """Return a function of 100 numbers that gives 100: a layer with a mild curve behind it."""
    matrix = MATRIX if xp.__name__ != "torch" else xp.as_tensor(MATRIX)

    def f(x: Any) -> Any:
        y = xp.tanh(matrix @ x)
        return y * xp.exp(-x * x) + xp.sin(x)

    return f


def rosenbrock(xp: Any) -> Function:
    """Return Rosenbrock's function."""

    def f(x: Any) -> Any:
        return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return f


def network(xp: Any) -> Function:
    """Return the loss of a network with two hidden layers as a function of its weights."""
    data = DATA if xp.__name__ != "torch" else xp.as_tensor(DATA)

    def loss(first: Any, second: Any, third: Any) -> Any:
        output = xp.tanh(xp.tanh(data @ first) @ second) @ third
        return xp.mean(output * output)

    return loss


def solver(library: Callable[[str], Transforms]) -> Callable[[str], Program | None]:
    """Return the maker of a solver of y^3 + y = a, differentiated in a."""

    def make(name: str) -> Program | None:
        lib = library(name)
        grad, vmap = lib.get("grad"), lib.get("vmap")
        if grad is None or vmap is None:
            return None
        return prepared(lib, vmap(grad(newton)), (LANES,))

    return make


def newton(a: Any) -> Any:
    """Return the root of y^3 + y = a after 20 steps."""
    y = a * 0.5
    for _ in range(20):
        y = y - (y * y * y + y - a) / (3.0 * y * y + 1.0)
    return y


def series(xp: Any) -> Function:
    """Return a function of one number."""
    return lambda x: xp.exp(xp.sin(x)) / (SHIFT + x * x)
