"""Traced numbers where Python has integers of its own: what `int` and `__index__` give, and what `for` goes through.

`max(n, 3)` is Python's 3 or an uint8, and `max(n, 3) * 100` is 300 or wraps. Such a value is Python's integer to all
that only read it; operators are carried out as Python does with each of the two, and choose then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from wengert.control.variable_places import value_text
from wengert.conversion.traced_regions import is_array, raise_where
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.values.aval import Aval, aval_of, is_exact, is_number, unite_scalars
from wengert.core.values.dispatch import as_index, as_whole_number
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import DtypeError, TracedTruthError
from wengert.support.records import NamedTuple
from wengert.traces.whole_number_bounds import bounds_of, set_bounds
from wengert.traces.written_out import strictly


def as_integer(value: Any) -> Any:
    """Return a traced value without axes, which is a whole number but for its dtype, as an integer of Python's."""
    if value.dtype.kind == "c":
        raise DtypeError("int", f"a Tensor of dtype {value.dtype}", "a real number is needed", "Take its .real first")
    return as_whole_number(value)


def has_index(value: Tensor) -> bool:
    """Tell whether a traced value has an `__index__`: integers without axes, and Python's truths."""
    return value.shape == () and (value.dtype.kind in "iu" or (value.dtype.kind == "b" and value.weak))


def raise_here(failed: Any, error: Exception) -> None:
    """Let the graph raise an error of Python's where a traced truth holds, with the user's line."""
    error.add_note(f"  {position_of(*caller())}")
    raise_where(failed, error)


class IntegerAlternatives(NamedTuple):
    """Hold what a value is where a traced truth holds, and where it does not."""

    test: Any
    one: Any
    other: Any


MOST = 8
"""Choices of choices; of more of them a value is taken for Python's integer."""
_KNOWN: dict[int, tuple[weakref.ref[Tensor], IntegerAlternatives]] = {}


def enter_alternatives(value: Tensor, alternatives: IntegerAlternatives) -> Tensor:
    """Enter what a value is one of, as long as it lives, and return it."""
    identity = id(value)
    if depth(alternatives) > MOST:
        return value
    _KNOWN[identity] = weakref.ref(value, lambda _: _KNOWN.pop(identity, None)), alternatives
    return value


def depth(alternatives: IntegerAlternatives | None) -> int:
    """Return how many choices decide about a value, one after the other."""
    return 0 if alternatives is None else 1 + max(depth(alternatives_of(x)) for x in alternatives[1:])


def alternatives_of(value: Any) -> IntegerAlternatives | None:
    """Return what a value is one of, if that has been entered."""
    found = _KNOWN.get(id(value)) if _KNOWN and type(value) is Tensor else None
    return found[1] if found is not None and found[0]() is value else None


def has_alternatives(value: Any) -> bool:
    """Tell whether operators must be carried out with each of what a value is one of."""
    return alternatives_of(value) is not None


ITERATORS = frozenset((enumerate, zip, reversed))
SIZED = (list, tuple, range, str, bytes, dict, np.ndarray, Tensor)
"""What can be gone through again and again, so that nobody notices how far a loop has gone."""


class LoopIterator:
    """Stand in a `for` statement for an iterator that nobody else has, or sees how far it has gone.

    `function` made it, of `args` and `kwargs`.
    """

    def __init__(
        self, iterator: Iterator[Any], function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.iterator = iterator
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def __iter__(self) -> Iterator[Any]:
        return self.iterator


def make_iterating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of `enumerate`, `zip` or `reversed` where a `for` statement calls it itself."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        sources = args if function is zip else args[:1]
        known = all(isinstance(x, (*SIZED, LoopIterator)) for x in sources)
        return LoopIterator(found, function, args, kwargs) if known else found

    return call


ZERO = "range() arg 3 must not be zero"


class StagedRange:
    """Be a range of which an end is traced; its numbers are Python's, as those of every range.

    Raises:
        DtypeError: an end is no whole number.
        ValueError: the step is zero; a traced one raises that when the graph runs.
    """

    def __init__(self, *ends: Any) -> None:
        self.start, self.stop, self.step = (
            (0, *map(require_whole, ends), 1) if len(ends) == 1 else (*map(require_whole, ends), 1)[:3]
        )
        if is_staged(self.step):
            raise_here(np.equal(self.step, 0), ValueError(ZERO))
        elif self.step == 0:
            raise ValueError(ZERO)

    def count(self) -> Any:
        """Return how many numbers there are."""
        start, stop, step = self.start, self.stop, self.step
        if is_staged(step):
            up = count_rounds(start, stop, np.where(step > 0, step, 1))
            return np.where(step > 0, up, count_rounds(stop, start, np.where(step < 0, -step, 1)))
        return count_rounds(start, stop, step) if step > 0 else count_rounds(stop, start, -step)

    def item(self, k: Any) -> Any:
        """Return the number after k others; no round has one beyond the ends."""
        ends = [bounds_of(x._value if type(x) is Tensor else x) for x in (self.start, self.stop)]
        with strictly(False):
            found = self.start + k * self.step if not (is_number(self.step) and self.step == 1) else self.start + k
        if type(found) is Tensor and None not in ends and is_number(self.step):
            known = [end for pair in ends if pair is not None for end in pair]
            set_bounds(found._value, min(known), max(known))
        return found

    def __reversed__(self) -> StagedRange:
        return StagedRange(self.item(self.count() - 1), self.start - self.step, -self.step)

    def __iter__(self) -> NoReturn:
        given = f"a traced number of items, iterated over outside of a `for` statement ({position_of(*caller())})"
        action = "Write a `for` statement, use wengert.fori_loop or wengert.scan, or pass the number in static_argnums"
        raise TracedTruthError("range", given, "a number that is known while the function is traced is needed", action)

    __len__ = __getitem__ = __iter__


def require_whole(end: Any) -> Any:
    """Return an end of a range as an integer of Python's."""
    if is_staged(end) and not has_index(end):
        needed = "whole numbers are needed"
        raise DtypeError("range", f"an end that is {value_text(end)}", needed, "Convert it with int()")
    return as_index(end)


def count_rounds(low: Any, high: Any, step: Any) -> Any:
    """Return how many numbers lie from one to before a higher one, a positive step apart."""
    return np.maximum((high - low - 1) // step + 1, 0)


INTEGER = Aval((), np.dtype(np.int64), True)
"""What stands for an integer of Python's."""


def differ_in_room(a: Aval, b: Aval) -> bool:
    """Tell whether one leaf is an integer or truth of Python's, the other an integer of NumPy's of other than 64 bits.

    3 * 100 must stay 300 where the other branch gives an uint8, which wraps.
    """
    firm, weak = (b, a) if a.weak else (a, b)
    if firm.weak or not weak.weak:
        return False
    return firm.shape == () and firm.dtype.kind in "iu" and weak.dtype.kind in "bi" and firm.dtype != INTEGER.dtype


def common_aval(a: Any, b: Any) -> Aval | None:
    """Return the one shape and dtype of two leaves; None if they differ.

    Python numbers adapt if they stay the same; integers of Python's and narrower or unsigned ones are Python's.
    """
    if not all(is_array(x) or is_number(x) for x in (a, b)):
        return None
    one, other = aval_of(a), aval_of(b)
    if one.weak and other.weak:
        return unite_scalars(one, other)
    if other.weak:
        a, one, other = b, other, one
    if one.weak:
        if differ_in_room(one, other):
            return INTEGER
        return other if other.shape == () and unite_scalars(one, other) == other and is_exact(a, other.dtype) else None
    return one if one == other else None
