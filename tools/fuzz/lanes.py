"""Programs of control flow in batches of batches: loops, branches and writes that lanes of lanes disagree about.

A program is a function as `flow` makes, whose control flow is calls of `cond`, `switch`, `while_loop`, `fori_loop`,
`scan`, of functions that are jitted, batched and differentiated inside, and of functions with rules; and `nested`,
which puts two or three `vmap`s around it, each with axes of its own.
"""

from __future__ import annotations

import ast
import dataclasses
import random
from typing import Any

import numpy as np

from tools.fuzz.flow import Flow
from tools.fuzz.grammar import SHAPES, Expressions, Name, Scope, templates
from tools.fuzz.programs import Program, some_of, with_definitions
from tools.fuzz.statements import FEATURES, Lines, Maker, Statements

__all__ = ["LaneProgram", "random_lanes"]

LEFT_OUT = {
    "masked",
    "large",
    "spaces",
    "exceptions",
    "contexts",
    "generators",
    "guards",
    "nonlocal",
    "single",
    "objects",
}
"""Features that do not belong here."""
WITHOUT_PYTHON = {"python", "choices"}
"""Features that look at values, which lanes cannot before `jit` converts them."""

# Conditions without Python's own words.
CONDITIONS = templates(
    """
    {S} > LOW ; np.sum({V}) < LOW ; {V}[0] > LOW ; {S} > {S} ; np.any({bV}) ; np.all({bP}) ; ~({S} > {S})
    ({S} > LOW) & ({S} < HIGH) ; ({S} > LOW) | ({V}[1] > {S}) ; m[0] ; n[1] > 1 ; {iS} > 1 ; ({S} > LOW) & m[1]
    np.max({V}) < HIGH ; n[0] == n[1] ; np.logical_or({S} > LOW, m[2])
    """
)
# Functions with rules that choose, and what fails or does not end but for those who take a branch.
RULED = templates(
    """
    chosen({X}) ; bent({X}) ; repeated({X}) ; Chosen.apply({X}) ; Repeated.apply({X}, {iS} % 3 + 1)
    stepped({X}, 3) ; within({X}) ; Scaling.apply({X}, 2)
    wg.checkpoint(lambda {t}: wg.scan(lambda {u}, _: (np.sin({u}) * {t}, None), {t}, None, 3)[0])({X})
    wg.checkpoint(lambda {t}: wg.cond({C}, np.sin, lambda {t}: {t} * {t}, {t}))({X})
    (lambda {u}: wg.cond({u} < 3, lambda: wg.asarray(WEIGHTS)[{u}] * 1.0, lambda: {u} * 0.25))(np.abs({iS})) * {X}
    (lambda {u}: wg.cond({u} > 0.2, lambda: ending({u}), lambda: {u} * 0.5))({S} * 1.0) * {X}
    """
)
COUNTS = ("3", "2", "n[0] + 1", "n[1]", "np.sum(n) % 4", "np.argmax(x) + 1", "n[2] + n[0]")
TYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
ORDERS = {
    "jvp of jvp": "wg.jvp(lambda t: wg.jvp({f}, (t,), ({d},))[1], ({x},), ({d},))[1]",
    "jvp of grad": "np.sum(wg.jvp(wg.grad({f}), ({x},), ({d},))[1])",
    "grad of jvp": "np.sum(wg.grad(lambda t: wg.jvp({f}, (t,), ({d},))[1])({x}))",
    "grad of grad": "np.sum(wg.grad(lambda t: np.sum(wg.grad({f})(t) * {d}))({x}))",
}
"""Second derivatives, forward and reverse, of a function at a point in a direction."""
"""How often loops repeat."""
SAME = ""
"""In place of the letter of its shape, what stands for a result that is the same in all lanes, which have no axis."""
SIZES = (1, 2, 2, 3)
LEVELS = (2, 2, 2, 3)
LEAVES = ("x", "y", "r", "n", "m")
RANKS = {"x": 1, "y": 2, "r": 0, "n": 1, "m": 1}

TAIL = """

def inside(function):
    return lambda data, r, whole: function(AS(data['x']), AS(data['y'][0]), r, *map(AS, whole))


def nested(function, between, out_axes=OUT_AXES):
    f = between(inside(function), 0)
LEVELS
    return f
"""


