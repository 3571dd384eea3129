"""What functions hold and name: the contents of their variables, and a walk over what values lead to."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, Final


class Unbound:
    """Be the content of a variable that has none."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND: Final = Unbound()


def content_of(cell: CellType) -> Any:
    """Return what a variable of a function holds; UNBOUND if nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def captured_by(function: FunctionType) -> list[Any]:
    """Return the contents of the variables in a function's closure."""
    return list(map(content_of, function.__closure__ or ()))


@functools.lru_cache(maxsize=4096)
def global_names(code: CodeType) -> tuple[str, ...]:
    """Return the names that code, and that of nested functions, uses: among them all its global variables."""
    nested = [name for x in code.co_consts if isinstance(x, CodeType) for name in global_names(x)]
    return tuple(dict.fromkeys((*code.co_names, *nested)))


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType) -> frozenset[str]:
    """Return the names that code may use, that of nested functions too.

    Words that stand in it count, as converted code and `getattr` have names of attributes in them; and a module may
    make attributes as they are asked for.
    """
    nested = [names_of(x) for x in code.co_consts if isinstance(x, CodeType)]
    words = [x for x in code.co_consts if type(x) is str and x.replace(".", "_").isidentifier()]
    return frozenset(("__getattr__", *code.co_names, *words)).union(*nested)


@functools.lru_cache(maxsize=4096)
def assigned_by(code: CodeType) -> frozenset[str]:
    """Return the variables from outside that a function, or one within it, assigns to, as one that counts its calls."""
    found = [x.argval for x in dis.get_instructions(code) if x.opname in ("STORE_GLOBAL", "STORE_DEREF")]
    nested = [assigned_by(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(found).union(*nested) - frozenset(code.co_cellvars)


def variables_of(function: FunctionType) -> list[tuple[str, Any]]:
    """Return the variables from outside that a function uses and that have values, by name, with these."""
    code, space = function.__code__, function.__globals__
    return closure_of(function) + [(name, space[name]) for name in global_names(code) if name in space]


def closure_of(function: FunctionType) -> list[tuple[str, Any]]:
    """Return those of them that are variables of the functions around it."""
    pairs = zip(function.__code__.co_freevars, captured_by(function), strict=True)
    return [pair for pair in pairs if pair[1] is not UNBOUND]


def defaults_of(function: FunctionType) -> list[tuple[str, Any]]:
    """Return the parameters of a function that have defaults, by name, with these."""
    code, given = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    return [*zip(names, given, strict=True), *(function.__kwdefaults__ or {}).items()]


def reach(
    values: Iterable[Any], inside: Callable[[Any], Iterable[Any]], own: Callable[[Any], Any] = lambda x: x
) -> Iterator[Any]:
    """Yield some values and what they lead to, each once, near ones first.

    Args:
        values: where the walk begins.
        inside: what a value leads to.
        own: the object in a value that is passed once.

    >>> list(reach([[1, [2]]], lambda x: x if isinstance(x, list) else ()))
    [[1, [2]], 1, [2], 2]
    """
    queue, known = list(values), {}
    for value in queue:  # which grows
        if id(own(value)) not in known:
            known[id(own(value))] = value
            yield value
            queue += inside(value)
