"""Rules as authors write them: functions whose signatures say which of their arguments they need.

A rule is written in ordinary array operations on whatever sits one level below: ndarrays, or Tensors of another
trace. An argument whose name starts with an underscore is not needed by the rule: it is not saved, and the rule
receives None in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from wengert.errors import RegistrationError

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
