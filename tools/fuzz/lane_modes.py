"""What transformations make of programs in batches of batches, against loops over plain calls."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
from tools.fuzz.modes import LARGE, SECONDS, Disagreement, Endless, Rejected, compare, limited, native_after, quiet
from tools.fuzz.programs import Program, copies, loaded, total, weights

__all__ = ["LANE_MODES", "LaneSubject", "lane_subject"]

Function = Callable[..., Any]
Steps = tuple[tuple[str, int], ...]
OUTSIDE = -1
"""The place of a transformation around all lanes; others count the batches inside of it."""


def of_floats(function: Function, whole: Any) -> tuple[Function, Function]:
    """Return a number that depends on all results as a function of the arguments that are differentiated."""

    def loss(x: Any, y: Any, r: Any) -> Any:
        return total(function({"x": x, "y": [y]}, r, whole))

    return loss, wg.grad(loss, argnums=(0, 1, 2))


def graded(function: Function) -> Function:
    """Return the gradient of a function of a program's arguments."""
    return lambda data, r, whole: of_floats(function, whole)[1](data["x"], data["y"][0], r)


def directions(point: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a fixed direction at a point."""
    return tuple(weights(np.shape(x)) * np.ones(np.shape(x)) for x in point)


def pushed(function: Function) -> Function:
    """Return a function's value and its derivative in a direction."""

    def value_and_tangent(data: Any, r: Any, whole: Any) -> Any:
        point = (data["x"], data["y"][0], r)
        return wg.jvp(of_floats(function, whole)[0], point, directions(point))

    return value_and_tangent


def curved(function: Function) -> Function:
    """Return how the gradient of a function changes in a direction."""

    def tangents(data: Any, r: Any, whole: Any) -> Any:
        point = (data["x"], data["y"][0], r)
        return wg.jvp(of_floats(function, whole)[1], point, directions(point))[1]

    return tangents


def swept(function: Function) -> Function:
    """Return the gradient of a function by the tape."""

    def gradient(data: Any, r: Any, whole: Any) -> Any:
        leaves = [wg.tensor(x, requires_grad=True) for x in (data["x"], data["y"][0], r)]
        loss = of_floats(function, whole)[0](*leaves)
        if isinstance(loss, wg.Tensor) and loss.requires_grad:
            loss.backward()
        return tuple(np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves)

    return gradient


OPERATIONS: dict[str, Function] = {"grad": graded, "jvp": pushed, "hvp": curved, "tape": swept, "jit": wg.jit}
STEPS: dict[str, Steps] = {
    "lanes": (),
    "jit(lanes)": (("jit", OUTSIDE),),
    "lanes(jit)": (("jit", 0),),
    "lanes(jit(lanes))": (("jit", 1),),
    "jit(lanes(jit(lanes(jit))))": (("jit", 0), ("jit", 1), ("jit", OUTSIDE)),
    "grad(lanes)": (("grad", OUTSIDE),),
    "lanes(grad)": (("grad", 0),),
    "lanes(grad(lanes))": (("grad", 1),),
    "jvp(lanes)": (("jvp", OUTSIDE),),
    "lanes(jvp)": (("jvp", 0),),
    "lanes(jvp(lanes))": (("jvp", 1),),
    "hvp(lanes)": (("hvp", OUTSIDE),),
    "lanes(hvp)": (("hvp", 0),),
    "lanes(hvp(lanes))": (("hvp", 1),),
    "tape(lanes)": (("tape", OUTSIDE),),
    "tape(jit(lanes))": (("jit", OUTSIDE), ("tape", OUTSIDE)),
    "jit(grad(lanes))": (("grad", OUTSIDE), ("jit", OUTSIDE)),
    "jit(lanes(grad))": (("grad", 0), ("jit", OUTSIDE)),
    "grad(jit(lanes))": (("jit", OUTSIDE), ("grad", OUTSIDE)),
    "lanes(grad(jit))": (("jit", 0), ("grad", 0)),
    "lanes(jit(grad))": (("grad", 0), ("jit", 0)),
    "grad(lanes(jit))": (("jit", 0), ("grad", OUTSIDE)),
    "lanes(grad(jit(lanes)))": (("jit", 1), ("grad", 1)),
    "jit(lanes(hvp))": (("hvp", 0), ("jit", OUTSIDE)),
    "hvp(lanes(jit))": (("jit", 0), ("hvp", OUTSIDE)),
    "hvp(jit(lanes))": (("jit", OUTSIDE), ("hvp", OUTSIDE)),
}
"""What each mode puts where, in this order."""


@dataclass
class LaneSubject:
    """Hold a program, the same in plain Python, and its arguments."""

    module: ModuleType
    plain: ModuleType
    program: Program
    known: dict[Steps, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of all lanes, in their containers."""
        x, y, r, n, m = copies(self.program.points[0])
        return {"x": x, "y": [y]}, r, (n, m)

    def run(self, module: ModuleType, steps: Steps) -> Any:
        """Return what transformations in some places make of the program in lanes."""
        return self.transformed(module, steps)(*self.arguments)

    def transformed(self, module: ModuleType, steps: Steps) -> Function:
        """Return the program in lanes, with transformations in some places."""

        def between(function: Function, place: int) -> Function:
            for name, where in steps:
                if where == place:
                    function = OPERATIONS[name](function)
            return function

        derived = [where for name, where in steps if name != "jit"]
        inner = derived[0] if derived and derived[0] != OUTSIDE else None
        axes = module.nested.__defaults__[0]
        if inner is not None:
            axes = (*axes[:inner], *((0,) * (len(axes) - inner)))
        return between(module.nested(module.program, between, axes), OUTSIDE)

    def require(self, found: Any, wanted: Any) -> None:
        """Raise a Disagreement where results differ from what is right."""
        if len(found) != len(wanted):
            raise Disagreement(f"{len(found)} results, not {len(wanted)}")
        for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
            compare(f"result {i}", one, other.numpy() if isinstance(other, wg.Tensor) else other, 1e-8, wider=True)

    def expected(self, steps: Steps) -> Any:
        """Return what is right."""
        steps = tuple(("grad" if name == "tape" else name, where) for name, where in steps if name != "jit")
        if steps not in self.known:
            found = self.run(self.plain, steps)
            if not all(np.all(np.isfinite(x)) and np.max(np.abs(x), initial=0) < LARGE for x in found):
                raise Rejected("its derivatives are too large")
            self.known[steps] = found
        return self.known[steps]


def lane_subject(program: Program) -> LaneSubject:
    """Load a program.

    Raises:
        Rejected: it cannot be compared.
    """
    text = program.source.replace("import wengert as wg", "from tools.fuzz.plainly import PLAIN as wg")
    plain = dataclasses.replace(program, name=f"{program.name}_plain", source=text)
    try:
        with limited(4 * SECONDS["plain"]), quiet():
            this = LaneSubject(loaded(program), loaded(plain), program)
            this.expected(())
    except Rejected:
        raise
    except (Exception, Endless) as error:  # the program itself is wrong
        raise Rejected(f"{type(error).__name__}: {error}") from error
    return this


def compare_lanes(this: LaneSubject, steps: Steps) -> None:
    """Compare what a mode gives with loops over plain calls.

    Raises:
        Rejected: the derivatives are not finite.
        Disagreement: it differs.
    """
    wanted = this.expected(steps)
    this.require(this.run(this.module, steps), wanted)


def switch_lanes(this: LaneSubject) -> None:
    """Compare values or a gradient while what computes them becomes native, in calls 1 to 5."""
    choice = random.Random(this.module.__name__)
    with native_after(choice.choice((1, 2, 3))):
        steps = choice.choice(((("jit", OUTSIDE),), (("jit", 0), ("grad", OUTSIDE), ("jit", OUTSIDE))))
        run = this.transformed(this.module, steps)
        for _ in range(5):
            this.require(run(*this.arguments), this.expected(steps))


LANE_MODES: dict[str, Callable[[LaneSubject], None]] = {
    **{mode: functools.partial(compare_lanes, steps=steps) for mode, steps in STEPS.items()},
    "switch": switch_lanes,
}
