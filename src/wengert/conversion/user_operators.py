"""Operators, comparisons and truths of the user's objects: their methods are converted as what calls name is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from wengert.control.code_owners import is_library
from wengert.control.reachable_state import ReachableState
from wengert.control.variable_places import require_defined
from wengert.conversion import syntax_nodes
from wengert.conversion.branch_statements import Thunk, and_, decide, not_, or_
from wengert.conversion.called_functions import convert_method, user_method
from wengert.conversion.repeatable_calls import require_known
from wengert.conversion.syntax_nodes import COMPARISONS
from wengert.conversion.traced_numbers import alternatives_of, has_alternatives
from wengert.conversion.traced_regions import as_truth, is_array
from wengert.core.values.aval import aval_of, is_number
from wengert.core.values.tensor import Tensor, is_staged, make_tensor
from wengert.support.attributes import class_attribute
from wengert.support.caches import WeakIdentityMap
from wengert.support.records import NamedTuple
from wengert.traces.whole_number_bounds import not_alike
from wengert.traces.written_out import ROLLING

Function = Callable[[Any, Any], Any]
Way: TypeAlias = tuple[Any, Any, Any]
"""A method, the operand that has it, and the other one."""


class Operator(NamedTuple):
    """Hold what Python does for an operator.

    Attributes:
        function: the operator, as a function.
        method: the name of the left operand's method.
        reflected: the name of the right operand's.
    """

    function: Function
    method: str
    reflected: str


REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
OPERATORS: dict[str, Operator] = {
    sign: Operator(getattr(operator, f"__{name}__"), f"__{name}__", f"__{REFLECTED.get(name, f'r{name}')}__")
    for sign, (name, _) in (syntax_nodes.OPERATORS | COMPARISONS).items()
}
AUGMENTED = {sign: f"__i{name}__" for sign, (name, _) in syntax_nodes.OPERATORS.items()}
UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
    "abs": (abs, "__abs__"),
}
NAMES = frozenset(
    (
        *(name for x in OPERATORS.values() for name in (x.method, x.reflected)),
        *AUGMENTED.values(),
        *(name for _, name in UNARY.values()),
    )
)
NUMPYS = np.ndarray, np.float64, np.float32, np.complex128, np.int64, np.int32, np.bool_
PYTHONS = int, float, bool, complex, str, tuple, list, dict, set, range, type(None), type
PLAIN = frozenset((Tensor, *NUMPYS, *PYTHONS))
"""Types of operands without methods of the user's."""
SEQUENCES = (list, tuple, str, bytes, bytearray)
HOLDING = (list, tuple, set, frozenset, dict)
MOST = 64
"""Items that are compared one after the other."""
_USERS: WeakIdentityMap[type, bool] = WeakIdentityMap()


def has_user_operators(kind: type) -> bool:
    """Tell whether operators of a class are the user's, and so to be converted."""
    known = _USERS.get(kind)
    if known is None:
        found = [class_attribute(kind, name) for name in NAMES]
        known = _USERS[kind] = any(type(x) is FunctionType and not is_library(x.__code__) for x in found)
    return known


