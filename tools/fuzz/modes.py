"""What every transformation makes of a program, against plain NumPy and differences of it."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
from tools.evaluated_kernels import evaluate_checked
from tools.fuzz.programs import Program, copies, loaded, total
from wengert.compile import executable
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.core.values.recording import READERS, budget_of
from wengert.errors import DtypeError, UsageError, WengertError
from wengert.graph import trace
from wengert.lowering.partition import partition_graph
from wengert.passes.pipeline import flatten_calls
from wengert.sparse import jacobian as sparse_jacobian
from wengert.sparse.patterns.find_pattern import pattern_with_causes
from wengert.sparse.patterns.tangent_program import TangentProgram
from wengert.sparse.plans.map_plan import plan_by_maps
from wengert.support import config

__all__ = ["EVALUATED", "MODES", "Outcome", "Rejected", "Subject", "budget_for", "outcome", "subject"]

Arrays = list[Any]
Point = tuple[Any, ...]

STEP = 1e-3
LARGE = 1e3
FLOATS = 3
"""How many of a program's arguments are differentiated; those that follow are integers and truth values."""
SECONDS = {"plain": 0.25, "mode": 30}
"""How much of the processor's time a program may take in plain NumPy, at all points, and in a mode: what lanes of lanes
make of third derivatives takes up to 14 s to compile."""
ROUNDED, ITERATED = 1e-14, 1e-9
"""How close values of Tensors are to NumPy's: those of products that are summed in an order that depends on where
operands lie, and of complex products, may differ in the last bits; those of solvers, by their tolerances. Others do
not."""
NUMBERS = 4e-16
"""How close single numbers are: NumPy raises its scalars and its arrays without dimensions to powers by two functions,
whose last bits differ."""
PRECISION = 2e-5
"""How far values in single precision are from those in double; a decision that rounding makes leads further away."""


class Rejected(Exception):
    """Say that a program cannot be compared: it fails in NumPy, or its derivatives are not smooth enough to know."""


class Disagreement(Exception):
    """Say what was found and what is right."""


class Endless(BaseException):
    """Say that something did not end; nothing that handles exceptions is to handle this."""


@dataclass(frozen=True)
class Outcome:
    """Say how a mode compares: "agreed", "refused" or "disagreed", in which way, the particulars, and the line."""

    verdict: str
    way: str = ""
    text: str = ""
    line: str = ""


@dataclass(frozen=True)
class Expected:
    """Hold what is right at one point: the results of plain NumPy, and derivatives of the loss by differences."""

    results: Arrays
    loss: float
    slopes: tuple[float, ...]
    curvature: float


@dataclass
class Subject:
    """Hold a program with what is right at its points."""

    module: ModuleType
    points: tuple[Point, ...]
    directions: tuple[Point, ...]
    expected: tuple[Expected, ...]
    single: bool
    nearness: float
    traced: dict[str, Any] = field(default_factory=dict)

    @property
    def lanes(self) -> Arrays:
        """All points in one, with an axis for them in front."""
        return [np.stack(values) for values in zip(*self.points, strict=True)]

    def jitted(self, name: str) -> Any:
        """Return a function of the module, traced once for all modes."""
        if name not in self.traced:
            self.traced[name] = wg.jit(getattr(self.module, name))
        return self.traced[name]


# What is right


def subject(program: Program) -> Subject:
    """Load a program and find out what is right.

    Raises:
        Rejected: it cannot be compared.
    """
    with limited(SECONDS["plain"]), quiet():
        try:
            module = loaded(program)
            expected = what_is_right(module, program)
        except Rejected:
            raise
        except (Exception, Endless) as error:  # the program itself is wrong
            raise Rejected(f"{type(error).__name__}: {error}") from error
    text = program.source.partition("def program")[2]
    rounded = any(word in text for word in ("einsum", "matmul", "dot", "@", "inner", "convolve", "kron", "linalg"))
    rounded = rounded or re.search(r"\dj\b", text) is not None
    nearness = ITERATED if "from wengert.scipy import fft" in program.source else ROUNDED if rounded else 0.0
    return Subject(module, program.points, program.directions, expected, "single" in text, nearness)