class LaneExpressions(Expressions):
    """Make random expressions that lanes compute at once."""

    def condition(self, scope: Scope, depth: int) -> str:
        """Return the text of a condition."""
        if "python" in self.features:
            return super().condition(scope, depth)
        low = round(self.choice.uniform(-1, 1.5), 2)
        template = self.choice.choice(CONDITIONS).replace("LOW", str(low)).replace("HIGH", f"{low + 1.5:.2f}")
        return self.filled(template, "S", scope, depth)

    def template(self, kind: str, scope: Scope, depth: int) -> str:
        """Return the template of a rule."""
        if depth > 0 and self.having("calls", 0.05):
            return self.choice.choice(RULED)
        found = super().template(kind, scope, depth)
        looks = found.startswith("captured") or ("tripled" in found and "python" not in self.features)
        return "np.sin({X})" if looks else found


class Laned(Flow):
    """Make random statements whose control flow is calls."""

    def __init__(self, choice: random.Random, features: frozenset[str]) -> None:
        super().__init__(choice, features)
        self.every = features
        self.make = LaneExpressions(choice, features)
        self.converted(False)

    def converted(self, wanted: bool) -> None:
        """Write Python's own control flow from now on, or calls."""
        self.python = wanted
        self.features = self.make.features = self.every if wanted else self.every - WITHOUT_PYTHON

    def wanted(self, depth: int) -> list[tuple[str, float, Maker]]:
        """Return the statements of each feature, with how often they are wanted."""
        if self.python:
            return super().wanted(depth)
        found = Statements.wanted(self, depth)
        if depth <= 0:
            return found
        return [
            *found,
            ("branches", 1.5, self.choose),
            ("while", 1.2, self.repeat),
            ("loops", 1.0, self.count),
            ("loops", 0.8, self.scan),
            ("calls", 0.8, self.within),
            ("functions", 0.8, self.derive),
            ("functions", 1.0, self.convert),
            ("loops", 0.5, self.deepen),
            ("branches", 0.5, self.choose_product),
            ("functions", 0.6, self.derive_twice),
        ]

    def bound(self) -> str:
        """Return how often a loop repeats, perhaps as an integer of another type than Python's."""
        count = self.choice.choice(COUNTS)
        if self.choice.random() < 0.8:
            return count
        dtype = self.choice.choice(TYPES)
        return f"np.{dtype}({count})" if count.isdigit() else f"n.astype(np.{dtype})[{self.choice.randrange(3)}]"

    def deepen(self, scope: Scope, depth: int) -> Lines:
        """Put a loop into a loop into a loop, of any sorts, around a function."""
        kind = self.kind("SVVP")
        body, _, lines = self.define(scope, min(depth, 1), kind, kind)
        step = body
        for _ in range(3):
            name, t, u = self.make.fresh("g"), self.make.fresh("t"), self.make.fresh("t")
            limit = self.bound() if self.choice.random() < 0.5 else "2"
            call = self.choice.choice(
                (
                    f"wg.fori_loop(0, {limit}, lambda i, {u}: {step}({u}) * 0.5, {t})",
                    f"wg.scan(lambda {u}, e: ({step}({u}) * e, None), {t}, WEIGHTS[:2] * 0.5)[0]",
                    f"wg.while_loop(lambda c: (c[1] < 3) & (np.sum(c[0]) < 1.5), "
                    f"lambda c: ({step}(c[0]) + 0.25, c[1] + 1), ({t}, 0))[0]",
                )
            )
            lines += [f"def {name}({t}):", f"    return {call}"]
            step = name
        return [*lines, f"{self.bind(scope, kind)} = {step}({self.given(kind, scope)})"]

    def choose_product(self, scope: Scope, depth: int) -> Lines:
        """Choose between a product with a matrix and the solution of equations, whatever the depth."""
        del depth
        t, a = self.make.fresh("t"), self.make.fresh("t")
        sides = [f"lambda {t}, {a}: np.linalg.solve(4.0 * np.eye(3) + np.sin({a}), {t})", f"lambda {t}, {a}: {a} @ {t}"]
        self.choice.shuffle(sides)
        call = f"wg.cond({self.make.condition(scope, 1)}, {', '.join(sides)}, {self.given('VQ', scope)})"
        return [f"{self.bind(scope, 'V')} = {call}"]

    def derive_twice(self, scope: Scope, depth: int) -> Lines:
        """Differentiate a function inside of the program twice."""
        kind = self.kind("VVPS")
        body, _, lines = self.define(scope, depth, kind, "S")
        x, d = self.make.fresh("v"), self.make.fresh("v")
        lines += [f"{name} = {self.given(kind, scope)}" for name in (x, d)]
        call = self.choice.choice(sorted(ORDERS.values())).format(f=body, x=x, d=d)
        return [*lines, f"{self.bind(scope, 'S')} = {call}"]

    def value_of(self, kind: str, scope: Scope) -> str:
        """Return the text of a bounded float of a kind."""
        return self.make.filled("np.sin({X})", kind, scope, 2)

    def define(
        self, scope: Scope, depth: int, parameters: str, results: str, head: Lines | None = None, alone: bool = False
    ) -> tuple[str, list[Name], Lines]:
        """Define a function of parameters of some kinds; return its name, its parameters, and lines.

        Args:
            scope: what surrounds it.
            depth: how deep its blocks may nest.
            parameters: the letters of their kinds.
            results: the letters of the kinds of its results.
            head: its first lines, in which the parameters are {0}, {1}.
            alone: whether it uses nothing of what surrounds it.
        """
        name = self.make.fresh("g")
        names = [Name(self.make.fresh("p"), kind, own=kind != "S") for kind in parameters]
        around = [n for n in scope.names if n.text.isidentifier() and n.number in "fi"]
        if alone:
            around = [Name("WEIGHTS", "V"), Name("np.ones((2, 3))", "M"), Name("0.5", "S")]
        outer = [dataclasses.replace(n, own=False, bound=False) for n in around]
        inner = Scope([*outer, *names], [] if alone else list(scope.rules))
        body = self.block(inner, self.choice.choice((0, 1, 1, 2)), depth - 1)
        values = [self.value_of(kind, inner) for kind in results]
        text = values[0] if len(values) == 1 else f"({', '.join(values)})"
        first = [line.format(*(n.text for n in names)) for line in head or []]
        listed = ", ".join(n.text for n in names)
        lines = [f"def {name}({listed}):", *("    " + line for line in (*first, *body, f"return {text}"))]
        return name, names, lines

    def bind(self, scope: Scope, kinds: str) -> str:
        """Return new names for results, separated by commas."""
        names = [self.make.fresh("v") for _ in kinds]
        scope.names += [Name(name, kind, own=kind != "S") for name, kind in zip(names, kinds, strict=True)]
        return ", ".join(names)

    def kinds(self) -> str:
        """Return the letters of one or two kinds."""
        return "".join(self.kind("SSVVVPMQ") for _ in range(self.choice.choice((1, 1, 2))))

    def given(self, kinds: str, scope: Scope) -> str:
        """Return arguments of some kinds."""
        return ", ".join(f"{self.value(kind, scope)} * 1.0" for kind in kinds)

    def choose(self, scope: Scope, depth: int) -> Lines:
        """Choose between functions."""
        parameters, results = self.kinds(), self.kinds()
        count = self.choice.choice((2, 2, 3))
        defined = [self.define(scope, depth, parameters, results) for _ in range(count)]
        lines = [line for _, _, found in defined for line in found]
        names = ", ".join(name for name, _, _ in defined)
        given = self.given(parameters, scope)
        if count == 2:
            call = f"wg.cond({self.make.condition(scope, 1)}, {names}, {given})"
        else:
            index = self.choice.choice(("n[0]", "np.sum(n) - 1", "np.argmax(x)", "n[1] * 2 - 1"))
            call = f"wg.switch({index}, [{names}], {given})"
        return [*lines, f"{self.bind(scope, results)} = {call}"]

    def repeat(self, scope: Scope, depth: int) -> Lines:
        """Repeat while a condition holds, a number of times at most."""
        kind, count = self.kind("SVVPM"), self.make.fresh("n")
        body, (carried,), lines = self.define(scope, depth, kind, kind)
        test = self.make.condition(scope.inner(carried), 1)
        limit = self.bound()
        start = self.given(kind, scope)
        lines += [
            f"def go{count}({carried.text}, {count}):",
            f"    return ({count} < {limit}) & ({test})"
            if self.choice.random() < 0.7
            else f"    return {count} < {limit}",
            f"{self.bind(scope, kind)} = wg.while_loop(lambda c: go{count}(*c), "
            f"lambda c: ({body}(c[0]), c[1] + 1), ({start}, 0))[0]",
        ]
        return lines

    def count(self, scope: Scope, depth: int) -> Lines:
        """Repeat for each integer of a range, and write at the place that is counted."""
        kind = self.kind("VVPMS")
        write = {"V": "{0}[i % 3] *= 0.5", "P": "{0}[i % 2] += 0.25", "M": "{0}[i % 2, i % 3] -= 0.5"}.get(kind)
        head = [write] if write and "writes" in self.features and self.choice.random() < 0.7 else []
        body, _, lines = self.define(scope, depth, kind, kind, head)
        lines[0] = lines[0].replace("(", "(i, ", 1)
        lower = self.choice.choice(("0", "0", "1", "n[2]", "-1"))
        upper, start = self.bound(), self.given(kind, scope)
        return [*lines, f"{self.bind(scope, kind)} = wg.fori_loop({lower}, {upper}, {body}, {start})"]

    def scan(self, scope: Scope, depth: int) -> Lines:
        """Carry a value over rows, and leave another behind."""
        kind = self.kind("SVP")
        rows, row = self.choice.choice((("V", "S"), ("M", "V"), ("Q", "V"), ("W", "P")))
        left = {"V": "S", "M": "V", "Q": "V", "W": "P"}[rows]
        body, _, lines = self.define(scope, depth, kind + row, kind + left)
        order = self.choice.choice(("", ", reverse=True"))
        call = f"wg.scan({body}, {self.given(kind, scope)}, {self.given(rows, scope)}{order})"
        return [*lines, f"{self.bind(scope, kind + rows)} = {call}"]

    def within(self, scope: Scope, depth: int) -> Lines:
        """Batch a function inside of the program."""
        rows, row, other = self.choice.choice((("V", "S", "V"), ("M", "V", "S"), ("Q", "V", "P"), ("W", "P", "S")))
        body, _, lines = self.define(scope, depth, row + other, row)
        given = f"{self.given(rows, scope)}, {self.given(other, scope)}"
        jit = "wg.jit" if self.choice.random() < 0.3 else ""
        return [*lines, f"{self.bind(scope, rows)} = {jit}(wg.vmap({body}, in_axes=(0, None)))({given})"]

    def derive(self, scope: Scope, depth: int) -> Lines:
        """Differentiate a function inside of the program."""
        kind = self.kind("VVPS")
        body, _, lines = self.define(scope, depth, kind, "S")
        given = self.given(kind, scope)
        form = self.choice.choice(("grad", "grad", "jvp", "hessian", "jit"))
        if form == "jvp":
            call, kind = f"wg.jvp({body}, ({given},), ({self.given(kind, scope)},))[1]", "S"
        elif form == "hessian":
            call, kind = f"np.sum(wg.hessian({body})({given}))", "S"
        else:
            call = f"{'wg.jit' if form == 'jit' else ''}(wg.grad({body}))({given})"
        return [*lines, f"{self.bind(scope, kind)} = {call}"]

    def convert(self, scope: Scope, depth: int) -> Lines:
        """Call a jitted function with Python's own control flow."""
        parameters, results = self.kinds(), self.kinds()
        self.converted(True)
        defined, _, lines = self.define(scope, depth + 1, parameters, results, alone=True)
        self.converted(False)
        return ["@wg.jit", *lines, f"{self.bind(scope, results)} = {defined}({self.given(parameters, scope)})"]


