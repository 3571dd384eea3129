"""Which arguments of a function to trace are static: named by position or by name, however they are passed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from wengert.core.diagnostics.argument_checks import shown
from wengert.errors import UsageError
from wengert.support.attributes import signature

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (*POSITIONAL, inspect.Parameter.KEYWORD_ONLY)


def as_tuple(parameter: str, value: Any, kind: type) -> tuple[Any, ...]:
    """Return one value or several of a type as a tuple."""
    found = tuple(value) if isinstance(value, list | tuple | set | frozenset | range) else (value,)
    if not all(isinstance(item, kind) and not isinstance(item, bool) for item in found):
        needed = "positions of arguments" if kind is int else "names of arguments"
        given = f"{shown(value)} for {parameter}"
        raise UsageError("jit", given, f"{needed} are needed", "Pass one or a tuple of them")
    return found


def static_arguments(
    fun: Callable[..., Any], positions: tuple[int, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the positions and the names of all static arguments, whichever of the two they were given by.

    Raises:
        UsageError: the function has no such argument.
    """
    parameters = parameters_of(fun) if positions or names else None
    if parameters is None:
        return positions, names
    known_positions(fun, "static_argnums", positions)
    named = [p.name for p in parameters if p.kind in NAMED]
    for name in names:
        if name not in named and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            given = f"{name!r} in static_argnames of a function of ({', '.join(named)})"
            raise UsageError("jit", given, "the name of one of its arguments is needed", "Correct it")
    order = [p.name for p in parameters if p.kind in POSITIONAL]
    by_name = [order.index(name) for name in names if name in order]
    by_position = [order[i] for i in positions if 0 <= i < len(order)]
    return tuple(dict.fromkeys([*positions, *by_name])), tuple(dict.fromkeys([*names, *by_position]))


def known_positions(fun: Callable[..., Any], parameter: str, positions: tuple[int, ...]) -> tuple[int, ...]:
    """Return positions of arguments.

    Raises:
        UsageError: the function has no argument at one of them.
    """
    parameters = parameters_of(fun) if positions else None
    if parameters is None or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return positions
    count = sum(p.kind in POSITIONAL for p in parameters)
    for i in positions:
        if not -count <= i < count:
            given = f"{i} in {parameter} of a function of {count} argument{'s'[: count != 1]} by position"
            needed = "the position of one of them, from 0, is needed"
            raise UsageError("jit", given, needed, "Correct it, or name the argument in static_argnames")
    return positions


def parameters_of(fun: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    """Return the parameters of a function; None where they are not known, as for some that are written in C."""
    try:
        return list(signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None