def what_is_right(module: ModuleType, program: Program) -> tuple[Expected, ...]:
    """Return results and derivatives at every point."""
    results = [plain(module, point) for point in program.points]
    module.single = np.float64  # type: ignore[attr-defined]  # differences need the precision
    slopes = [differences(module, point, program.directions) for point in program.points]
    wide = [plain(module, point) for point in program.points]
    module.single = np.float32  # type: ignore[attr-defined]  # what programs import
    if not all(
        same(x, y, PRECISION) for one, other in zip(results, wide, strict=True) for x, y in zip(one, other, strict=True)
    ):
        raise Rejected("its values depend on the precision")
    return tuple(Expected(result, *slope) for result, slope in zip(results, slopes, strict=True))


def plain(module: ModuleType, point: Point) -> Arrays:
    """Return the results of plain NumPy, as arrays."""
    arguments = copies(point)
    results = call_user(module.program, arguments, {})  # which raises what the library refuses and the program handles
    if any(isinstance(x, tuple | list | dict) for x in results):
        raise Rejected("it returns containers")
    found = [x if type(x) in (int, float) else np.copy(x, order="K")[()] for x in results]
    if not all(np.array_equal(x, y) for x, y in zip(arguments, point, strict=True)):
        raise Rejected("it writes into its arguments")
    if any(
        np.asarray(x).dtype == object or not np.all(np.isfinite(x)) or np.max(np.abs(x), initial=0) > LARGE
        for x in found
    ):
        raise Rejected("its values are too large")
    return found


def differences(
    module: ModuleType, point: Point, directions: tuple[Point, ...]
) -> tuple[float, tuple[float, ...], float]:
    """Return the loss, its derivative along each direction, and its second derivative along the first."""
    middle = float(module.loss(*copies(point)))
    slopes, curvatures = [], []
    for direction in directions:
        at = {k: float(module.loss(*moved(point, direction, k * STEP))) for k in (-2, -1, 1, 2)}
        near, far = (at[1] - at[-1]) / (2 * STEP), (at[2] - at[-2]) / (4 * STEP)
        bent, more_bent = (at[1] - 2 * middle + at[-1]) / STEP**2, (at[2] - 2 * middle + at[-2]) / (4 * STEP**2)
        if not same(near, far, 1e-4) or not same(bent, more_bent, 2e-4) or max(abs(near), abs(bent)) > LARGE:
            raise Rejected("its derivatives are not smooth")
        slopes.append((4 * near - far) / 3)
        curvatures.append((4 * bent - more_bent) / 3)
    return middle, tuple(slopes), curvatures[0]


def moved(point: Point, direction: Point, step: float) -> Point:
    """Return a point at some distance."""
    return (*((x + step * d)[()] for x, d in zip(point, direction, strict=False)), *copies(point[FLOATS:]))


def same(found: Any, wanted: Any, tolerance: float) -> bool:
    """Tell whether numbers agree, relative to the larger of them and 1."""
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    return bool(np.all(np.abs(np.asarray(found) - wanted) <= tolerance * scale))


# Comparisons


def compare(what: str, found: Any, wanted: Any, tolerance: float, wider: bool = False) -> None:
    """Compare an array with the right one: shape, dtype and values.

    Where a program gives an integer of Python's or, as values decide, a float, a traced one gives a float. Where it
    gives a Python number or, as values decide, a scalar, a traced one gives a scalar, and numbers that differ from lane
    to lane are arrays, whose dtypes do not give way (ADR 0018): there, results may have a wider one, and a number that
    another branch has as an array or a scalar has its dtype.
    """
    gives_way = wider and type(wanted) in (int, float)
    if isinstance(found, wg.Tensor):
        found = found.numpy()
    found = np.asarray(found)
    wanted = np.asarray(wanted, float if type(wanted) is int and found.dtype == float else None)
    if found.shape != wanted.shape:
        raise Disagreement(f"{what}: shape {found.shape}, not {wanted.shape}")
    wide = wider and np.promote_types(found.dtype, wanted.dtype) == found.dtype
    if found.dtype != wanted.dtype and not wide and not (gives_way and found.dtype.kind == "f"):
        raise Disagreement(f"{what}: dtype {found.dtype}, not {wanted.dtype}")
    if not same(found, wanted, tolerance):
        raise Disagreement(f"{what}:\n{found}\nnot\n{wanted}")