class LaneProgram(Program):
    """Hold a program, with one point for all of its lanes."""

    @property
    def text(self) -> str:
        """The program as a file that runs."""
        x, y, r, n, m = (f"np.array({value.tolist()})" for value in self.points[0])
        call = f"nested(program, lambda f, _: f)({{'x': {x}, 'y': [{y}]}}, {r}, ({n}, {m}))"
        return self.source + f"\n\nnp.set_printoptions(precision=12)\nprint({call})\n"


def random_axis(choice: random.Random, rank: int) -> int:
    """Return an axis of an array of so many axes, perhaps counted from the end."""
    return choice.choice((0, 0, choice.randrange(rank), -1, choice.randrange(-rank, 0)))


def program_text(choice: random.Random, features: frozenset[str]) -> tuple[str, list[str]]:
    """Return the source of a program and the kinds of its results."""
    maker = Laned(choice, features)
    python = choice.random() < 0.12
    maker.converted(python)
    scope = Scope([Name("x", "V", bound=False), Name("y", "M", bound=False), Name("s", "S")])
    lines = maker.block(scope, choice.randint(1, 3), 2)
    if not python:
        makers = [maker.choose, maker.repeat, maker.count, maker.scan, maker.within, maker.derive, maker.convert]
        makers += [maker.deepen, maker.choose_product, maker.derive_twice]
        for _ in range(choice.randint(1, 2)):
            lines += choice.choice(makers)(scope, 2)
    lines += maker.block(scope, choice.randint(0, 2), 1)
    results = [n for n in scope.names if n.text not in ("x", "y", "s") and n.number in "fci"][-5:]
    same = ["WEIGHTS[1] * 2.0"] * (choice.random() < 0.2)
    lines.append(f"return ({', '.join([*(n.text for n in results), maker.value('S', scope), *same])},)")
    lines.insert(0, "s = r * 1.0")
    text = "\n".join(["def program(x, y, r, n, m):", *("    " + line for line in lines)]) + "\n"
    return text, [*(n.kind for n in results), "S", *(SAME for _ in same)]