class StandIn:
    """Stand for an object of the user's where an operator, a statement or an index meets it."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of


class Operand(StandIn):
    """Stand for an object beside an operator."""

    __slots__ = ()
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # nobody keeps it


class Left(Operand):
    """Stand for the operand on the left, or the only one."""

    __slots__ = ()


class Right(Operand):
    """Stand for the operand on the right of what has no method for it."""

    __slots__ = ()


for _sign, _operator in OPERATORS.items():
    setattr(
        Left,
        _operator.method,
        lambda self, other, *, sign=_sign: apply_binary(sign, self.of, other.of if type(other) is Right else other),
    )
    setattr(Right, _operator.reflected, lambda self, other, *, sign=_sign: apply_binary(sign, other, self.of))
for _sign, (_, _name) in UNARY.items():
    setattr(Left, _name, lambda self, *, sign=_sign: apply_unary(sign, self.of))


def left_operand(value: Any) -> Any:
    """Return what stands on the left of an operator in place of a value."""
    return value if is_plain(value) else Left(value)


def right_operand(value: Any) -> Any:
    """Return what stands on the right of an operator in place of a value."""
    return value if is_plain(value) else Right(value)


def formatting_operand(value: Any) -> Any:
    """Return what stands on the left of `%` in place of a value: a text is filled with the value on the right."""
    return Left(value) if isinstance(value, str | bytes | bytearray) else left_operand(value)


def apply_binary(sign: str, left: Any, right: Any) -> Any:
    """Carry out an operator or a comparison as Python does, with methods of the user's converted."""
    if has_alternatives(left) or has_alternatives(right):
        if sign in COMPARISONS:  # for which types do not matter
            return OPERATORS[sign].function(left, right)
        return apply_alternatives(partial(apply_binary, sign), left, right)
    if sign == "!=" and all(class_attribute(type(x), "__ne__") is object.__ne__ for x in (left, right)):
        return not_(apply_binary("==", left, right))
    ways = operator_methods(sign, left, right)
    return first_answer(sign, left, right, ways) if ways else OPERATORS[sign].function(left, right)


def apply_alternatives(operate: Callable[..., Any], *operands: Any) -> Any:
    """Return what an operator gives for operands of which one is an integer of two types."""
    place = next(i for i, x in enumerate(operands) if has_alternatives(x))
    found = alternatives_of(operands[place])
    assert found is not None

    def of(value: Any) -> Any:
        return operate(*operands[:place], value, *operands[place + 1 :])

    beside = [aval_of(x) for i, x in enumerate(operands) if i != place and (is_array(x) or is_number(x))]
    if beside and beside[0].dtype.kind in "fc":  # beside floats nothing wraps; the dtype is the wider one of both
        value = operands[place]
        firm = [x.dtype for x in found[1:] if type(x) is Tensor and not x.weak]
        dtype = np.result_type(beside[0].dtype, *firm)
        if dtype == beside[0].dtype or beside[0].weak:
            return of(make_tensor(value._value, value._trace, value._node))  # a handle of its own, without alternatives
        return of(value.astype(dtype))
    heap = ReachableState(
        (), None, [found.one, found.other, *operands]
    )  # lest errors be raised where the other one is meant
    return decide(found.test, lambda: of(found.one), lambda: of(found.other), heap)


def operator_methods(sign: str, left: Any, right: Any) -> list[Way]:
    """Return the methods that Python asks, in its order and converted; none if none of them is the user's."""
    _, name, reflected = OPERATORS[sign]
    own, its = class_attribute(type(left), name), class_attribute(type(right), reflected)
    forward, backward = (convert_method(own), left, right), (convert_method(its), right, left)
    if forward[0] is own and backward[0] is its:
        return []
    inherits = type(left) is not type(right) and isinstance(right, type(left))
    if sign in COMPARISONS:
        return [backward, forward] if inherits else [forward, backward]
    if type(left) is type(right):
        return [forward]
    is_sequence = sign in "+*" and isinstance(left, SEQUENCES) and forward[0] is own  # whose way is tried last
    overrides = inherits and class_attribute(type(left), reflected) is not its
    return [backward, forward] if is_sequence or overrides else [forward, backward]


def first_answer(sign: str, left: Any, right: Any, ways: Sequence[Way]) -> Any:
    """Return what the first method gives that knows the operands, or else what Python does."""
    for method, value, other in ways:
        found = NotImplemented if method is None else method(value, other)
        if found is not NotImplemented:
            return found
    if sign in ("==", "!="):
        return (left is right) == (sign == "==")
    kinds = f"'{type(left).__name__}' and '{type(right).__name__}'"
    if sign in COMPARISONS:
        raise TypeError(f"'{sign}' not supported between instances of {kinds}")
    raise TypeError(f"unsupported operand type(s) for {sign}: {kinds}")


def is_plain(value: Any) -> bool:
    """Tell whether an augmented assignment changes a value without a method of the user's."""
    return (type(value) in PLAIN or not has_user_operators(type(value))) and not has_alternatives(value)


