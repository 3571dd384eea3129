"""Calls of functions that the user gave, which may not have the parameters that these have; missing arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any

from wengert.core.diagnostics.source_positions import is_own
from wengert.errors import DtypeError
from wengert.support.hints import hints, public_module

UNEXPECTED = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'$")

NONE: Mapping[str, Any] = MappingProxyType({})


class Missing:
    """Be an argument that was not given, where None may be one."""

    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = Missing()


def called_with(
    name: str,
    function: Callable[..., Any],
    parameters: str,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any] = NONE,
) -> Any:
    """Return what a user's function gives.

    Args:
        name: what it is called, for errors.
        function: the function.
        parameters: what it is called with, for errors.
        arguments: those by position.
        keywords: those by name.

    Raises:
        DtypeError: its parameters do not allow the call; found out where the call fails, so that others cost nothing.

    >>> called_with("fori_loop (body_fun)", lambda x: x, "i, value", (0, 1.0))
    Traceback (most recent call last):
    wengert.errors.DtypeError: fori_loop (body_fun): parameters (x); a call with (i, value), 2 arguments, must be...
    """
    try:
        return function(*arguments, **keywords)
    except TypeError as error:
        signature = refused_by(function, error, arguments, keywords)
        if signature is None:
            raise
        needed = f"a call with ({parameters}), {arguments_text(len(arguments), keywords)}, must be possible"
        raise DtypeError(name, f"parameters {signature}", needed, "Change them, or what is passed") from error


def arguments_text(count: int, keywords: Mapping[str, Any]) -> str:
    """Return how errors say how many arguments there are."""
    return ", ".join([f"{count} argument{'s'[: count != 1]}", *(f"{name}=" for name in keywords)])


def refused_by(
    function: Callable[..., Any], error: TypeError, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> inspect.Signature | None:
    """Return the parameters of a function if it is what an error, raised by the call itself, comes from."""
    last: TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not is_own(last.tb_frame.f_code.co_filename):
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function that is written in C
        return None
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        empty = inspect.Parameter.empty
        return inspect.Signature([p.replace(annotation=empty) for p in signature.parameters.values()])
    return None


def say_parameter(error: TypeError) -> None:
    """Add to NumPy's own error about a parameter of PyTorch's how that is called; ours say so themselves."""
    found = UNEXPECTED.match(str(error))
    if found is None:
        return
    written = hints("parameters", "numpy").get(found[2])
    if written is None or public_module(found[1]) in (None, "wengert"):
        return
    note = f"Functions and methods of Wengert have NumPy's parameters: write {written} for {found[2]}=."
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