def random_lanes(seed: int, index: int, features: frozenset[str] = FEATURES) -> LaneProgram:
    """Return a program; the same one for the same seed and index."""
    choice = random.Random(f"lanes-{seed}-{index}")
    features = some_of(choice, features - LEFT_OUT) | {"branches", "while", "loops", "functions", "calls"}
    text, kinds = program_text(choice, features)
    shapes: dict[str, tuple[int, ...]] = {"x": (3,), "y": (2, 3), "r": (), "n": (3,), "m": (3,)}
    ranks = [None if kind == SAME else len(SHAPES[kind]) for kind in kinds]
    levels, outs = [], []
    for level in range(choice.choice(LEVELS)):
        axes = lane_axes(choice, shapes)
        size = choice.choice(SIZES)
        for leaf, axis in axes.items():
            if axis is not None:
                shape = list(shapes[leaf])
                shape.insert(axis % (len(shape) + 1), size)
                shapes[leaf] = tuple(shape)
        outs.append(tuple(None if rank is None else random_axis(choice, rank + level + 1) for rank in ranks))
        levels.append(
            f"    f = between(wg.vmap(f, in_axes={axes_text(choice, axes)}, out_axes=out_axes[{level}]), {level + 1})"
        )
    tail = TAIL.replace("AS", choice.choice(("wg.asarray", "wg.asarray", "wg.asarray", "(lambda v: v)")))
    tail = tail.replace("OUT_AXES", repr(tuple(outs))).replace("LEVELS", "\n".join(levels))
    source = with_definitions(ast.unparse(ast.parse(text + tail)) + "\n")
    return LaneProgram(f"lanes_{seed}_{index}", source, (random_arguments(choice, shapes),), ())


