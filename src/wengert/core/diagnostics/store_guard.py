"""Calls of the user's functions: what they must not do is refused, and neither NumPy nor they can hide that.

Values stored into ndarrays: what holds a gradient is refused, and NumPy's words about that give way to ours.
"""

from __future__ import annotations

import math
import opcode
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from wengert.core.diagnostics.numpy_warnings import warn_at_users_line
from wengert.core.diagnostics.python_errors import about_tensor
from wengert.core.diagnostics.source_positions import ASSIGNING, names_beside, use_at
from wengert.core.primitives.signatures import say_parameter
from wengert.errors import GraphError, WengertError
from wengert.support.refusals import REFUSALS

BUILDING = frozenset({"array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "fromiter", "full"})
WRITING = frozenset({"__setitem__", "astype", "copyto", "fill", "itemset", "place", "put", "setfield", "setitem"})
"""Functions and methods that put what they ask for a number into an array, a new one or one that exists."""
READING = frozenset(
    {
        "complex",
        "float",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "phase",
        "polar",
        "rect",
        *dir(math),
    }
)
"""Functions that ask for a number and keep none: that the user asks for one is plain to see."""
ITERATING = frozenset({"CONTAINS_OP", "FOR_ITER", "LIST_EXTEND", "SEND", "SET_UPDATE", "UNPACK_EX", "UNPACK_SEQUENCE"})
"""Instructions that run what an iterator does, such as `map`."""
STORING = ASSIGNING | {opcode.opmap["STORE_ATTR"]}
LOSES = "an ndarray would silently lose the gradient"
CAUGHT = "The function caught this error and went on, with what plain NumPy would not have given it."
"""What is noted on a refusal that did not end the function of a user."""
DROPPED = "Error setting single item of array."
"""What NumPy says in place of every error of a value stored through `.flat`."""
NUMPYS = (AttributeError, RuntimeError, SystemError, ValueError)
"""Errors that NumPy and Python raise from ours."""


def is_assigning(frame: FrameType) -> bool:
    """Tell whether a frame is at `target[index] = value`: NumPy then asks the value for a number or an array.

    So it does at `target.flat = value`, `.real` and `.imag`.
    """
    return frame.f_code.co_code[frame.f_lasti] in STORING


def is_storing(frame: FrameType) -> bool:
    """Tell whether a frame that asks for a number puts it into an array, by an assignment or a call."""
    if is_assigning(frame):
        return True
    name = use_at(frame.f_code, frame.f_lasti).called
    return name in BUILDING or name in WRITING


def is_reading(frame: FrameType) -> bool:
    """Tell whether a frame that asks for a number does so to read it, and not through what may keep it.

    C code that asks has no frame: in `f(x)` with `f = array.fill`, or in `map(array.fill, xs)`, that of the user does.
    What goes through functions that are none of `READING` is taken to be read if the statement names `float`, as
    `list(map(float, xs))` does, and the code nothing that writes.
    """
    code, offset = frame.f_code, frame.f_lasti
    instruction = opcode.opname[code.co_code[offset]]
    if "CALL" in instruction:
        name = use_at(code, offset).called
        if getattr(variable(frame, name), "__name__", name) in READING:
            return True
    elif not instruction.startswith("STORE") and instruction not in ITERATING:
        return True
    return WRITING.isdisjoint(code.co_names) and not {"complex", "float"}.isdisjoint(names_beside(code, offset))


def variable(frame: FrameType, name: str) -> Any:
    """Return what a variable of a frame holds; None if there is none of this name."""
    return frame.f_locals.get(name, frame.f_globals.get(name))


def stored_in_ndarray(given: str, reason: str = LOSES, remedy: str | None = None) -> GraphError:
    """Return the error for a value stored into an ndarray; `remedy` says what to do about one of a library's."""
    return GraphError(
        "assignment",
        f"{given}, stored into an ndarray",
        f"a Tensor is needed to hold it, because {reason}",
        remedy
        or "Make the array with wengert.numpy (zeros, empty, or asarray for one that exists), or store .detach()",
    )


def writes_traced(error: BaseException | None) -> bool:
    """Tell whether an error comes of a value that a transformation follows and NumPy was to put into an ndarray."""
    while error is not None:
        if isinstance(error, WengertError) and error.writes:
            return True
        error = error.__cause__
    return False


def call_user(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function of a user for a transformation; NumPy's and Python's errors around ours give way to it.

    NumPy answers whatever a Tensor says that is stored into an ndarray (`array[0] = x`, `array.fill(x)`) with a
    ValueError raised from it, and C code that goes on after an error (SciPy's `brentq`) ends in another: a SystemError
    from it, or one that knows nothing of it (`fsolve`, `milp`), since what is called with an error pending may drop
    that. The traceback
    leads through the user's line in any case. Warnings name it, too.

    Raises:
        WengertError: the function caught a refusal, and went on with what plain NumPy would not have given it.
    """
    outer = REFUSALS.noted
    noted = REFUSALS.noted = []
    try:
        found = warn_at_users_line(function, *args, **kwargs)
        if noted:
            raise caught(noted[0])
        return found
    except Exception as error:  # C code raises errors of any class, its own among them
        if isinstance(error, TypeError):
            say_parameter(error)
            if (ours := about_tensor(error)) is not None:
                raise ours.with_traceback(error.__traceback__) from None
        if isinstance(error, NUMPYS) and isinstance(error.__cause__, WengertError):
            raise error.__cause__.with_traceback(error.__traceback__) from None
        if str(error) == DROPPED:
            raise stored_in_ndarray("a value that is not a number").with_traceback(error.__traceback__) from None
        if noted and is_unaware(error, noted[0]):
            raise caught(noted[0]) from error
        raise
    finally:
        REFUSALS.noted = outer
        if outer is not None:  # whoever called may catch it, too
            outer += noted
        del noted  # whose errors refer to this frame


def is_unaware(error: Exception, refusal: Exception) -> bool:
    """Tell whether an error was raised as if there had not been the refusal before it."""
    if isinstance(error, WengertError) or error is refusal.__cause__:
        return False
    return error.__cause__ is None and error.__context__ is None


def caught(error: Exception) -> Exception:
    """Return a refusal that the function of a user caught."""
    if not was_caught(error):
        error.add_note(CAUGHT)
    return error


def was_caught(error: Exception) -> bool:
    """Tell whether an error is a refusal that the function of a user caught."""
    return CAUGHT in getattr(error, "__notes__", ())