def compare_results(this: Subject, found: Any, k: int, exact: bool = False, wider: bool = False) -> None:
    """Compare all results at a point."""
    wanted = this.expected[k].results
    if len(found) != len(wanted):
        raise Disagreement(f"{len(found)} results, not {len(wanted)}")
    for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
        tolerance = 1e-4 if np.asarray(other).dtype in (np.float32, np.complex64) or this.single else 1e-9
        iterated = this.nearness == ITERATED and tolerance > ITERATED
        last_bit = NUMBERS if np.ndim(other) == 0 else 0.0
        tolerance = max(this.nearness, last_bit) if exact and not iterated else tolerance
        compare(f"result {i} at point {k}", one, other, tolerance, wider)


def compare_gradient(this: Subject, gradient: Any, k: int) -> None:
    """Compare a gradient with the derivatives along directions."""
    for part, argument in zip(gradient, this.points[k][:FLOATS], strict=True):
        if np.shape(part) != np.shape(argument):
            raise Disagreement(f"gradient at point {k}: shape {np.shape(part)}, not {np.shape(argument)}")
        if np.asarray(part).dtype != np.asarray(argument).dtype:
            raise Disagreement(f"gradient at point {k}: dtype {np.asarray(part).dtype}")
    for direction, slope in zip(this.directions, this.expected[k].slopes, strict=True):
        try:
            compare_slope(this, f"gradient at point {k}", product(gradient, direction), slope)
        except Disagreement as found:
            raise Disagreement(f"{found}; it is {gradient}, along {direction}") from found


def product(gradient: Any, direction: Point) -> float:
    """Return the inner product of a gradient and a direction."""
    return float(sum(np.sum(g * d) for g, d in zip(map(np.asarray, gradient), direction, strict=True)))


def compare_slope(this: Subject, what: str, found: Any, wanted: float, tolerance: float = 1e-6) -> None:
    """Compare a derivative along a direction."""
    if np.shape(found) != ():
        raise Disagreement(f"{what}: shape {np.shape(found)}")
    if not same(found, wanted, 2e-3 if this.single else tolerance):
        raise Disagreement(f"{what}: {found}, not {wanted}")


# Modes


def eager(this: Subject) -> None:
    """Compare values of Tensors that nothing is recorded of: NumPy's, bit for bit; a refusal that is hidden is one."""
    compare_results(this, call_user(this.module.program, [*map(wg.tensor, this.points[0])], {}), 0, exact=True)


def tape(this: Subject) -> None:
    """Compare values and .grad of leaves; a refusal that the program hides is one, as in transformations."""
    leaves = [wg.tensor(x, requires_grad=True) for x in this.points[0][:FLOATS]]
    results = call_user(this.module.program, (*leaves, *copies(this.points[0][FLOATS:])), {})
    compare_results(this, [x.detach() if isinstance(x, wg.Tensor) else x for x in results], 0, exact=True)
    loss = this.module.total(results)
    if not isinstance(loss, wg.Tensor) or not loss.requires_grad:
        return compare_gradient(this, [np.zeros_like(x) for x in this.points[0][:FLOATS]], 0)
    loss.backward()
    zeros = [np.zeros_like(x) for x in this.points[0][:FLOATS]]
    gradient = [z if x.grad is None else x.grad.numpy() for x, z in zip(leaves, zeros, strict=True)]
    return compare_gradient(this, gradient, 0)


def gradient_of(function: Any) -> Any:
    """Return the gradient with respect to all three arguments."""
    return wg.grad(function, argnums=(0, 1, 2))


def grad(this: Subject) -> None:
    """Compare the gradient."""
    compare_gradient(this, gradient_of(this.module.loss)(*copies(this.points[0])), 0)


def at_first_point(this: Subject, function: Any) -> tuple[Any, Point]:
    """Return a function of what is differentiated alone, and where to differentiate it."""
    point = copies(this.points[0])
    return (lambda *arguments: function(*arguments, *point[FLOATS:])), point[:FLOATS]


def jvp(this: Subject) -> None:
    """Compare derivatives along directions."""
    for direction, slope in zip(this.directions, this.expected[0].slopes, strict=True):
        value, tangent = wg.jvp(*at_first_point(this, this.module.loss), direction)
        compare_slope(this, "value", value, this.expected[0].loss)
        compare_slope(this, "tangent", tangent, slope)