def addend(sign: str, changed: Any, value: Any) -> Any:
    """Return what stands on the right of an augmented assignment; what changes in place gets the value itself."""
    return value if hasattr(type(changed), AUGMENTED[sign]) else right_operand(value)


def augment(sign: str, left: Any, right: Any) -> Any:
    """Return what an augmented assignment to an object assigns."""
    if has_alternatives(left):
        return apply_binary(sign, left, right)
    own = class_attribute(type(left), AUGMENTED[sign])
    found = NotImplemented if own is None else convert_method(own)(left, right)
    return apply_binary(sign, left, right) if found is NotImplemented else found


def apply_unary(sign: str, value: Any) -> Any:
    """Carry out an operator of one operand."""
    if has_alternatives(value):
        return apply_alternatives(partial(apply_unary, sign), value)
    function, name = UNARY[sign]
    method = user_method(type(value), name)
    return function(value) if method is None else method(value)


def answer_of(value: Any, *names: str) -> Any:
    """Return what the first of some methods that an object has gives, if it is the user's; other values as they are."""
    if type(value) in PLAIN:
        return value
    own = next(filter(None, (class_attribute(type(value), name) for name in names)), None)
    inner = convert_method(own)
    return value if inner is own else inner(value)


def ask_truth(value: Any) -> Any:
    """Return what decides for a test: of an object, what the user's `__bool__` or `__len__` gives."""
    return answer_of(value, "__bool__", "__len__")


def iterate(value: Any) -> Any:
    """Return what is gone through in place of a value: of an object, what the user's `__iter__` gives."""
    return answer_of(value, "__iter__")


def sum_items(*args: Any, **kwargs: Any) -> Any:
    """Return a sum; objects are added by their methods, converted."""
    items = args[0] if args and type(args[0]) in (list, tuple) else ()
    if all(type(x) in PLAIN for x in items):
        return sum(*args, **kwargs)
    total, *rest = (*args[1:], *kwargs.values()) or (0,)
    if rest or kwargs.keys() - {"start"} or isinstance(total, str | bytes | bytearray):
        return sum(*args, **kwargs)  # which says what is wrong
    for item in items:
        total = left_operand(total) + right_operand(item)
    return total


def compare(signs: Sequence[str], value: Any, *rest: Thunk) -> Any:
    """Carry out a chain of comparisons; each operand is evaluated once."""
    other = rest[0]()
    first = compare_pair(signs[0], value, other)
    if len(signs) == 1:
        return first
    return and_(first, lambda: compare(signs[1:], other, *rest[1:]))


def compare_pair(sign: str, value: Any, other: Any) -> Any:
    """Carry out one comparison."""
    if sign in OPERATORS:
        return OPERATORS[sign].function(left_operand(value), right_operand(other))
    name = sign.removeprefix("not ").removesuffix(" not")
    found = are_identical(value, other) if name == "is" else contains(value, other)
    return found if name == sign else not_(found)


def are_identical(value: Any, other: Any) -> Any:
    """Return whether two values are one object; a traced truth of Python's is `True` where it holds."""
    for found, truth in ((value, other), (other, value)):
        if type(truth) is bool and is_staged(found) and found.weak and found.dtype == np.bool_:
            return found if truth else not_(found)
    if ROLLING.strict and any(is_staged(x) and x.weak for x in (value, other)):
        raise not_alike("the identity of a number")
    return require_defined(value) is require_defined(other)


def contains(value: Any, items: Any) -> Any:
    """Carry out `in`: whether a value is one of some items, or equal to one."""
    method = None if type(items) in PLAIN else user_method(type(items), "__contains__")
    if method is not None:
        found = method(items, value)
        return as_truth(found) if is_staged(found) else bool(found)
    if type(items) not in HOLDING or len(items) > MOST:
        return require_known("in", value in items, value)
    asks = isinstance(items, list | tuple)  # others look for equal hashes first
    if not any(is_staged(x) or (asks and type(x) not in PLAIN) for x in (value, *items)):
        return value in items

    def test(item: Any) -> Any:
        equal = value is item or left_operand(value) == right_operand(item)
        return as_truth(equal) if is_staged(equal) else bool(equal)

    return or_(False, *[lambda item=item: test(item) for item in items])
