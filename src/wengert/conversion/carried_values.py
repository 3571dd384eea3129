"""What a loop carries from one iteration to the next, found from what a traced iteration leaves in each place.

Arrays and Python numbers are carried as soon as an iteration leaves others, and a variable that is set before it is
read in each iteration not at all. What an iteration leaves in a variable may be memory that a Tensor from outside has,
or another variable. In the next iteration a write to one of the two then changes the other, if it was so: the other is
lost.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from wengert.control.ambiguous_identity import holders_in
from wengert.control.mutable_state import AttributesHolder, holder_of
from wengert.control.variable_places import (
    Contents,
    HalfDefined,
    Holder,
    Undefined,
    VariablePlace,
    is_undefined,
    suggest_instead,
    value_text,
)
from wengert.control.zero_sequence import zeros_like
from wengert.conversion.traced_regions import (
    Note,
    TracedRegion,
    enter_memory,
    give_strides,
    is_array,
    is_unchanged,
    operand_of,
    take_alike,
)
from wengert.core.containers.container_classes import is_container, open_class
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.graph.equation import Variable
from wengert.core.memory.memory_layout import Strides, strides_among, strides_of, ways_of
from wengert.core.memory.possible_aliases import SHARES, Plain, Share, may_share, memories_of, shared_with
from wengert.core.memory.views import base_and_path, current
from wengert.core.memory.write_watches import lost_text
from wengert.core.values.aval import Aval, aval_of, is_number, shape_of, unite_scalars
from wengert.core.values.dispatch import conform
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError, describe
from wengert.support.function_contents import UNBOUND
from wengert.support.records import NamedTuple
from wengert.traces.staging import Staging


class CarriedLeaf(NamedTuple):
    """Hold a leaf that a loop carries.

    Attributes:
        key: its place, and which leaf there it is.
        old: what it is before the loop.
        start: what it was at the beginning of the traced iteration; None if it was not carried then.
        end: what that iteration leaves.
    """

    key: Any
    old: Any
    start: Tensor | None
    end: Any


class Aliases:
    """Keep the pairs of carried leaves, or of one and a Tensor from outside, that may share memory.

    Attributes:
        rows: the rows of the traced iteration, each with the array that the loop goes through.
        outside: the Tensors in pairs, by identity.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.rows: list[tuple[Tensor, Tensor]] = []
        self.pairs: set[tuple[Any, Any]] = set()
        self.outside: dict[int, Tensor] = {}

    def base(self, value: Any) -> Tensor | None:
        """Return what owns the memory of an array; None for a number or an array without a Tensor."""
        if not is_memory(value):
            return None
        base = base_and_path(value)[0]
        return next((base_and_path(array)[0] for row, array in self.rows if row is base), base)

    def start(self, leaves: Mapping[Any, Tensor]) -> None:
        """Let those that may share memory know of each other at the beginning of an iteration."""
        arrays = {**self.outside, **leaves}
        for one, other in self.pairs:
            if one in arrays and other in arrays:
                shared_with(arrays[one], arrays[other], self.text)

    def grow(self, values: Mapping[Any, Any], region: TracedRegion) -> bool:
        """Take in what may share memory among what leaves are, and with Tensors; tell whether there is more."""
        before = len(self.pairs)
        bases = {key: base for key, value in values.items() if (base := self.base(value)) is not None}
        for key, base in bases.items():
            found = {id(x): x for x in holders_outside(base, region)}
            self.outside.update(found)
            self.pairs |= {(key, identity) for identity in found}
        for (one, base), (other, another) in combinations(bases.items(), 2):
            if may_share(base, another):
                self.pairs.add((one, other))
        return len(self.pairs) > before

    def finish(
        self, leaves: Sequence[CarriedLeaf], results: Sequence[Any], region: TracedRegion, certain: bool
    ) -> None:
        """Enter which results may share memory, with one another or with a Tensor from before.

        `certain` says whether there was an iteration.
        """
        ends = [self.base(leaf.end) for leaf in leaves]
        olds = [self.base(leaf.old) for leaf in leaves]
        left = [end for end in ends if end is not None]
        starts = [leaf.start for leaf in leaves if leaf.start is not None]
        handed = [  # from one variable to another: after many iterations any may hold any of them
            old
            for leaf, old in zip(leaves, olds, strict=True)
            if old is not None and leaf.start is not None and shares_any(leaf.start, left)
        ]
        members: list[tuple[Tensor, Tensor]] = []
        for result, end, old in zip(results, ends, olds, strict=True):
            if not is_memory(result):
                continue
            sources = [] if old is None or certain else [old]
            if end is not None:
                sources += holders_outside(end, region) + (handed if shares_any(end, starts) else [])
                for other, another in members:
                    if may_share(end, another):
                        shared_with(result, other, self.text)
                members.append((result, end))
            for memory in [memory for source in sources for memory in memories_of(source)]:
                enter_memory(result, memory, Share(None, self.text))