def vmap(this: Subject, jitted: bool = False) -> None:
    """Compare results of all points at once."""
    program = this.jitted("program") if jitted else this.module.program
    found = wg.vmap(program)(*this.lanes)
    for k in range(len(this.points)):
        compare_results(this, [x[k] for x in found], k, wider=True)


def vmap_jit(this: Subject) -> None:
    """Compare results of all points at once, of the traced program."""
    vmap(this, jitted=True)


def jit(this: Subject) -> None:
    """Compare results of the traced program at every point."""
    program = this.jitted("program")
    for k, point in enumerate(this.points):
        compare_results(this, program(*copies(point)), k, wider=True)


def grad_jit(this: Subject) -> None:
    """Compare gradients of the traced program at every point."""
    function = gradient_of(this.jitted("loss"))
    for k, point in enumerate(this.points):
        compare_gradient(this, function(*copies(point)), k)


def jit_grad(this: Subject) -> None:
    """Compare traced gradients at every point."""
    function = wg.jit(gradient_of(this.module.loss))
    for k, point in enumerate(this.points):
        compare_gradient(this, function(*copies(point)), k)


def kernels(this: Subject) -> None:
    """Compare gradients at every point that the kernels of the traced ones give, and NumPy between them."""
    graph = trace(gradient_of(this.module.loss))(*copies(this.points[0]))
    segments = partition_graph(flatten_calls(graph))
    for k, point in enumerate(this.points):
        compare_gradient(this, segments.run(copies(point), evaluate_checked), k)


def compare_lanes(this: Subject, gradients: Any) -> None:
    """Compare gradients of all points."""
    for k in range(len(this.points)):
        compare_gradient(this, [x[k] for x in gradients], k)


def vmap_grad(this: Subject) -> None:
    """Compare gradients of all points at once."""
    compare_lanes(this, wg.vmap(gradient_of(this.module.loss))(*this.lanes))


def jit_vmap_grad(this: Subject) -> None:
    """Compare traced gradients of all points at once."""
    compare_lanes(this, wg.jit(wg.vmap(gradient_of(this.module.loss)))(*this.lanes))


def vmap_grad_jit(this: Subject) -> None:
    """Compare gradients of all points at once, of the traced program."""
    compare_lanes(this, wg.vmap(gradient_of(this.jitted("loss")))(*this.lanes))


def curved(this: Subject, function: Any) -> float:
    """Return the second derivative along the first direction, as the gradient of a product with the gradient."""
    direction = this.directions[0]

    def slope(*arguments: Any) -> Any:
        gradient = gradient_of(function)(*arguments)
        return sum(np.sum(g * d) for g, d in zip(gradient, direction, strict=True))

    return product(gradient_of(slope)(*copies(this.points[0])), direction)


def grad_grad(this: Subject) -> None:
    """Compare the second derivative by reverse mode twice."""
    compare_slope(this, "curvature", curved(this, this.module.loss), this.expected[0].curvature, 1e-4)


def grad_grad_jit(this: Subject) -> None:
    """Compare the second derivative by reverse mode twice, of the traced program."""
    compare_slope(this, "curvature", curved(this, this.jitted("loss")), this.expected[0].curvature, 1e-4)


def jvp_grad(this: Subject) -> None:
    """Compare the second derivative by forward over reverse mode."""
    _, tangents = wg.jvp(*at_first_point(this, gradient_of(this.module.loss)), this.directions[0])
    compare_slope(this, "curvature", product(tangents, this.directions[0]), this.expected[0].curvature, 1e-4)


def sparse(this: Subject) -> None:
    """Compare the pattern of the Jacobian of the loss' gradient, or of the results, and what maps compute of it."""
    function = random.Random(this.module.__name__).choice((this.module.program, gradient_of(this.module.loss)))
    narrow, point = at_first_point(this, function)
    program = TangentProgram("sparse", leaves_alone(narrow), point, range(FLOATS))
    pattern, _ = pattern_with_causes(program, False)
    dense = dense_jacobian(leaves_alone(narrow), point)
    covered = pattern.to_scipy().toarray()
    if covered.shape != dense.shape:
        raise Rejected("a traced program gives numbers of other types than a plain one")
    missed = np.argwhere((dense != 0) & ~covered)
    if len(missed):
        raise Disagreement(f"pattern: elements {missed.tolist()} of {dense!r} are not in it")
    COUNTS["patterns"] += 1
    COUNTS["exact"] += int(np.array_equal(covered, dense != 0))
    compare_plan(program, point, dense)
    compare_elements(leaves_alone(narrow), point, dense)


