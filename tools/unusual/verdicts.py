"""What becomes of a call, here and in the other library, and whether that is the same."""

from __future__ import annotations

import contextlib
import copy
import io
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert as wg
from tools.unusual.calls import Usual
from tools.unusual.variations import Variation, variations
from wengert.errors import DtypeError, WengertError

__all__ = ["MODES", "Difference", "differences", "of_call", "stop"]

SECONDS = 0.5
"""Of the processor, since other programs may use the machine too."""
TOLERANCES = {"e": 4e-3, "f": 2e-4, "d": 1e-8, "g": 1e-8, "F": 2e-4, "D": 1e-8, "G": 1e-8}
"""How far results of composed functions may be from SciPy's, by the lesser precision; bits are other tests'."""
HOUSE = re.compile(r"^.+?: .+; .+ (is|are|be|must|can|need|needed|has|have)\b.*\. .+\.$", re.DOTALL)
PYTHONS = re.compile(
    r"(takes|missing|got|expected|positional|required) .*(argument|positional|keyword)|is out of bounds for array"
    r"|cannot be interpreted as an integer|integer argument expected|could not be broadcast"
)
"""What errors say that Python or NumPy raises about the number and names of arguments."""


class TooLong(BaseException):
    """Stop a call that takes too long."""


def stop(*_: Any) -> None:
    """Stop what is running."""
    raise TooLong