def lane_axes(choice: random.Random, shapes: dict[str, tuple[int, ...]]) -> dict[str, int | None]:
    """Return an axis for each argument, or None; at least one has one."""
    while True:
        axes = {
            leaf: None if choice.random() < 0.4 else random_axis(choice, len(shape) + 1)
            for leaf, shape in shapes.items()
        }
        if any(axis is not None for axis in axes.values()):
            return axes


def axes_text(choice: random.Random, axes: dict[str, int | None]) -> str:
    """Return axes in the containers of the arguments, or fewer of them."""
    x, y, r, n, m = (axes[leaf] for leaf in LEAVES)
    rows = f"[{y}]" if choice.random() < 0.5 else f"{y}"
    data = f"{x}" if x == y else f"{{'x': {x}, 'y': {rows}}}"
    return f"({data}, {r}, {n if n == m else (n, m)})"


def random_arguments(choice: random.Random, shapes: dict[str, tuple[int, ...]]) -> tuple[Any, ...]:
    """Return arrays of random numbers, integers and truth values."""
    rng = np.random.default_rng(choice.getrandbits(32))
    x, y, r = (np.round(rng.uniform(-1.2, 1.2, shapes[leaf]), 3) + 0.0005 for leaf in "xyr")
    return x, y, r, rng.integers(0, 3, shapes["n"]), rng.integers(0, 2, shapes["m"]).astype(bool)
