"""What converted code calls: `if` becomes `if_stmt`, and so on; functions of Python's ask traced values for nothing."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.variable_places import require_defined
from wengert.conversion import (
    branch_statements,
    called_functions,
    loop_statements,
    traced_regions,
    user_attributes,
    user_operators,
)
from wengert.conversion.branch_statements import and_, not_, or_
from wengert.conversion.called_functions import BUILTINS, RUNTIME, callee, convert, make_passing
from wengert.conversion.loop_statements import decide_items, staged_extremum, staged_sum
from wengert.conversion.numpy_calls import BUILDERS, MAKERS, called_in_place
from wengert.conversion.repeatable_calls import require_known
from wengert.conversion.tabulated_calls import TABULATED
from wengert.conversion.traced_numbers import SIZED, StagedRange, as_integer, raise_here
from wengert.conversion.traced_regions import as_truth, is_array, one_element
from wengert.conversion.user_attributes import MOST, change_target, choose_item, item_of, read_attribute
from wengert.conversion.user_operators import (
    OPERATORS,
    PLAIN,
    UNARY,
    apply_unary,
    ask_truth,
    is_plain,
    left_operand,
    right_operand,
)
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.values.aval import Aval, aval_of, is_number
from wengert.core.values.dispatch import as_index, conform, weaken
from wengert.core.values.tensor import is_staged
from wengert.errors import DtypeError, TracedTruthError

__all__ = ["callee", "convert"]

# Numbers and truths


def staged_range(*ends: Any) -> Any:
    """Return a range; one of which an end is traced is for `for` statements."""
    return StagedRange(*ends) if any(map(is_staged, ends)) else range(*ends)


def staged_int(*args: Any, **kwargs: Any) -> Any:
    """Return a whole number of Python's."""
    if len(args) != 1 or kwargs or not is_staged(args[0]):
        return int(*args, **kwargs)
    value = args[0]
    found = one_element("int", value)
    if value.ndim:
        raise DtypeError("int", f"a Tensor of shape {value.shape}", "one without axes is needed", "Index it first")
    return as_integer(found)


def staged_bool(*args: Any) -> Any:
    """Return a truth, as Python has it."""
    found = ask_truth(args[0]) if len(args) == 1 else ()
    return weaken(as_truth(found)) if is_staged(found) else bool(*args)


def staged_round(number: Any, ndigits: Any = None) -> Any:
    """Return a rounded number: a whole one of Python's if there is no number of digits."""
    if ndigits is not None or not is_staged(number) or not is_scalar(number) or number.dtype == np.bool_:
        return round(number, ndigits)
    return as_integer(np.rint(number))


# Attributes


def staged_getattr(value: Any, name: str, *default: Any) -> Any:
    """Return an attribute, as converted code reads it."""
    return getattr(value, name, *default) if default else read_attribute(value, name)


def staged_hasattr(value: Any, name: str) -> bool:
    """Return whether there is an attribute, as converted code reads it."""
    try:
        staged_getattr(value, name)
    except AttributeError:
        return False
    return True


def staged_setattr(value: Any, name: str, new: Any) -> None:
    """Set an attribute, as converted code sets it."""
    setattr(change_target(value), name, new)


def make_looking(function: Callable[..., Any], look: Callable[..., Any]) -> Callable[..., Any]:
    """Return a builtin that looks at its arguments from outside, and so raises for those that are undefined."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return require_known(function.__name__, look(*map(require_defined, args), **kwargs), *args)

    return call


PYTHON_NUMBERS = {"i": 0, "b": False}
"""For kinds of dtypes those of Python's numbers that are never differentiated, which transformations leave alone."""


def outside_of_trace(value: Any) -> Any:
    """Return a value of the class that a traced one has where the function runs alone, if it is a number of Python's.

    What may be differentiated is a Tensor for functions in every mode.
    """
    if is_staged(value) and value.weak:
        return PYTHON_NUMBERS.get(value.dtype.kind, value)
    return value


def staged_isinstance(value: Any, kinds: Any) -> bool:
    """Return whether a value is of a class."""
    return isinstance(outside_of_trace(value), kinds) or isinstance(value, kinds)


def staged_type(*args: Any, **kwargs: Any) -> Any:
    """Return the class of a value, or a new one."""
    return type(outside_of_trace(args[0])) if len(args) == 1 and not kwargs else type(*args, **kwargs)


# Choices


def choose_value(test: Any, one: Any, other: Any) -> Any:
    """Return one of two values."""
    if not is_staged(test):
        return one if test else other
    return choose_item(test, one, other)


