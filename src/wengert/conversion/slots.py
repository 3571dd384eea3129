"""What a loop carries from one iteration to the next, found from what a traced iteration leaves in each place.

Arrays are carried from the beginning, Python numbers as soon as an iteration changes them, and a variable that is set
before it is read in each iteration not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from wengert._tree import unflatten
from wengert.conversion.branches import write_back
from wengert.conversion.places import UNBOUND, Place, Undefined, shown
from wengert.conversion.regions import Content, cast, is_array, is_number, same
from wengert.core.aval import Aval, aval_of
from wengert.core.tensor import Tensor
from wengert.errors import GraphError, describe
from wengert.traces.staging import Stage

__all__ = ["Slot"]


class Slot:
    """Hold what is known of one place in a loop.

    Attributes:
        carried: the avals of the leaves that are carried, None for others.
        undefined: what it holds at the beginning of an iteration if it is not handed on.
    """

    def __init__(self, place: Place, content: Content) -> None:
        self.place = place
        self.content = content
        self.undefined: Undefined | None = None
        self.spoiled = self.expected = self.written_first = False
        self.carried: list[Aval | None] = []
        if content.structure is UNBOUND:
            self.undefined = content.value if isinstance(content.value, Undefined) else self.missing()
        else:
            self.carried = [aval_of(x) if is_array(x) and type(x) is not Tensor else None for x in content.leaves]

    def expect(self, flags: Sequence[bool]) -> None:
        """Carry the Tensors that the last trace of this loop found to be replaced, without finding it out again."""
        if self.undefined is None and len(flags) == len(self.carried):
            self.expected = True
            self.carried = [
                aval_of(x) if flag and type(x) is Tensor else aval
                for flag, x, aval in zip(flags, self.content.leaves, self.carried, strict=True)
            ]

    def surprised(self, given: Content, found: Content) -> bool:
        """Tell whether a Tensor that was expected to be replaced is not, or is written to before; forget it then."""
        if not self.expected or self.undefined is not None:
            return False
        self.expected = False
        self.written_first = any(
            aval is not None and type(old) is Tensor and is_old(start, end, found.leaves[k : k + 1])
            for k, (aval, old, start, end) in enumerate(
                zip(self.carried, self.content.leaves, given.leaves, given.ends, strict=True)
            )
        )
        if self.written_first:
            pairs = zip(self.carried, self.content.leaves, strict=True)
            self.carried = [None if type(x) is Tensor else aval for aval, x in pairs]
        return self.written_first

    @property
    def replaced(self) -> list[bool]:
        """Which leaves the body leaves another object in, without having written to what was there."""
        return [aval is not None and not self.written_first for aval in self.carried]

    def missing(self) -> Undefined:
        """Return what a variable holds that is not there before the loop."""
        text = describe(
            "loop",
            f"{self.place.name} has no value before a loop that a traced value decides about",
            "it may be used in or after the loop only if it has one",
            "Set it before the loop, to a value of the shape and dtype that it has after",
        )
        return Undefined(text + self.place.where(0))

    def start(self, stage: Stage) -> Any:
        """Return what the place holds at the beginning of an iteration."""
        if self.undefined is not None:
            return UNBOUND if self.place.hidden else self.undefined
        leaves = [
            stage.input(aval) if aval is not None else leaf
            for leaf, aval in zip(self.content.leaves, self.carried, strict=True)
        ]
        return unflatten(self.content.structure, leaves)

    def grow(self, found: Content) -> bool:
        """Take in what an iteration leaves in the place; tell whether another one has to be traced."""
        if self.undefined is not None:
            if self.place.hidden and isinstance(found.value, Undefined):
                found.value.refuse()
            if self.place.hidden and found.structure is not UNBOUND:
                self.fill(found)
                return True
            return False
        if found.structure is UNBOUND:
            self.spoil(found)
            return True
        if found.structure != self.content.structure:
            self.spoil(found)
            return True
        grown = False
        for k, (leaf, old, aval) in enumerate(zip(found.leaves, self.content.leaves, self.carried, strict=True)):
            if aval is None and same(leaf, old):
                continue
            wanted = joint_aval(old, aval_of(old) if aval is None and is_array(old) else aval, leaf)
            if wanted is None:
                self.spoil(found)
                return True
            if wanted != aval:
                self.carried[k] = wanted
                grown = True
        return grown

    def fill(self, found: Content) -> None:
        """Let a variable that conversion added hold zeros before the loop: its flag tells that nobody reads them."""
        zeros = [np.zeros(*aval_of(x))[()] if is_array(x) or is_number(x) else x for x in found.leaves]
        self.content = Content(UNBOUND, zeros, found.structure, zeros)
        self.carried = [aval_of(x) if is_array(x) else None for x in zeros]
        self.undefined = None

    def spoil(self, found: Content) -> None:
        """Let a place be undefined from one iteration to the next, because it changes its kind."""
        text = describe(
            "loop",
            f"{self.place.name} is {shown(self.content.value)} before an iteration and {shown(found.value)} after it",
            "a loop that a traced value decides about must keep containers, shapes and dtypes",
            "Give it the shape and dtype before the loop that it has after",
        )
        text += self.place.where(0)
        if self.place.hidden:
            raise GraphError(text)
        self.undefined = Undefined(text)
        self.spoiled = True
        self.carried = []

    def outputs(self, found: Content) -> list[Any]:
        """Return the leaves that are carried on."""
        if self.undefined is not None:
            return []
        return [x for x, aval in zip(found.ends, self.carried, strict=True) if aval is not None]

    @property
    def avals(self) -> list[Aval]:
        """The avals of what is carried."""
        return [aval for aval in self.carried if aval is not None] if self.undefined is None else []

    def initial(self) -> list[Any]:
        """Return what is carried into the first iteration."""
        if self.undefined is not None:
            return []
        pairs = zip(self.content.ends, self.carried, strict=True)
        return [cast(x, aval.dtype) for x, aval in pairs if aval is not None]

    def finish(self, results: Iterator[Any], changed_in_place: bool) -> None:
        """Let the place hold what the loop left."""
        if self.undefined is not None:
            self.place.write(self.undefined)
            return
        if not any(aval is not None for aval in self.carried):
            return
        leaves = [
            next(results) if aval is not None else leaf
            for leaf, aval in zip(self.content.leaves, self.carried, strict=True)
        ]
        value = unflatten(self.content.structure, leaves)
        if not (changed_in_place and write_back(self.content.value, value)):
            self.place.write(value)


def is_old(start: Tensor, end: Tensor, found: Sequence[Any]) -> bool:
    """Tell whether an input of an iteration has been written to, or is what the iteration leaves."""
    return start._value is not end._value or any(x is start for x in found)


def joint_aval(old: Any, aval: Aval | None, leaf: Any) -> Aval | None:
    """Return the shape and dtype that can hold what a leaf is before and after an iteration; None if none can.

    Python numbers adapt to arrays; two arrays must agree.
    """
    if not (is_array(leaf) or is_number(leaf)) or not (is_array(old) or is_number(old)):
        return None
    new = aval_of(leaf)
    if aval is None:  # a Python number that an iteration changes
        if new.shape != ():
            return None
        return Aval((), new.dtype if is_array(leaf) else np.result_type(np.asarray(old), np.asarray(leaf)))
    if is_number(leaf):
        return aval if aval.shape == () and np.result_type(leaf, aval.dtype) == aval.dtype else None
    if is_number(old) and new.shape == ():
        return Aval((), np.promote_types(aval.dtype, new.dtype))
    return aval if new == aval else None