def compare_elements(function: Any, point: Point, dense: Any) -> None:
    """Compare what a plan by elements computes with a dense matrix, where something is gathered."""
    try:
        made = sparse_jacobian(function, tuple(range(FLOATS)), plan="elements", format="flat")
        found = made(*copies(point)).toarray()
    except (UsageError, DtypeError):  # nothing is gathered, or results are complex
        return
    COUNTS["elements"] += 1
    require_dense(found, dense)


def require_dense(found: Any, dense: Any) -> None:
    """Compare what a plan computes with a dense matrix."""
    scale = np.abs(dense[np.isfinite(dense)]).max(initial=1.0)
    if not np.allclose(found, dense, rtol=PRECISION, atol=PRECISION * scale, equal_nan=True):
        raise Disagreement(f"plan: {found!r} in place of {dense!r}")


COUNTS = Counter[str]()
"""How many patterns were compared, how many had no element that is zero, and how many plans by maps there were."""


def leaves_alone(function: Any) -> Any:
    """Return a function that gives those leaves of a result that have derivatives."""
    return lambda *xs: [x for x in wg.tree.leaves(function(*xs)) if is_differentiable(aval_of(x).dtype)]


def dense_jacobian(function: Any, point: Point) -> Any:
    """Return the Jacobian of all leaves by all arguments as one matrix, computed by columns."""
    sizes = [int(np.size(x)) for x in point]
    columns = []
    for j in range(sum(sizes)):
        unit = np.zeros(sum(sizes))
        unit[j] = 1
        parts = np.split(unit, np.cumsum(sizes)[:-1])
        tangents = [
            part.reshape(np.shape(x)).astype(aval_of(x).dtype)[()] for part, x in zip(parts, point, strict=True)
        ]
        _, moved = wg.jvp(function, copies(point), tangents)
        columns.append(np.concatenate([np.empty(0), *[np.reshape(x, -1) for x in moved]]))
    return np.stack(columns, axis=1)


def compare_plan(program: TangentProgram, point: Point, dense: Any) -> None:
    """Compare what a plan by maps computes with a dense Jacobian, where there is such a plan."""
    plan = plan_by_maps(program, point)
    if plan is None:
        return
    COUNTS["plans"] += 1
    pattern = plan.pattern
    found = np.zeros(dense.shape)
    found[pattern.rows, pattern.indices] = wg.jit(plan.elements)(*copies(point))
    require_dense(found, dense)


def taylor(this: Subject) -> None:
    """Compare the first three Taylor coefficients."""
    value, slope, half = wg.taylor(*at_first_point(this, this.module.loss), this.directions[0], 2)
    compare_slope(this, "value", value, this.expected[0].loss)
    compare_slope(this, "slope", slope, this.expected[0].slopes[0])
    compare_slope(this, "curvature", 2 * half, this.expected[0].curvature, 1e-4)


# Jitted calls on tapes, and when they become native


def chosen(result: Any, form: int) -> Any:
    """Return a part of a result of a call: what a mask, a decision, or an index leaves of it."""
    if np.result_type(result).kind != "f" or not np.size(result):
        return result
    if form == 0:
        return np.where(result > 0.1, result * result, 0.0)
    if form == 1:
        return np.where(np.cos(result) > 0.0, np.where(result < 0.5, result, 1.5), np.sin(result))
    if form == 2:
        return result * 2.0 if np.sum(result) > 0.2 else np.exp(np.sin(result))
    if form == 3:
        return result[..., -1] * result[..., 0] if np.ndim(result) else result * result
    return result[result > 0.1] * 3.0 if np.ndim(result) else result


