"""Signatures of functions that users gave: calls of them, which they may not have the parameters for, and rules.

A rule is written in ordinary array operations on whatever sits one level below: ndarrays, or Tensors of another
trace. An argument whose name starts with an underscore is not needed by the rule: it is not saved, and the rule
receives None in its place.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType, TracebackType
from typing import Any

from wengert.core.diagnostics.source_positions import is_own
from wengert.errors import DtypeError, RegistrationError
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


Rule = Callable[..., Any]


def rule_error(name: str, given: str, needed: str) -> RegistrationError:
    """Return the error about the declaration of a primitive."""
    return RegistrationError(f"primitive {name}", given, needed, "Correct its declaration")


def positional_arguments(rule: Rule) -> tuple[Sequence[str], str | None]:
    """Return the names of a rule's positional arguments, and that of its `*args` if it has one.

    A plain function's code tells; `inspect.signature`, for other callables, takes 15 times as long, which several
    hundred rules would add to the import.
    """
    if type(rule) is FunctionType and not hasattr(rule, "__wrapped__"):
        code = rule.__code__
        count, names = code.co_argcount, code.co_varnames
        return names[:count], names[count + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
    found = inspect.signature(rule).parameters.values()
    rest = next((p.name for p in found if p.kind is p.VAR_POSITIONAL), None)
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)], rest


class RuleSignature:
    """Hold which positional arguments of a rule are needed: those whose names carry no leading underscore."""

    __slots__ = ("needed", "rest")

    def __init__(self, name: str, rule: Rule, leading: int, operands: int | None) -> None:
        if not callable(rule):
            raise rule_error(name, f"a rule is {rule!r}", "a function is needed")
        try:
            positional, rest = positional_arguments(rule)
        except ValueError:
            raise rule_error(name, f"a rule is {rule!r}, which tells no signature", "a function is needed") from None
        enough = len(positional) >= leading
        exact = operands is None or rest is not None or len(positional) == leading + operands
        if not (enough and exact):
            wanted = f"{leading} + {operands}" if operands is not None else f"at least {leading}"
            raise rule_error(name, f"a rule takes {len(positional)} positional arguments", f"{wanted} are needed")
        self.needed = tuple(not argument.startswith("_") for argument in positional)
        self.rest = rest is None or not rest.startswith("_")

    def needs(self, position: int) -> bool:
        """Tell whether the positional argument at `position` is needed."""
        return self.needed[position] if position < len(self.needed) else self.rest