def shares_any(base: Tensor, others: Sequence[Tensor]) -> bool:
    """Tell whether a Tensor may share memory with one of several."""
    return any(may_share(base, x) for x in others)


def holders_outside(base: Tensor, region: TracedRegion) -> list[Tensor]:
    """Return the Tensors that a piece did not make and that may share memory with one."""
    found = [x for memory in SHARES.get(id(base), ()) for x, _ in memory.living_holders()]
    return [x for x in (base, *found) if not region.has_made(x) and not stands_for_own(x, region)]


def stands_for_own(handle: Tensor, region: TracedRegion) -> bool:
    """Tell whether a handle stands for an ndarray that a piece made: each time it is traced there is another."""
    return type(handle._trace) is Plain and not region.heap.overlapping(handle._value)


def is_memory(value: Any) -> bool:
    """Tell whether a value is a Tensor that a write changes, not a scalar."""
    return type(value) is Tensor and (value.ndim > 0 or strides_of(value) is not None)


class CarriedPlace:
    """Hold what is known of one place in a loop.

    Attributes:
        value: what it holds before the loop.
        leaves: that, taken apart, once an iteration was found to leave something else.
        carried: the avals of the leaves that are carried, None for others.
        inputs: the leaves that are carried, at the beginning of the last iteration traced, with their variables.
        undefined: what it holds at the beginning of an iteration if it is not handed on.
        before: what a variable holds before the loop that may have a value there, and whether it has.
        ways: how the leaves may lie in memory, as the first or as what an iteration leaves.
        expected: whether what is carried is only expected so far.
        begun: the container or object that it holds at the beginning of an iteration, with its contents.
        inside: the containers and objects in it, likewise.
        wrote: whether the iteration changed what it holds, or what was there before the loop.
        wrote_inside: whether it changed what is in one of these.
        opened: whether more is a leaf than what the value is a container of, since an iteration leaves others: numbers
            in static fields of dataclasses, and the attributes of objects.
        late: whether each iteration sets the variable, which has no value before the loop, before it reads it.
    """

    def __init__(self, place: VariablePlace, note: Note) -> None:
        self.place = place
        self.note = note
        self.value = place.read()
        self.undefined: Undefined | None = None
        self.before: tuple[Any, Any] | None = None
        self.spoiled = self.expected = self.disappointed = self.late = self.opened = False
        self.leaves: list[Any] = []
        self.structure: Any = None
        self.carried: list[Aval | None] = []
        self.inputs: list[tuple[Tensor, Any] | None] = []
        self.ways: dict[int, frozenset[Strides]] = {}
        self.begun: tuple[Holder, Contents] | None = None
        self.inside: list[tuple[Holder, Contents]] = []
        self.wrote = self.wrote_inside = False
        if is_undefined(self.value):
            before = self.value
            if isinstance(before, HalfDefined):
                self.before, before = before.halves(), before.without_value()
            self.undefined = before if isinstance(before, Undefined) else self.missing()

    def expect(self, avals: Sequence[Aval | None] | None) -> None:
        """Carry what the last trace of this loop found to be replaced; of a loop not known yet, an ndarray."""
        if self.undefined is not None:
            return
        leaves, structure = flatten(self.value, in_order=True)
        if avals is None:
            avals = [aval_of(self.value)] if type(self.value) is np.ndarray else [None] * len(leaves)
        if len(avals) != len(leaves):
            return
        carried = [self.expected_aval(x, aval) for x, aval in zip(leaves, avals, strict=True)]
        if any(aval is not None for aval in carried):
            self.expected = True
            self.leaves, self.structure, self.carried = leaves, structure, carried

    def expected_aval(self, leaf: Any, aval: Aval | None) -> Aval | None:
        """Return what to carry of a leaf that had an aval; None for nothing.

        A number that had a dtype, though Python's have none, would keep it where its operands have another one now.
        """
        if aval is None or not (is_array(leaf) or is_number(leaf)):
            return None
        own = aval_of(leaf)
        return aval if is_number(leaf) and self.place.hidden else own if is_array(leaf) or own == aval else None

    def is_surprised(self, found: Any) -> bool:
        """Tell whether an array that was expected to be replaced is not, or is written to before; forget it then."""
        if not self.expected or self.undefined is not None:
            return False
        self.expected = False
        ends = [] if is_undefined(found) else [id(x) for x in flatten(found)[0]]
        starts = [x for x in self.inputs if x is not None]
        self.disappointed = any(x._value is not value or lost_text(x) or id(x) in ends for x, value in starts)
        if self.disappointed:
            self.leaves, self.carried, self.inputs = [], [], []
        return self.disappointed

    def unexpect(self) -> bool:
        """Carry no number that is only expected to be replaced; tell whether there is one."""
        numbers = self.expected and any(map(is_number, self.olds))
        if numbers:
            self.expected = False
            self.leaves, self.carried, self.inputs = [], [], []
        return numbers

    def look(self, region: TracedRegion) -> None:
        """Find out whether an iteration has changed the container or object that it began with."""
        self.wrote = id(self.value) in region.contents or (
            self.begun is not None and self.begun[0].differs(self.begun[1], self.begun[0].contents())
        )
        self.wrote_inside = any(id(x.target) in region.contents for x in holders_in(self.value, within=True)) or any(
            holder.differs(contents, holder.contents()) for holder, contents in self.inside
        )

    @property
    def replaces(self) -> bool:
        """Whether iterations hand on other containers or objects than the one that was there before the loop."""
        return self.begun is not None and self.undefined is None and bool(self.avals)

    def replace(self, tensors: Mapping[int, Tensor]) -> None:
        """Hold Tensors that have taken the place of ndarrays."""
        self.value = self.place.read()
        self.leaves = [tensors.get(id(x), x) for x in self.leaves]

    @property
    def replaced_avals(self) -> list[Aval | None]:
        """The avals of leaves in which the body leaves another object, without having written to what was there."""
        return [None if self.disappointed else aval for aval in self.carried]

    def missing(self) -> Undefined:
        """Return what a variable holds that is not there before the loop."""
        text = describe(
            "loop",
            f"{self.place.name} has no value before a loop that a traced value decides about",
            "each iteration has to set it before it is read, to arrays and numbers alone",
            "Set it before the loop, to a value of the shape and dtype that it has after",
        )
        return Undefined(text + self.where())

    def where(self) -> str:
        """Return the line that sets the place, or where the loop stands."""
        return self.place.where(0) or f"\n  {self.note[2]}"

    def start(self, stage: Staging) -> None:
        """Let the place hold what it does at the beginning of an iteration."""
        if self.undefined is not None and not self.late:
            self.place.write(self.undefined if self.place.variable and not self.place.hidden else UNBOUND)
        elif self.leaves:
            starts = [
                None if example is None else stage.input(example.aval, "", example.strides)
                for example in map(self.example, range(len(self.leaves)))
            ]
            self.inputs = [None if x is None else (x, x._value) for x in starts]
            leaves = [old if x is None else x for old, x in zip(self.leaves, starts, strict=True)]
            begun = unflatten(self.structure, leaves)
            holder = None if is_array(begun) else holder_of(begun, "")
            self.begun = None if holder is None else (holder, holder.contents())
            self.inside = [(x, x.contents()) for x in holders_in(begun, within=True)]
            self.place.write(self.undefined if self.late else begun)

    def grow(self, found: Any, region: TracedRegion, certain: bool, is_read: bool = False) -> bool:
        """Take in what an iteration leaves in the place; tell whether another one has to be traced.

        `certain` says whether there is one, `is_read` whether a variable is read as one that may have no value.
        """
        if self.undefined is not None and not self.late:
            return self.fill(found, region) or ((certain or is_read) and self.fill_late(found, region, certain))
        if found is self.value:
            return False
        if is_undefined(found):
            return self.spoil(found)
        old, new, structure = self.taken_alike(found, region)
        while self.open(old, new, structure):
            old, new, structure = self.taken_alike(found, region)
        if not self.leaves:
            self.leaves, self.structure, self.carried = old, structure, [None] * len(old)
        elif structure != self.structure:
            return self.spoil(found)
        grown = False
        for k, (leaf, start, aval) in enumerate(zip(new, self.leaves, self.carried, strict=True)):
            if aval is None and is_unchanged(leaf, start):
                continue
            wanted = joint_aval(start, aval_of(start) if aval is None and is_array(start) else aval, leaf)
            if wanted is None:
                return self.spoil(found)
            if wanted != aval:
                self.carried[k] = wanted
                grown = True
        return grown

    def open(self, old: Sequence[Any], new: Sequence[Any], structure: Any) -> bool:
        """Look into what an iteration leaves others of; tell whether that can be taken apart further."""
        pairs = [(x, y) for x, y in zip(old, new, strict=True) if x is not y and type(x) is type(y)]
        kinds = {type(x) for x, y in pairs if all(map(is_plain_object, (x, y)))}
        unequal = structure is None and any(is_container(type(x)) for x, _ in pairs)
        news = [open_class(kind) for kind in kinds]
        if not (any(news) if self.opened else unequal or kinds):
            return False
        self.opened = True
        self.leaves, self.inputs, self.ways = [], [], {}
        return True

    def lie_anew(self, region: TracedRegion) -> bool:
        """Take in how what an iteration leaves lies in memory; tell whether that is new."""
        news = False
        places = [k for k, aval in enumerate(self.carried) if aval is not None]
        for k, end in zip(places, self.outputs(region), strict=True):
            known = self.ways.get(k, ways_of(strides_of(self.leaves[k])))
            self.ways[k] = known | ways_of(strides_of(end))
            news = news or self.ways[k] != known
        return news

    def example(self, k: int) -> Variable | None:
        """Return a variable like a leaf, as iterations receive it, if it is carried; None for others."""
        aval = self.carried[k]
        if aval is None:
            return None
        ways = self.ways.get(k)
        strides = strides_of(self.leaves[k]) if ways is None else strides_among(aval.shape, aval.dtype.itemsize, ways)
        return Variable.of(aval, "", strides)

    @property
    def examples(self) -> list[Variable]:
        """Variables like the leaves that are carried, as iterations receive them."""
        return [x for x in map(self.example, range(len(self.leaves))) if x is not None]

    def taken_alike(self, found: Any, region: TracedRegion) -> tuple[list[Any], list[Any], Any]:
        """Return what the place held before the loop and what an iteration leaves there, taken apart alike."""
        before = functools.partial(flatten, in_order=True, opened=self.opened)
        ways = [before, functools.partial(region.taken_apart, opened=self.opened)]
        return take_alike((self.value, found), region.heap.holders, ways)

    def fill(self, found: Any, region: TracedRegion) -> bool:
        """Let a variable that conversion added hold zeros before the loop: its flag tells that nobody reads them."""
        if not self.place.hidden or found is UNBOUND:
            return False
        if isinstance(found, Undefined):
            found.refuse()
        leaves, self.structure = region.taken_apart(found)
        self.leaves = [zeros_like(x) if is_array(x) or is_number(x) else x for x in leaves]
        self.carried = [aval_of(x) if is_array(x) else None for x in self.leaves]
        self.value = unflatten(self.structure, self.leaves)
        self.undefined = None
        return True

    def fill_late(self, found: Any, region: TracedRegion, certain: bool) -> bool:
        """Let a variable that each iteration sets hold zeros before the loop, if it holds arrays and numbers.

        One that may have a value before it holds that, which is to be alike if no iteration is certain.
        """
        if self.place.hidden or not self.place.variable or is_undefined(found) or self.spoiled:
            return False
        leaves, self.structure = region.taken_apart(found)
        if not all((is_array(x) or is_number(x)) and not strides_of(x) for x in leaves):
            return False
        avals: list[Aval | None] = [aval_of(x) for x in leaves]
        known, structure = ([], None) if self.before is None else flatten(self.before[0])
        alike = structure == self.structure and all(is_array(x) or is_number(x) for x in known)
        alike = alike and list(map(aval_of, known)) == avals
        if not (alike or certain or self.before is None):
            return False
        self.carried, self.leaves = avals, known if alike else [zeros_like(x) for x in leaves]
        self.value = unflatten(self.structure, self.leaves)
        self.late = True
        return True

    def starts(self) -> list[tuple[Any, tuple[Tensor, Any]]]:
        """Return what is carried at the beginning of the last iteration traced, with its variables, by key."""
        return [((self.place.identity, k), x) for k, x in enumerate(self.inputs) if x is not None]

    def carries(self, region: TracedRegion) -> list[CarriedLeaf]:
        """Return the leaves that are carried."""
        starts = {key: x[0] for key, x in self.starts()}
        keys = [(self.place.identity, k) for k, aval in enumerate(self.carried) if aval is not None]
        ends = self.leaves_left(region)
        return [
            CarriedLeaf(key, old, starts.get(key), end) for key, old, end in zip(keys, self.olds, ends, strict=True)
        ]

    def spoil(self, found: Any) -> bool:
        """Let a place be undefined from one iteration to the next, because it changes its kind."""
        text = describe(
            "loop",
            f"{self.place.name} is {value_text(self.value)} before an iteration and {value_text(found)} after it",
            "a loop that a traced value decides about must keep containers, shapes and dtypes",
            suggest_instead((self.value, found), "Give it the shape and dtype before the loop that it has after"),
        )
        text += self.where()
        if self.place.hidden:
            raise GraphError(text)
        self.undefined = Undefined(text)
        self.late = False
        self.spoiled = True
        self.leaves, self.carried, self.inputs = [], [], []
        return True

    def outputs(self, region: TracedRegion) -> list[Any]:
        """Return the leaves that an iteration hands on."""
        return [region.end_of(x) for x in self.leaves_left(region)]

    def value_left(self, region: TracedRegion) -> Any:
        """Return what an iteration leaves in the place."""
        return region.value(self.place.holder, self.place.key)

    def leaves_left(self, region: TracedRegion) -> list[Any]:
        """Return what an iteration leaves of that which is carried."""
        if not self.avals:
            return []
        leaves = self.taken_alike(self.value_left(region), region)[1]
        return [x for x, aval in zip(leaves, self.carried, strict=True) if aval is not None]

    @property
    def avals(self) -> list[Aval]:
        """The avals of what is carried."""
        return [aval for aval in self.carried if aval is not None]

    def initial(self) -> list[Any]:
        """Return the operands that the loop carries into its first iteration, with the dtypes that it carries."""
        values = [operand_of(current(x)) if type(x) is Tensor else x for x in self.olds]
        return [conform(x, aval) for x, aval in zip(values, self.avals, strict=True)]

    @property
    def olds(self) -> list[Any]:
        """What is carried, as it was before the loop."""
        return [x for x, aval in zip(self.leaves, self.carried, strict=True) if aval is not None]

    def finish(self, results: Sequence[Any]) -> list[Any]:
        """Let the place hold what the loop left, and return that; raise if it has to be defined and cannot be."""
        found = [x if shape_of(x) else give_strides(x, y.strides) for x, y in zip(results, self.examples, strict=True)]
        self.hold(found)
        return found

    def hold(self, found: Sequence[Any]) -> None:
        """Let the place hold what the loop left of what it carried."""
        if self.undefined is not None and not self.late:
            if not self.place.variable:
                self.undefined.refuse()
            self.place.write(self.undefined)
        elif self.avals:
            rest = iter(found)
            pairs = zip(self.leaves, self.carried, strict=True)
            leaves = [leaf if aval is None else next(rest) for leaf, aval in pairs]
            self.place.write(unflatten(self.structure, leaves))

    def leave_where(self, begun: Any) -> None:
        """Let a variable that each iteration sets have its value where there was one, or it had one before."""
        assert self.undefined is not None
        if self.before is not None:
            begun = np.logical_or(begun, self.before[1])
        if is_staged(begun):
            self.place.write(self.undefined.with_value(self.place.read(), begun))
        elif not begun:
            self.place.write(self.undefined)


def is_plain_object(value: Any) -> bool:
    """Tell whether a value is an object of a user's class that is no container and can be made anew."""
    kind: Any = type(value)
    is_plain = kind.__new__ is object.__new__ and not is_container(kind)
    return is_plain and not is_array(value) and isinstance(holder_of(value, ""), AttributesHolder)


def joint_aval(old: Any, aval: Aval | None, leaf: Any) -> Aval | None:
    """Return the shape and dtype that can hold what a leaf is before and after an iteration; None if none can.

    Python numbers adapt to arrays; two arrays must agree.
    """
    if not (is_array(leaf) or is_number(leaf)) or not (is_array(old) or is_number(old)):
        return None
    new = aval_of(leaf)
    if aval is None:  # a Python number that an iteration changes
        return unite_scalars(aval_of(old), new) if new.shape == () else None
    if new.weak and not aval.weak:
        return aval if aval.shape == () and unite_scalars(new, aval) == aval else None
    if (aval.weak or is_number(old)) and new.shape == ():
        return unite_scalars(aval, new)
    return aval if new == aval else None
