"""Choices: `if`, conditional expressions, `and`, `or`, `not` and chains of comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from wengert._tree import flatten, unflatten
from wengert.control.cond import cond
from wengert.conversion.places import UNBOUND, Place, Site, Undefined, is_undefined, places_of, shown
from wengert.conversion.reach import read_by
from wengert.conversion.regions import (
    Content,
    Region,
    as_truth,
    content_of,
    handles_of,
    is_array,
    is_number,
    is_traced,
    noted,
    operand_of,
    same,
    traced,
)
from wengert.core.aval import Aval, aval_of
from wengert.core.primitive import Elementwise
from wengert.core.source import caller, position_of
from wengert.core.tensor import Tensor
from wengert.errors import GraphError, describe
from wengert.primitives.indexing import rebind

__all__ = ["and_", "compare", "if_exp", "if_stmt", "not_", "or_", "running"]

Thunk = Callable[[], Any]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}


# Statements


def if_stmt(test: Any, body: FunctionType, orelse: FunctionType, site: tuple[Any, ...]) -> None:
    """Carry out `if`: as Python does, or as `cond` for a traced test."""
    if not is_traced(test):
        if test:
            body()
        else:
            orelse()
        return
    places = places_of(Site(*site), body, orelse)
    note = ("if", "both branches", position_of(*caller()))
    choose(as_truth(test), [*places, *read_by([body, orelse], places)], body, orelse, note)


def choose(test: Any, places: Sequence[Place], body: Thunk, orelse: Thunk, note: tuple[str, str, Any]) -> None:
    """Trace both branches, and let each place hold what the branch taken gives."""
    handles = handles_of(places)
    with noted(*note):
        regions = [traced("if", places, lambda _: private(places), run, handles) for run in (body, orelse)]
    merged = Merge(places, regions)
    written = list({id(x): x for region in regions for x in region.written}.values())
    for handle in written:
        one, other = (region.end_of(handle) for region in regions)
        merged.output(one, other, aval_of(handle))
    results = iter(merged.run(test, [operand_of(handle) for handle in handles]))
    for place, plan in zip(places, merged.plans, strict=True):
        plan(place, results)
    for handle in written:
        rebind(handle, next(results))


def private(places: Sequence[Place]) -> list[Any]:
    """Return what places hold for a piece of the program that may change it: containers and arrays as copies."""
    found: dict[int, Any] = {}
    values = []
    for place in places:
        value = place.read()
        if id(value) not in found:
            found[id(value)] = value if type(value) is Tensor or is_undefined(value) else own_copy(value)
        values.append(found[id(value)])
    return values


def own_copy(value: Any) -> Any:
    """Return a copy of a container, of the arrays and sets in it too."""
    leaves, structure = flatten(value)
    return unflatten(structure, [x.copy() if isinstance(x, np.ndarray | set) else x for x in leaves])


Plan = Callable[[Place, Any], None]


class Merge:
    """Find what two branches give in common.

    Attributes:
        plans: for each place, what to do with the results.
        left: which branches return from the function for sure, so that nobody reads what variables hold after them.
    """

    def __init__(self, places: Sequence[Place], regions: Sequence[Region]) -> None:
        self.regions = regions
        self.outputs: tuple[list[Any], list[Any]] = ([], [])
        self.avals: list[Aval] = []
        self.left = [any(p.returned and r.found[i].value is True for i, p in enumerate(places)) for r in regions]
        self.plans = [self.plan(place, i) for i, place in enumerate(places)]

    def run(self, test: Any, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs of the branch taken."""
        if not self.avals:
            return ()
        one, other = (r.function(xs, self.avals) for r, xs in zip(self.regions, self.outputs, strict=True))
        result: Sequence[Any] = cond(test, one, other, *operands)
        return result

    def plan(self, place: Place, index: int) -> Plan:
        """Return what to do with one place."""
        one, other = (region.found[index] for region in self.regions)
        if sum(self.left) == 1 and not place.hidden:
            half = self.left.index(False)
            return self.only(half, (one, other)[half])
        if one.structure is UNBOUND or other.structure is UNBOUND:
            return self.half_defined(place, one, other)
        in_place = all(region.found[index].value is region.given[index].value for region in self.regions)
        if one.structure != other.structure or not self.agree(one, other):
            return self.differing(place, one, other)
        original = content_of(place.read())
        takes = [self.take(one, other, original, k) for k in range(len(one.leaves))]
        if in_place and all(take is None for take in takes):
            return keep

        def assign(place: Place, results: Any) -> None:
            leaves = [original.leaves[k] if take is None else take(results) for k, take in enumerate(takes)]
            value = unflatten(one.structure, leaves)
            if not (in_place and write_back(original.value, value)):
                place.write(value)

        return assign

    def take(self, one: Content, other: Content, original: Content, k: int) -> Callable[[Any], Any] | None:
        """Return how to get one leaf from the results; None if both branches left it as it was."""
        a, b = one.leaves[k], other.leaves[k]
        if type(a) is Tensor and a is b:
            return None if k < len(original.leaves) and original.leaves[k] is a else lambda _: a
        if same(a, b):
            unchanged = k < len(original.leaves) and same(a, original.leaves[k])
            value = original.leaves[k] if unchanged else a
            return lambda _: value
        aval = common_aval(a, b)
        assert aval is not None, "agree has found that there is one"
        self.output(one.ends[k], other.ends[k], aval)
        return lambda results: next(results)

    def output(self, a: Any, b: Any, aval: Aval) -> None:
        """Add an output to both branches."""
        self.outputs[0].append(a)
        self.outputs[1].append(b)
        self.avals.append(aval)

    def agree(self, one: Content, other: Content) -> bool:
        """Tell whether leaves have the same shapes and dtypes, or are the same."""
        return all(same(a, b) or common_aval(a, b) is not None for a, b in zip(one.leaves, other.leaves, strict=True))

    def differing(self, place: Place, one: Content, other: Content) -> Plan:
        """Let a place be undefined because the branches give it different kinds of values."""
        text = describe(
            "if",
            f"{place.name} is {shown(one.value)} where the condition holds, and {shown(other.value)} where it does not",
            "both branches of a traced condition must give the same containers, shapes and dtypes",
            "Make them alike",
        )
        text += place.where(0) + place.where(1)
        if place.hidden:
            raise GraphError(text)
        return lambda where, _: where.write(Undefined(text))

    def only(self, half: int, content: Content) -> Plan:
        """Let a place hold what one of the branches gives, zeros after the other: nobody reads it then."""
        if content.structure is UNBOUND:
            return lambda where, _: where.write(content.value)
        takes = []
        for leaf in content.ends:
            numeric = is_array(leaf) or is_number(leaf)
            takes.append(numeric)
            if numeric:
                aval = aval_of(leaf)
                filler = np.zeros(aval.shape, aval.dtype)[()]
                self.output(leaf if half == 0 else filler, filler if half == 0 else leaf, aval)

        def assign(where: Place, results: Any) -> None:
            pairs = zip(content.leaves, takes, strict=True)
            where.write(unflatten(content.structure, [next(results) if take else leaf for leaf, take in pairs]))

        return assign

    def half_defined(self, place: Place, one: Content, other: Content) -> Plan:
        """Let a place be undefined that only one of the branches, or none, gives a value."""
        if one.structure is UNBOUND and other.structure is UNBOUND:
            return keep
        half = 1 if one.structure is UNBOUND else 0
        defined = (one, other)[half]
        if place.hidden:
            for content in (one, other):
                if isinstance(content.value, Undefined):
                    content.value.refuse()
            return self.only(half, defined)
        text = describe(
            "if",
            f"{place.name} gets a value only where the condition {'holds' if half == 0 else 'does not hold'}",
            "both branches of a traced condition must give a value to a variable that is used after them",
            "Set it before the `if`, or in the other branch",
        )
        text += place.where(half)
        return lambda where, _: where.write(Undefined(text))