def chosen_loss(this: Subject, program: Any) -> Any:
    """Return a number that depends on parts of what two calls of a program give, the second on what the first gave.

    What the traced program gives as a float is one here, too, where another branch gives one.
    """
    forms = random.Random(this.module.__name__).choices(range(5), k=8)
    kinds = [np.result_type(result).kind for result in this.jitted("program")(*copies(this.points[0]))]

    def results(*arguments: Any) -> list[Any]:
        found = zip(program(*arguments), kinds, strict=True)
        return [
            result * 1.0 if kind == "f" and np.result_type(result).kind in "iu" else result for result, kind in found
        ]

    def loss(x: Any, y: Any, r: Any, n: Any, m: Any) -> Any:
        first = [chosen(result, form) for result, form in zip(results(x, y, r, n, m), forms, strict=False)]
        shift = 0.1 * np.sin(total(first))
        second = [chosen(result, 4 - form) for result, form in zip(results(x + shift, y, r, n, m), forms, strict=False)]
        return total(first) + (total(second) if np.sum(shift) > 0.0 else 0.5 * total(second))

    return loss


def chosen_expected(this: Subject) -> tuple[Any, Any]:
    """Return the gradient of what is chosen of a program that is not jitted, and how it changes in a direction."""
    function = gradient_of(chosen_loss(this, this.module.program))
    if "chosen" not in this.traced:
        this.traced["chosen"] = wg.jvp(*at_first_point(this, function), this.directions[0])
        value = wg.stop_gradient(
            at_first_point(this, chosen_loss(this, this.module.program))[0](*map(wg.tensor, this.points[0][:FLOATS]))
        )
        plain = chosen_loss(this, this.module.program)(*copies(this.points[0]))
        if this.nearness and not np.allclose(value, plain, rtol=1e-6, atol=1e-9):
            raise Rejected("a decision depends on rounding")
    found: tuple[Any, Any] = this.traced["chosen"]
    if not all(np.all(np.isfinite(x)) and np.max(np.abs(x)) < LARGE for part in found for x in part):
        raise Rejected("its derivatives are too large")
    return found


def compare_chosen(this: Subject, program: Any, second: bool) -> None:
    """Compare first derivatives on a tape of parts of what a jitted program gives, or first and second ones."""
    gradient, change = chosen_expected(this)
    leaves = [wg.tensor(x, requires_grad=True) for x in this.points[0][:FLOATS]]
    loss = chosen_loss(this, program)(*leaves, *copies(this.points[0][FLOATS:]))
    if not isinstance(loss, wg.Tensor) or not loss.requires_grad:
        raise Rejected("it depends on no argument")
    options = {"allow_unused": True, "materialize_grads": True}
    found = wg.autograd.grad(loss, leaves, create_graph=second, **options)
    for i, (one, other) in enumerate(zip(found, gradient, strict=True)):
        compare(f"gradient {i}", wg.stop_gradient(one), other, 1e-3 if this.single else 1e-9)
    slope = sum(np.sum(g * d) for g, d in zip(found, this.directions[0], strict=True)) if second else None
    if isinstance(slope, wg.Tensor) and slope.requires_grad:
        for i, (one, other) in enumerate(zip(wg.autograd.grad(slope, leaves, **options), change, strict=True)):
            compare(f"second derivative {i}", one, other, 1e-3 if this.single else 1e-8)


def tape_jit(this: Subject) -> None:
    """Compare derivatives on a tape through calls of the traced program."""
    compare_chosen(this, this.jitted("program"), second=False)


def tape_tape_jit(this: Subject) -> None:
    """Compare second derivatives on a tape through calls of the traced program."""
    compare_chosen(this, this.jitted("program"), second=True)


@contextlib.contextmanager
def native_after(calls: int) -> Iterator[None]:
    """Let graphs become native after some calls."""
    before = config.NATIVE, config.AT_ONCE, executable.calls_to_wait
    config.NATIVE, config.AT_ONCE, executable.calls_to_wait = True, False, lambda graph: calls
    try:
        yield
    finally:
        config.NATIVE, config.AT_ONCE, executable.calls_to_wait = before


def switch(this: Subject) -> None:
    """Compare values, of arrays or Tensors, and gradients, or derivatives on a tape, while they become native."""
    choice = random.Random(this.module.__name__)
    with native_after(choice.choice((1, 2, 3))):
        program = wg.jit(this.module.program)
        if choice.random() < 0.5:
            for second in (False, True, True):  # six first derivatives of calls, and four second ones
                compare_chosen(this, program, second)
            return
        slope = wg.jit(gradient_of(this.module.loss))
        given = choice.choice((lambda x: x, wg.tensor))
        for _ in range(2):
            for k, point in enumerate(this.points):
                compare_results(this, program(*map(given, copies(point))), k, wider=True)
                compare_gradient(this, slope(*copies(point)), k)