@dataclass(frozen=True)
class Outcome:
    """Hold what a call gave, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}".replace("\n", " ")[:160]
        return "; ".join(f"{np.asarray(x).dtype}{np.shape(x)} {x!s:.60}" for x in leaves(self.value)).replace("\n", " ")


@dataclass(frozen=True)
class Difference:
    """Hold in what a call of ours differs from the other library's.

    `kind` is "other" (another result), "accepted" (where it refuses), "refused" (where it computes), "raw" (the same,
    but not in words), "slow" (no result in time), "family" (an error of another class) or "bare" (both raise, ours
    neither in the house form nor the other library's).
    """

    kind: str
    mode: str
    call: str
    what: str
    theirs: Outcome
    ours: Outcome

    def __str__(self) -> str:
        what = self.what.replace("\n", " ")
        return f"{self.kind}\t{self.mode}\t{self.call}\t{what}\t{self.theirs}\t{self.ours}"


def leaves(value: Any) -> list[Any]:
    """Return the arrays and numbers in a result, Tensors as arrays."""
    if isinstance(value, wg.Tensor):
        return [value.detach().numpy()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [x for item in value for x in leaves(item)]
    return [value]


def outcome(compute: Callable[..., Any], args: Any, kwargs: Any) -> Outcome:
    """Return what a call gives with arguments of its own, or the error."""
    own_args, own_kwargs = copies(args), copies(kwargs)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return Outcome(compute(*own_args, **own_kwargs))
        except Exception as error:  # noqa: BLE001 - any may come, and is what this is about
            return Outcome(error=error.with_traceback(None))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TooLong as error:  # also where it comes after the call
        return Outcome(error=error.with_traceback(None))


def copies(value: Any) -> Any:
    """Return containers with copies of writable arrays, in their layout."""
    if isinstance(value, dict):
        return {key: copies(x) for key, x in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([copies(x) for x in value])
    if type(value) is not np.ndarray or not value.flags.writeable or not value.flags.forc:
        return value
    return copy.deepcopy(value)


def same(found: Any, want: Any) -> bool:
    """Tell whether two results are: shapes, dtypes, elements."""
    ours, theirs = leaves(found), leaves(want)
    return len(ours) == len(theirs) and all(map(alike, ours, theirs))


def alike(x: Any, y: Any) -> bool:
    """Tell whether two parts of results are."""
    if not isinstance(y, np.ndarray | np.generic | int | float | complex | bool):
        return type(x) is type(y) or (x is None) == (y is None)
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.dtype.newbyteorder("=") != y.dtype.newbyteorder("="):
        return False
    if x.dtype.kind not in "fc" or y.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    scale = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    near = TOLERANCES[x.dtype.char]
    return bool(np.allclose(x, y, rtol=near, atol=near * min(float(scale), 1e300), equal_nan=True))


def related(ours: BaseException, theirs: BaseException) -> bool:
    """Tell whether whoever catches their error catches ours.

    Which of these classes a wrong argument is told by changes from function to function, and with what fails first.
    """
    argument = (TypeError, ValueError, RuntimeError, AttributeError, KeyError, ZeroDivisionError, OverflowError)
    return isinstance(ours, type(theirs)) or (isinstance(ours, argument) and isinstance(theirs, argument))


def in_words(ours: BaseException, theirs: BaseException | None) -> bool:
    """Tell whether an error of ours says what to do, or is the one that Python or NumPy raise for the same."""
    if isinstance(ours, (WengertError, np.linalg.LinAlgError)):
        return True
    return str(ours) == str(theirs) or bool(HOUSE.match(str(ours)) or PYTHONS.search(str(ours)))


def verdict(theirs: Outcome, ours: Outcome) -> str:
    """Return the kind of a difference; "" if there is none."""
    if isinstance(theirs.error, TooLong | SystemError | MemoryError):
        return ""
    if theirs.error is None and ours.error is None:
        return "" if same(ours.value, theirs.value) else "other"
    if ours.error is None:
        return "accepted"
    if isinstance(ours.error, TooLong):
        return "slow"
    if theirs.error is None:
        no_numbers = isinstance(ours.error, DtypeError) and any(
            np.asarray(x).dtype.kind in "OU" for x in leaves(theirs.value)
        )
        return "" if no_numbers else "refused" if in_words(ours.error, None) else "raw"
    if not in_words(ours.error, theirs.error):
        return "bare"
    return "" if related(ours.error, theirs.error) else "family"


def replaced(value: Any, rest: Iterator[Any]) -> Any:
    """Return arguments with others in the place of the arrays that can be differentiated."""
    if differentiable(value):
        return next(rest)
    if isinstance(value, dict):
        return {key: replaced(x, rest) for key, x in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([replaced(x, rest) for x in value])
    return value


def differentiable(value: Any) -> bool:
    """Tell whether a value is an array of floats that Tensors can hold."""
    return type(value) is np.ndarray and value.dtype.kind in "fc" and value.dtype.isnative


def differentiated(value: Any) -> list[Any]:
    """Return those arrays."""
    if isinstance(value, dict):
        return [x for item in value.values() for x in differentiated(item)]
    if isinstance(value, tuple | list):
        return [x for item in value for x in differentiated(item)]
    return [value] if differentiable(value) else []


def of_leaves(function: Callable[..., Any], change: Variation) -> tuple[Callable[..., Any], list[Any]]:
    """Return a call as a function of the arrays that can be differentiated, and these."""

    def compute(*values: Any) -> Any:
        rest = iter(values)
        args, kwargs = replaced(change.args, rest), replaced(change.kwargs, rest)
        return function(*args, **kwargs)

    return compute, differentiated((change.args, change.kwargs))


def on_tape(function: Callable[..., Any], change: Variation) -> Outcome:
    """Return what a call gives of Tensors that require grad."""
    compute, xs = of_leaves(function, change)
    return outcome(lambda: compute(*[wg.tensor(x, requires_grad=True) for x in xs]), (), {})


def backward(function: Callable[..., Any], change: Variation) -> Outcome:
    """Return what a call gives whose gradients are those of its arguments by shape and dtype."""
    compute, xs = of_leaves(function, change)

    def differentiated() -> Any:
        arguments = [wg.tensor(x, requires_grad=True) for x in xs]
        found = compute(*arguments)
        parts = [y for y in traced(found) if isinstance(y, wg.Tensor) and y.requires_grad]
        gradients = wg.autograd.grad(parts, arguments, [np.ones_like(y.detach()) for y in parts], allow_unused=True)
        for x, gradient in zip(xs, gradients, strict=True):
            if gradient is not None and (gradient.shape, gradient.dtype) != (x.shape, x.dtype):
                raise AssertionError(f"{gradient.dtype}{gradient.shape} is the gradient of {x.dtype}{x.shape}")
        return found

    return outcome(differentiated, (), {})


def forward(function: Callable[..., Any], change: Variation) -> Outcome:
    """Return the primal of a call in forward mode."""
    compute, xs = of_leaves(function, change)
    return outcome(lambda: wg.jvp(lambda *ys: traced(compute(*ys)), tuple(xs), tuple(map(np.ones_like, xs)))[0], (), {})


def in_lanes(function: Callable[..., Any], change: Variation) -> Outcome:
    """Return what a call gives in the second of two lanes."""
    compute, xs = of_leaves(function, change)

    def second() -> Any:
        found = wg.vmap(lambda *ys: traced(compute(*ys)))(*[np.stack([x, x]) for x in xs])
        return [x[1] for x in found]

    return outcome(second, (), {})


def jitted(function: Callable[..., Any], change: Variation) -> Outcome:
    """Return what a call gives when it is traced."""
    compute, xs = of_leaves(function, change)
    return outcome(lambda: wg.jit(lambda *ys: traced(compute(*ys)))(*xs), (), {})


def traced(value: Any) -> list[Any]:
    """Return the arrays of a result."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [x for item in value for x in traced(item)]
    return [value] if isinstance(value, wg.Tensor | np.ndarray | np.generic | int | float | complex) else []


MODES: dict[str, Callable[[Callable[..., Any], Variation], Outcome]] = {
    "plain": lambda function, change: outcome(function, change.args, change.kwargs),
    "tape": on_tape,
    "backward": backward,
    "jvp": forward,
    "vmap": in_lanes,
    "jit": jitted,
}


def differences(call: Usual, change: Variation, modes: Sequence[str]) -> Iterator[Difference]:
    """Yield in what an unusual call differs from the other library's, by modes."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = outcome(call.theirs, change.args, change.kwargs)
        for mode in modes:
            if mode != "plain" and not comparable(theirs, change):
                continue
            found = MODES[mode](call.ours, change)
            kind = verdict(theirs, found)
            if mode != "plain" and kind == "refused":
                continue  # as integers are by jvp, and what depends on elements by jit
            if mode in ("vmap", "jit") and kind == "accepted" and change.kind == "values":
                continue  # elements are not known there
            if kind:
                yield Difference(kind, mode, call.label, change.what, theirs, found)


def comparable(theirs: Outcome, change: Variation) -> bool:
    """Tell whether a call has something to differentiate, and a result that transformations give."""
    return bool(differentiated((change.args, change.kwargs)) and (theirs.error or traced(theirs.value)))


def of_call(call: Usual, modes: Sequence[str], every: int = 1) -> Iterator[Difference]:
    """Yield in what unusual calls of a function differ, those of a kind that the usual one has, too, only once.

    Of `every` so many one is made, which one depends on the function.
    """
    skipped: set[tuple[str, str]] = set()
    first = len(call.label) % every
    for i, change in enumerate(variations(call)):
        if change.kind != "usual" and i % every != first:
            continue
        for found in differences(call, change, modes):
            if change.kind == "usual":
                skipped.add((found.kind, found.mode))
            elif (found.kind, found.mode) in skipped:
                continue
            yield found