def keep(place: Place, results: Any) -> None:
    """Leave a place as it was."""


def common_aval(a: Any, b: Any) -> Aval | None:
    """Return the one shape and dtype of two leaves; None if they differ. Python numbers adapt."""
    if not all(is_array(x) or is_number(x) for x in (a, b)):
        return None
    if is_number(a) and is_number(b):
        return Aval((), np.result_type(np.asarray(a), np.asarray(b)))
    if is_number(b):
        a, b = b, a
    if is_number(a):
        aval = aval_of(b)
        return aval if aval.shape == () and np.result_type(a, aval.dtype) == aval.dtype else None
    one, other = aval_of(a), aval_of(b)
    return one if one == other else None


def write_back(original: Any, value: Any) -> bool:
    """Put a value into an object that the program changed in place; tell whether that is possible."""
    if type(original) is Tensor:
        if original.shape == value.shape and original.dtype == value.dtype:
            original[...] = value
            return True
    elif type(original) is list:
        original[:] = value
        return True
    elif isinstance(original, dict):
        original.clear()
        original.update(value)
        return True
    return False


# Expressions


def running(*flags: Any) -> Any:
    """Return whether none of some flags is set."""
    if any(flag is True for flag in flags):
        return False
    staged = [flag for flag in flags if is_traced(flag)]
    if any(bool(flag) for flag in flags if not is_traced(flag)):
        return False
    if not staged:
        return True
    found = staged[0]
    for flag in staged[1:]:
        found = np.logical_or(found, flag)
    return np.logical_not(found)