MODES: dict[str, Callable[[Subject], None]] = {
    "eager": eager,
    "tape": tape,
    "grad": grad,
    "jvp": jvp,
    "vmap": vmap,
    "vmap(grad)": vmap_grad,
    "grad(grad)": grad_grad,
    "jvp(grad)": jvp_grad,
    "taylor": taylor,
    "jit": jit,
    "grad(jit)": grad_jit,
    "jit(grad)": jit_grad,
    "kernels(grad)": kernels,
    "jit(vmap(grad))": jit_vmap_grad,
    "vmap(jit)": vmap_jit,
    "vmap(grad(jit))": vmap_grad_jit,
    "grad(grad(jit))": grad_grad_jit,
    "sparse": sparse,
    "tape(jit)": tape_jit,
    "tape(tape(jit))": tape_tape_jit,
    "switch": switch,
}
EVALUATED = list(MODES).index("jit")
"""How many modes trace nothing: these take a twentieth of the time of all."""


# Running them


def outcome(run: Callable[[Any], None], this: Any) -> Outcome:
    """Return how a mode compares; `this` is a Subject, or one of another kind, with the module of a program.

    A mode begins with the globals that plain NumPy left: Tensors under differentiation that another mode left there
    would be captured, and become further inputs of a traced graph.
    """
    with quiet(), restored(vars(this.module)):
        try:
            with limited(SECONDS["mode"]), loops_within(budget_for(this.module.__name__)):
                run(this)
        except Disagreement as found:
            return Outcome("disagreed", str(found).partition(":")[0].split(" ")[0], str(found))
        except Rejected as rejected:
            return Outcome("left out", "", str(rejected))
        except Endless as late:
            return Outcome("disagreed", "endless", f"it did not end within {SECONDS['mode']} seconds\n{late}")
        except Exception as error:  # noqa: BLE001 - whatever else the library raises is what is looked for
            refusal = refused(error) or unbound(error, this)
            if refusal is None:
                return Outcome("disagreed", f"{type(error).__name__} {error}"[:60], traceback.format_exc(limit=-6))
            return Outcome("refused", type(refusal).__name__, str(refusal), users_line(error, this))
    return Outcome("agreed")


@contextlib.contextmanager
def restored(variables: dict[str, Any]) -> Iterator[None]:
    """Give names the values back that they had before."""
    before = dict(variables)
    try:
        yield
    finally:
        for name in variables.keys() - before.keys():
            del variables[name]
        variables.update(before)


def refused(error: BaseException | None) -> WengertError | None:
    """Return the library's own error: the one raised, or the cause of one of NumPy's, which stores into an ndarray.

    A program may handle it by an error of its own, which is an Exception. What tells to mend a pass is no refusal.
    """
    while error is not None and not isinstance(error, WengertError):
        error = error.__context__ if type(error) is Exception else error.__cause__
    return None if "Mend the pass" in str(error) or "Mend the step" in str(error) else error


def unbound(error: Exception, this: Any) -> NameError | None:
    """Return the error of a program that reads an unbound name in a branch, which plain Python may leave out."""
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    return error if isinstance(error, NameError) and this.module.__name__ in innermost.filename else None


def users_line(error: BaseException, this: Any) -> str:
    """Return the innermost line of the program that an error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.line or "" for frame in reversed(frames) if this.module.__name__ in frame.filename), "")


def budget_for(name: str) -> int | None:
    """Return how many bytes the reverse of a loop may keep in a program of a name: in a third of them few."""
    return random.Random(f"budget of {name}").choice((None,) * 8 + (50, 200, 500, 2000))


@contextlib.contextmanager
def loops_within(size: int | None) -> Iterator[None]:
    """Let the reverse of loops keep so many bytes, or as few as can be."""
    if size is None:
        yield
        return
    with wg.memory_budget(size), budget_of(size, is_share=True):
        yield
    READERS.forgotten = False  # functions of other programs may have entries again


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let warnings pass."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Endless where something takes too much of the processor's time."""

    def stop(_number: int, frame: Any) -> None:
        raise Endless("".join(traceback.format_stack(frame)[-8:]))

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
