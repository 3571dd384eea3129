"""Exceptions, and the one form of their texts: what was given; what is needed. What to do."""

from __future__ import annotations

from typing import Any

from wengert.support.refusals import refusal

__all__ = [
    "DetachedWarning",
    "DtypeError",
    "EscapedValueError",
    "FileFormatError",
    "GraphError",
    "NumericalError",
    "RangeError",
    "RegistrationError",
    "ShapeError",
    "TracedTruthError",
    "UsageError",
    "WengertError",
    "WorkerError",
    "describe",
    "placed",
]

PARTS = 4


class WengertError(Exception):
    """Be the common base of every error that Wengert raises.

    Args:
        *parts: its text, or the four parts that `describe` makes one of.
        place: where in the program it was; it gets a line of its own.

    Attributes:
        writes: whether NumPy was to put a value that a transformation follows into an ndarray.
    """

    writes = False

    def __init__(self, *parts: Any, place: Any = None) -> None:
        if len(parts) == PARTS:
            parts = (describe(*parts),)
        super().__init__(*parts if place is None else (f"{parts[0]}\n  {place}",))


class ShapeError(WengertError, ValueError):
    """Report arrays whose shapes do not fit."""


class DtypeError(WengertError, TypeError):
    """Report a value whose type or dtype cannot be used."""


class Refusal(WengertError):
    """Be the base of errors that plain NumPy would not raise, so that no program can go on as if it had."""

    def __init__(self, *parts: Any, place: Any = None) -> None:
        super().__init__(*parts, place=place)
        refusal(self)


class GraphError(Refusal, RuntimeError):
    """Report an operation that the recorded graph does not allow."""


class EscapedValueError(GraphError):
    """Report a value used after the transformation that made it has ended."""


class TracedTruthError(GraphError):
    """Report that Python asked for the elements of a value that is being traced: its truth, an index, a number."""


class FileFormatError(WengertError, ValueError):
    """Report a file whose content is damaged or not what it should be."""


class UsageError(Refusal, ValueError):
    """Report an argument whose value cannot be used."""


class NumericalError(WengertError, FloatingPointError):
    """Report a cotangent that became NaN or infinite while anomalies are being looked for."""


class RangeError(Refusal, OverflowError):
    """Report an integer that needs more than 64 bits where values are arrays."""


class RegistrationError(WengertError, TypeError):
    """Report a primitive whose declaration is incomplete or contradictory."""


class WorkerError(WengertError, RuntimeError):
    """Report that other processes which compute were lost, or fell silent, however often they were asked."""


class DetachedWarning(UserWarning):
    """Warn of a result that does not depend on what it is differentiated by, so that the derivative is zero."""


def describe(name: str, given: str, needed: str, action: str) -> str:
    """Return the text of an error in the house form.

    Args:
        name: what was called, as its user knows it.
        given: what was given.
        needed: what is needed.
        action: what to do, as a sentence without its period.

    Returns:
        The text.

    >>> describe("backward", "shape (3,) was given", "one element is needed", "Call vjp")
    'backward: shape (3,) was given; one element is needed. Call vjp.'
    """
    return f"{name}: {given}; {needed}. {action}."


def placed(error: WengertError, place: str) -> WengertError:
    """Return an error of the house form that also says where what was given stands.

    Args:
        error: the error.
        place: where in the arguments it stands, as one writes it.

    Returns:
        An error of the same class.

    >>> print(placed(WengertError(describe("grad", "the integer 3", "a float is needed", "Write 3.0")), "p['n']"))
    grad: the integer 3 at p['n']; a float is needed. Write 3.0.
    """
    given, semicolon, rest = str(error).partition("; ")
    return type(error)(f"{given} at {place}{semicolon}{rest}")


class named_after:  # noqa: N801 - a function in effect, at a third of the cost of a generator
    """Let errors of a function that is called within name the one that its user called.

    Args:
        name: the function that was called.
        inner: the one that it calls, whose own errors begin with its name; others stay as they are.

    >>> with named_after("odeint", "solve_ivp"):
    ...     raise UsageError("solve_ivp", "rtol=-1.0", "0 or more is needed", "Correct it")
    Traceback (most recent call last):
    wengert.errors.UsageError: odeint: rtol=-1.0; 0 or more is needed. Correct it.
    """

    __slots__ = ("inner", "name")

    def __init__(self, name: str, inner: str) -> None:
        self.name, self.inner = name, inner

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        """Give an error its name."""
        if isinstance(error, WengertError) and (text := str(error)).startswith(f"{self.inner}: "):
            error.args = (self.name + text.removeprefix(self.inner), *error.args[1:])