def not_(value: Any) -> Any:
    """Carry out `not`."""
    return np.logical_not(as_truth(value)) if is_traced(value) else not value


def and_(value: Any, *rest: Thunk) -> Any:
    """Carry out `and`."""
    for k, thunk in enumerate(rest):
        if is_traced(value):
            return joined(value, lambda: and_(rest[k](), *rest[k + 1 :]), rest[k:], np.logical_and)  # noqa: B023 - called at once
        if not value:
            return value
        value = thunk()
    return value


def or_(value: Any, *rest: Thunk) -> Any:
    """Carry out `or`."""
    for k, thunk in enumerate(rest):
        if is_traced(value):
            return joined(value, lambda: or_(rest[k](), *rest[k + 1 :]), rest[k:], np.logical_or)  # noqa: B023 - called at once
        if value:
            return value
        value = thunk()
    return value


def joined(value: Any, rest: Thunk, thunks: Sequence[Thunk], function: Any) -> Any:
    """Combine a traced operand with those after it, which are evaluated only where they count."""
    places = read_by(thunks, ())
    name = "and" if function is np.logical_and else "or"
    handles = handles_of(places)
    region = traced(name, places, lambda _: private(places), rest, handles)
    other = region.result
    harmless = not region.written and all(isinstance(e.primitive, Elementwise) for e in region.stage.equations)
    if harmless and is_truth(value) and (is_truth(other) or isinstance(other, bool)):
        again = region.function([other], [aval_of(other)])(*map(operand_of, handles))[0]
        return function(value, again)
    last = value if is_array(other) and not is_truth(other) else function is np.logical_or
    if function is np.logical_and:
        return decided(value, rest, lambda: last, thunks)
    return decided(value, lambda: last, rest, thunks)


def is_truth(value: Any) -> bool:
    """Tell whether a value is one traced boolean."""
    return is_traced(value) and bool(value.dtype == np.bool_) and value.shape == ()


def compare(signs: Sequence[str], left: Any, *rest: Thunk) -> Any:
    """Carry out a chain of comparisons; each operand is evaluated once."""
    right = rest[0]()
    first = OPERATORS[signs[0]](left, right)
    if len(signs) == 1:
        return first
    return and_(first, lambda: compare(signs[1:], right, *rest[1:]))


class Answer(Place):
    """Be the value of a conditional expression."""

    def __init__(self) -> None:
        self.name = "the value of the conditional expression"
        self.hidden, self.returned = True, False
        self.value: Any = UNBOUND

    def read(self) -> Any:
        """Return the value."""
        return self.value

    def write(self, value: Any) -> None:
        """Set the value."""
        self.value = value

    def where(self, half: int) -> str:
        """Return the line of the expression, once."""
        return "" if half else f"\n  {position_of(*caller())}"


def if_exp(test: Any, body: Thunk, orelse: Thunk) -> Any:
    """Carry out a conditional expression."""
    if not is_traced(test):
        return body() if test else orelse()
    return decided(test, body, orelse, [body, orelse])


def decided(test: Any, body: Thunk, orelse: Thunk, thunks: Sequence[Thunk]) -> Any:
    """Return one of two values, of which the user's program computes both in `thunks`."""
    answer = Answer()
    note = ("conditional expression", "both sides", position_of(*caller()))
    places = [answer, *read_by(thunks, ())]
    choose(as_truth(test), places, lambda: answer.write(body()), lambda: answer.write(orelse()), note)
    return answer.value
