"""Programs as modules: what surrounds the generated function, the points to evaluate it at, and loading."""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.util
import linecache
import random
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tools.fuzz import wings
from tools.fuzz.flow import program
from tools.fuzz.statements import FEATURES

__all__ = ["LANES", "Program", "copies", "loaded", "random_program", "released", "total"]

LANES = 3
HEAD = (
    """
import contextlib
import functools
import math
import types

import numpy as np
import wengert as wg
from tools.fuzz.programs import total
from wengert.scipy import linalg

single = np.float32
WEIGHTS = np.array([0.5, -1.25, 2.0])
MASK = np.array([True, False, True])
MASK3 = np.array([[False, False, False], [True, True, True], [False, False, False]])
ORDER = np.array([2, 0, 1])
LOW = 0.25
HIGH = 1.75
TALL = np.linspace(0.5, 1.5, 70_000)
PLAIN = wg.tensor([0.75, -0.5])
FROZEN = wg.tensor([0.5, 1.25], requires_grad=True).requires_grad_(False)
HIDDEN = np.ma.array([0.5, -1.25, 2.0], mask=[False, True, False])
LIMITS = types.SimpleNamespace(low=1, high=0.5)
NOISE = np.random.default_rng(0).normal(size=(65, 65))


def ruled(function, vjp=None, jvp=None):
    rule = wg.custom_rule(function)
    if vjp is not None:
        rule.defvjp(*vjp)
    if jvp is not None:
        rule.defjvp(jvp)
    return rule


sine = ruled(lambda t: np.sin(t), vjp=(lambda t: (np.sin(t), t), lambda t, ct: (ct * np.cos(t),)))
cube = ruled(lambda t: t * t * t, jvp=lambda primals, tangents: (primals[0] ** 3, 3.0 * primals[0] ** 2 * tangents[0]))
root = ruled(lambda t: np.sqrt(2.0 + t * t))
product = ruled(
    lambda t, u: t * np.tanh(u),
    vjp=(
        lambda t, u: (t * np.tanh(u), (t, u)),
        lambda saved, ct: (ct * np.tanh(saved[1]), ct * saved[0] * (1.0 - np.tanh(saved[1]) ** 2)),
    ),
)


class Squared(wg.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * t

    @staticmethod
    def backward(ctx, ct):
        (t,) = ctx.saved_tensors
        return ct * 2.0 * t


class Scaled(wg.autograd.Function):
    @staticmethod
    def forward(ctx, t, u):
        ctx.save_for_backward(t, u)
        return t * u

    @staticmethod
    def backward(ctx, ct):
        t, u = ctx.saved_tensors
        return ct * u, np.sum(ct * t)


class Weighted(wg.autograd.Function):
    @staticmethod
    def forward(ctx, t, power):
        ctx.save_for_backward(t)
        ctx.power = power
        return WEIGHTS[2] * t**power

    @staticmethod
    def backward(ctx, ct):
        (t,) = ctx.saved_tensors
        return ct * WEIGHTS[2] * ctx.power * t ** (ctx.power - 1), None


def captured(t, u):
    u = u * 1.0  # backward would read what the program writes to it later, as any function of Python does

    class Capturing(wg.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * np.sum(u)

        @staticmethod
        def backward(ctx, ct):
            return ct * np.sum(u)

    return Capturing.apply(t)


def turned(t):
    return wg.cond(np.sum(t) > 0.3, np.sin, lambda t: t * 0.5 + 0.1, t)


def shrunk(t, times):
    return wg.fori_loop(0, times, lambda i, t: np.tanh(t) + 0.25, t)


def rewritten(t, u):
    t = np.array(t, like=t)
    t[ORDER[:2]] = np.sin(t[ORDER[:2]]) * u
    np.add.at(t, ORDER % 2, 0.1 * u)
    t[MASK] *= 0.5
    return t, t[0] + np.sum(t[1:])


def energy(found):
    return np.tanh(0.1 * np.sum(found[0] ** 2) + np.sum(found[1]))


def ending(t):
    return wg.while_loop(lambda u: u < 2.5, lambda u: u + t, t * 0.5)


def turned_back(t, ct):
    return (wg.cond(np.sum(t) > 0.3, lambda t, ct: ct * np.cos(t), lambda t, ct: ct * 0.5, t, ct),)


def stepped_back(saved, ct):
    t, k = saved
    return ct * np.cos(t) * k, None


def within_back(t, ct):
    return (-2 * ct * np.cos(np.cos(t)) * np.sin(t),)


def turned_on(primals, tangents):
    (t,), (dt,) = primals, tangents
    found = wg.cond(np.sum(t) > 0.3, lambda t, dt: dt * np.cos(t), lambda t, dt: dt * 0.5, t, dt)
    return turned(t), found


chosen = ruled(turned, vjp=(lambda t: (turned(t), t), turned_back))
bent = ruled(turned, jvp=turned_on)
repeated = ruled(lambda t: wg.while_loop(lambda u: np.sum(u * u) > 0.5, lambda u: u * 0.5, t))


stepped = ruled(lambda t, k: np.sin(t) * k, vjp=(lambda t, k: (np.sin(t) * k, (t, k)), stepped_back))
within = ruled(lambda t: stepped(np.cos(t), 2), vjp=(lambda t: (stepped(np.cos(t), 2), t), within_back))


class Chosen(wg.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return turned(t)

    @staticmethod
    def backward(ctx, ct):
        return turned_back(*ctx.saved_tensors, ct)[0]


class Scaling(wg.autograd.Function):
    @staticmethod
    def forward(ctx, t, power):
        ctx.power = power
        slope = power * np.cos(t)
        ctx.save_for_backward(t)
        return np.sin(t) * power if np.sum(slope) > 0 else power * np.sin(t)

    @staticmethod
    def backward(ctx, ct):
        (t,) = ctx.saved_tensors
        return ct * ctx.power * np.cos(t), None


class Repeated(wg.autograd.Function):
    @staticmethod
    def forward(ctx, t, times):
        ctx.save_for_backward(t, times)
        return shrunk(t, times)

    @staticmethod
    def backward(ctx, ct):
        t, times = ctx.saved_tensors
        return wg.vjp(lambda t: shrunk(t, times), t)[1](ct)[0], None


class Box:
    def __init__(self, value):
        self.value = value
        self.count = 1

    def grow(self, by):
        self.value = self.value * 0.5 + by * self.count

    def write(self, by):
        self.value[0] += by

    def count_on(self, by):
        self.count += 1
        if self.count > 2:
            self.value[-1] = by * self.count

    def __add__(self, by):
        if by > 0.5:
            return Box(self.value + by)
        return Box(self.value * by)

    __radd__ = __add__

    def __isub__(self, by):
        if by > 0.5:
            self.value = self.value - by
        else:
            self.value[0] -= by
        return self

    def __neg__(self):
        return Box(-self.value) if np.sum(self.value) > 0 else Box(self.value * 0.5)

    def __bool__(self):
        found = False
        if np.sum(self.value) > 1:
            found = True
        return found

    def __lt__(self, by):
        if self:
            return self.count < by
        return np.sum(self.value) < by

    def __getitem__(self, by):
        if by > 0:
            return np.sum(self.value) * by
        return by

    def __setitem__(self, by, value):
        if value > by:
            self.value[0] = value
        else:
            self.count += 1
            self.value = self.value * by

    @property
    def first(self):
        return self.value[0]

    @first.setter
    def first(self, by):
        if by > 0:
            self.value[0] = by


class Opened:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, kind, error, trace):
        self.value *= 0.5


class Suppressed:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is ValueError


@contextlib.contextmanager
def halved(t):
    yield t * 0.5


def powered(t, times=2):
    return t if times == 0 else powered(t * 0.5 + 0.1, times - 1)


def twice(function, t):
    return function(function(t))


def left_behind(step, t):
    t, rows, count = wg.while_loop(lambda t: abs(np.sum(t * t) - 50.3) < 49.7, step, t, rows=True, max_rounds=4)
    return t + 0.5 * np.sum(rows, axis=0) + 0.1 * count


def nested_loops(function, t):
    def inner(j, t):
        return wg.fori_loop(j, 2, lambda k, t: 0.5 * function(t) + 0.1 * k, t)

    return wg.fori_loop(0, 2, lambda i, t: wg.fori_loop(0, i + 1, inner, t), t)


def written_and_read(function, t):
    rows = np.stack([t * 0.0] * 6)
    for i in range(6):
        t = 0.5 * function(t) + 0.1 * np.sum(rows, axis=0)
        rows[i] = t
    return t + rows[2]


def grown(t, rows):
    whole = NOISE[:rows, :rows] * (0.3 / rows**0.5 + np.resize(np.sin(t), (rows, rows)) / rows)
    return np.roll(2.0 * np.eye(rows) + whole, rows // 3, axis=0)


def stacked(t, rows):
    return np.stack([grown(u, rows) for u in t])


def thinned(t, rows, least):
    there = (np.arange(rows) != rows // 2) | (np.sum(t) > least)
    return grown(t, rows) * np.where(there, 1.0, 0.0)[:, None]


def mended(a):
    return np.where((np.linalg.det(a) == 0.0)[..., None, None], np.eye(np.shape(a)[-1]), a)


def positive(t, rows):
    a = grown(t, rows)
    return a @ a.T + np.eye(rows)


def solved_or_turned(t, rows):
    def solved(t):
        return np.linalg.solve(thinned(t, rows, LOW), np.resize(t, rows))[:3]

    return wg.cond(np.sum(t) > LOW, solved, np.cos, t)


def tripled(t):
    if np.sum(t) > 0.4:
        return t * 3.0
    return np.sin(t)


"""
).lstrip()
TAIL = """

def loss(x, y, r, n, m):
    return total(program(x, y, r, n, m))
"""