def make_extremum(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return `max` or `min`, which give the first of the best items: NaN is no better than anything, nor worse."""

    def choice(*args: Any, key: Callable[[Any], Any] | None = None, **default: Any) -> Any:
        if not args or default.keys() - {"default"} or (default and len(args) > 1):
            return function(*args, **default)  # which says what is wrong
        items = list(args if len(args) > 1 else args[0])
        ranks = items if key is None else list(map(key, items))
        if not items:
            return function(items, **default)
        if not any(is_staged(x) or not is_plain(x) for x in ranks):
            return items[function(range(len(items)), key=ranks.__getitem__)]
        if key is None and (best := staged_extremum(items, better)) is not None:
            return best
        found, rank = items[0], ranks[0]
        for item, other in zip(items[1:], ranks[1:], strict=True):
            test = better(other, rank)
            found = choose_value(test, item, found)
            rank = found if key is None else choose_value(test, other, rank)
        return found

    return choice


def truth_of(value: Any) -> Any:
    """Return whether Python takes a value for true."""
    found = ask_truth(value)
    return as_truth(found) if is_staged(found) else bool(found)


def make_quantifier(function: Callable[..., Any], combined: Callable[..., Any]) -> Callable[..., Any]:
    """Return `any` or `all` of a list, tuple or array; Python may not ask for all items of anything else."""

    def decision(*args: Any) -> Any:
        items: Any = args[0] if len(args) == 1 and isinstance(args[0], SIZED) else ()
        if is_staged(items) and items.ndim == 1:
            return weaken(np.any(items) if function is any else np.all(items))
        if all((type(x) in PLAIN or isinstance(x, np.generic)) and not is_staged(x) for x in items):
            return function(*args)
        if len(items) > MOST:
            return decide_items(function, items, lambda item: item)
        first, *rest = tuple(items)
        return weaken(combined(truth_of(first), *[lambda x=x: truth_of(x) for x in rest]))

    return decision


def staged_sorted(
    items: Any, /, *, key: Callable[[Any], Any] | None = None, reverse: Any = False, **more: Any
) -> list[Any]:
    """Return sorted items, equal ones in the order that they have, as Python does."""
    if more:
        return sorted(items, key=key, reverse=reverse, **more)  # which says what is wrong
    listed = list(items)
    ranks = listed if key is None else list(map(key, listed))
    if not any(map(is_staged, ranks)):
        return [listed[k] for k in sorted(range(len(listed)), key=ranks.__getitem__, reverse=reverse)]
    avals = [aval_of(x) for x in ranks if is_array(x) or is_number(x)]
    if (
        len(avals) < len(ranks)
        or len({(x.shape, x.dtype) for x in avals} | {((), avals[0].dtype)}) > 1
        or len(listed) > MOST
        or is_staged(reverse)
    ):
        given = f"{len(listed)} items in the order of traced values ({position_of(*caller())})"
        needed = f"up to {MOST} numbers of one type are needed to order them while tracing"
        raise TracedTruthError("sorted", given, needed, "Write numpy.sort(x), or x[numpy.argsort(keys)]")
    row = np.stack(ranks)
    if row.dtype.kind in "fc":
        raise_here(np.any(np.isnan(row)), ValueError("sorted: NaN among traced values, which has no place"))
    order = np.argsort(row[::-1], stable=True)[::-1] if reverse else np.argsort(row, stable=True)
    places = len(listed) - 1 - order if reverse else order
    if key is None:
        found = row[places]
        aval = Aval((), row.dtype, all(x.weak for x in avals))
        return [conform(found[k], aval) for k in range(len(listed))]
    return [item_of(listed, as_index(places[k])) for k in range(len(listed))]


# Functions of functions and operators


def make_calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of a function that calls its first argument."""

    @functools.wraps(function, updated=())
    def call(called: Any, *args: Any, **kwargs: Any) -> Any:
        return function(callee(called), *args, **kwargs)

    return call


def make_operating(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what is called in place of a function of `operator`."""
    return lambda one, other: function(left_operand(one), right_operand(other))


REPLACED: dict[Any, Callable[..., Any]] = {
    range: staged_range,
    int: staged_int,
    bool: staged_bool,
    operator.truth: staged_bool,
    operator.not_: lambda value: not_(ask_truth(value)),
    round: staged_round,
    sum: staged_sum,
    max: make_passing(make_extremum(builtins.max, lambda a, b: left_operand(a) > right_operand(b))),
    min: make_passing(make_extremum(builtins.min, lambda a, b: left_operand(a) < right_operand(b))),
    sorted: make_passing(staged_sorted),
    any: make_quantifier(builtins.any, or_),
    all: make_quantifier(builtins.all, and_),
    map: make_calling(map),
    filter: make_calling(filter),
    functools.reduce: make_calling(functools.reduce),
    functools.partial: make_passing(functools.partial),
    getattr: staged_getattr,
    hasattr: staged_hasattr,
    setattr: staged_setattr,
    isinstance: make_looking(isinstance, staged_isinstance),
    callable: make_looking(callable, callable),
    type: make_looking(type, staged_type),
    **{x.function: make_operating(x.function) for x in OPERATORS.values()},
    **{function: called_in_place(function) for function in (*BUILDERS, *MAKERS)},
    **{function: functools.partial(apply_unary, sign) for sign, (function, _) in UNARY.items()},
}

BUILTINS.update({**TABULATED, **REPLACED})
for module in (branch_statements, called_functions, loop_statements, traced_regions, user_attributes, user_operators):
    vars(RUNTIME).update(vars(module))