@functools.lru_cache
def weights(shape: tuple[int, ...]) -> Any:
    """Return fixed factors that make a scalar of an array."""
    size = int(np.prod(shape))
    return np.cos(np.arange(1.0, size + 1.0)).reshape(shape)[()]


def total(results: Any) -> Any:
    """Return one number that depends on every result."""
    found = 0.0
    for result in results:
        shape, kind = np.shape(result), np.result_type(result).kind
        if kind == "f":
            found = found + np.sum(result * weights(shape))
        elif kind == "c":
            found = found + np.sum(result.real * weights(shape)) - np.sum(result.imag * weights(shape))
    return found


@dataclass(frozen=True)
class Program:
    """Hold a program's text, the points where it is evaluated, and the directions of derivatives."""

    name: str
    source: str
    points: tuple[tuple[Any, ...], ...]
    directions: tuple[tuple[Any, ...], ...]

    @property
    def text(self) -> str:
        """The program as a file that runs."""
        return self.source + f"\n\nnp.set_printoptions(precision=12)\nprint(loss(*{written(self.points[0])}))\n"


def copies(point: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return copies of arguments, so that nothing can write into them."""
    return tuple(np.copy(x)[()] for x in point)


def written(point: tuple[Any, ...]) -> str:
    """Return a point as an expression."""
    arrays = [f"np.array({point[k].tolist()})" for k in (0, 1, 3, 4)]
    arrays.insert(2, repr(float(point[2])))
    return f"({', '.join(arrays)})"


def random_point(choice: random.Random, span: float) -> tuple[Any, ...]:
    """Return random numbers for a vector, a matrix and a number.

    No two lie at one distance from 0, and none is 0 or a number that programs compare with, which have two digits:
    derivatives would not be defined there.
    """
    distances = choice.sample([k for k in range(1, round(1000 * span)) if k % 10], 10)
    numbers = [choice.choice((-1, 1)) * k / 1000 for k in distances]
    return np.array(numbers[:3]), np.array(numbers[3:9]).reshape(2, 3), np.float64(numbers[9])


def random_integers(choice: random.Random) -> tuple[Any, ...]:
    """Return three integers, which are indices too, and three truth values."""
    return np.array(choice.choices(range(3), k=3)), np.array(choice.choices((True, False), k=3))


@functools.cache
def definitions() -> list[tuple[set[str], str]]:
    """Return the statements that may surround a program, with the words in them."""
    return [(words(text), text) for text in map(ast.unparse, ast.parse(HEAD + wings.DEFINITIONS).body)]


def words(text: str) -> set[str]:
    """Return all names in a text, and the words in its strings."""
    return set(re.findall(r"\w+", text))


def with_definitions(text: str) -> str:
    """Return a program with those definitions in front that it uses."""
    kept: list[str] = []
    used = words(text)
    for found, definition in reversed(definitions()):
        if definition.startswith(("import numpy", "import wengert", "from tools")) or defined_in(definition) & used:
            kept.insert(0, definition)
            used |= found
    return "\n".join([*kept, "", "", text])


def defined_in(definition: str) -> set[str]:
    """Return the names that a definition gives something."""
    if definition.startswith("from "):
        return words(definition.partition(" import ")[2])
    return set(re.findall(r"^(?:@.*\n)?(?:def |class |import )?(\w+)", definition))


def some_of(choice: random.Random, features: frozenset[str]) -> frozenset[str]:
    """Return all features or half of them, which meet more often then (Groce et al., Swarm testing, ISSTA 2012)."""
    every = sorted(features)
    chosen = frozenset(every if choice.random() < 0.5 else choice.sample(every, len(every) // 2))
    # plain eager code goes on where it handles the refusal of a masked array, or of a write of Tensors into an ndarray:
    # nothing of ours is there to say so again
    return chosen - {"masked", "large"} if "exceptions" in chosen else chosen


def random_program(seed: int, index: int, features: frozenset[str] = FEATURES) -> Program:
    """Return a program; the same one for the same seed and index."""
    choice = random.Random(f"{seed}-{index}")
    features = some_of(choice, features)
    source = with_definitions(ast.unparse(ast.parse(program(choice, features) + TAIL)) + "\n")
    points = tuple((*random_point(choice, 1.2), *random_integers(choice)) for _ in range(LANES))
    directions = tuple(random_point(choice, 1.0) for _ in range(2))
    return Program(f"fuzz_{seed}_{index}", source, points, directions)


class Loader(importlib.abc.InspectLoader):
    """Load a module from text that is in no file; tracebacks and conversion to graphs find it nevertheless."""

    def __init__(self, filename: str, source: str) -> None:
        self.filename = filename
        self.source = source

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        return self.source

    def get_code(self, fullname: str) -> Any:
        """Return the text compiled under its file's name."""
        return self.source_to_code(self.source, self.filename)


def loaded(program: Program) -> ModuleType:
    """Return a program as a module."""
    filename = f"{program.name}.py"
    linecache.cache[filename] = (len(program.source), None, program.source.splitlines(True), filename)
    loader = Loader(filename, program.source)
    spec = importlib.util.spec_from_loader(program.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def released(program: Program) -> None:
    """Forget a program's source."""
    linecache.cache.pop(f"{program.name}.py", None)
