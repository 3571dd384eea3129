"""Loops: `while` and `for`, carried out as Python does until a traced value decides about them, then as one loop.

What a loop carries from one iteration to the next is found by tracing its body: arrays from the beginning, Python
numbers as soon as an iteration changes them, and a variable that is set before it is read in each iteration not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from wengert._tree import unflatten
from wengert.control import loop
from wengert.control.staged import with_common_constants
from wengert.conversion.branches import and_, choose, inputs_of, private, running, write_back
from wengert.conversion.places import UNBOUND, Place, Site, Undefined, places_of, read_by, shown
from wengert.conversion.regions import (
    Content,
    Region,
    as_truth,
    cast,
    content_of,
    is_array,
    is_number,
    is_traced,
    noted,
    same,
    traced,
)
from wengert.core.aval import Aval, aval_of
from wengert.core.dispatch import apply
from wengert.core.source import caller, position_of
from wengert.core.tensor import Tensor
from wengert.errors import GraphError, TracedTruthError, UsageError, describe
from wengert.traces.staging import Stage

__all__ = ["StagedRange", "for_stmt", "while_stmt"]

Thunk = Callable[[], Any]
COUNTER = Aval((), np.dtype(np.int64))


class StagedRange:
    """Be a range of which an end is traced."""

    def __init__(self, *ends: Any) -> None:
        self.start, self.stop, self.step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
        for end in ends:
            if is_array(end) and (end.shape != () or end.dtype.kind not in "iu"):
                raise UsageError(
                    describe(
                        "range",
                        f"an end that is {shown(end)}",
                        "whole numbers are needed",
                        "Convert it with .astype(int)",
                    )
                )
        if is_number(self.step) and self.step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def count(self) -> Any:
        """Return how many numbers there are."""
        step = self.step
        if is_traced(step):
            up = np.maximum((self.stop - self.start + step - 1) // np.where(step == 0, 1, step), 0)
            down = np.maximum((self.start - self.stop - step - 1) // np.where(step == 0, 1, -step), 0)
            return np.where(step > 0, up, down)
        if step > 0:
            return np.maximum((self.stop - self.start + (step - 1)) // step, 0)
        return np.maximum((self.start - self.stop + (-step - 1)) // -step, 0)

    def item(self, k: Any) -> Any:
        """Return the number after k others."""
        return self.start + k * self.step if not (is_number(self.step) and self.step == 1) else self.start + k

    def __iter__(self) -> NoReturn:
        raise TracedTruthError(
            describe(
                "range",
                "a traced number of items, iterated over outside of a `for` statement",
                "a number that is known while the function is traced is needed",
                "Write a `for` statement, or use wengert.fori_loop or wengert.scan",
            )
        )

    __len__ = __getitem__ = __reversed__ = __iter__


# Statements


def while_stmt(test: FunctionType, body: FunctionType, stops: Sequence[str], site: tuple[Any, ...]) -> None:
    """Carry out `while`."""
    places = places_of(Site(*site), body, test)
    flags = Flags(stops, body)

    def go_on() -> Any:
        going = flags.running()
        if is_traced(going):
            return and_(going, test)
        return going and test()

    while True:
        going = go_on()
        if is_traced(going):
            staged_loop("while", places, body, go_on, [body, test])
            return
        if not going:
            return
        body()


def for_stmt(iterable: Any, body: FunctionType, stops: Sequence[str], site: tuple[Any, ...]) -> None:
    """Carry out `for`."""
    places = places_of(Site(*site), body)
    flags = Flags(stops, body)
    if isinstance(iterable, StagedRange):
        counted_loop(places, body, flags, iterable.count(), iterable.item)
        return
    if is_traced(iterable) and rolled(iterable, places, body, flags):
        return
    items = iter(iterable)
    taken = 0
    while True:
        going = flags.running()
        if is_traced(going):
            remaining(iterable, items, taken, places, body, flags)
            return
        if not going:
            return
        try:
            item = next(items)
        except StopIteration:
            return
        taken += 1
        body(item)


class Flags:
    """Read the flags that end a loop."""

    def __init__(self, names: Sequence[str], body: FunctionType) -> None:
        cells = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        self.cells = [cells[name] for name in names]

    def running(self) -> Any:
        """Return whether none of them is set."""
        return running(*(cell.cell_contents for cell in self.cells))


def remaining(
    iterable: Any, items: Iterator[Any], taken: int, places: Sequence[Place], body: FunctionType, flags: Flags
) -> None:
    """Carry out the rest of a `for` whose end is now up to a traced flag."""
    if isinstance(iterable, range):
        rest = iterable[taken:]
        counted_loop(places, body, flags, len(rest), StagedRange(rest.start, rest.stop, rest.step).item)
        return
    if not hasattr(iterable, "__len__"):
        raise UsageError(
            describe(
                "for",
                f"an iterator of type {type(iterable).__name__}, which a traced condition ends early",
                "something with a length is needed",
                "Iterate over a range, a list or an array, or write a `while`",
            )
        )
    note = ("for", "iterations after a `break`", position_of(*caller()))
    for item in items:
        going = flags.running()
        if is_traced(going):
            choose(as_truth(going), places, lambda: body(item), lambda: None, note)  # noqa: B023 - called at once
        elif going:
            body(item)
        else:
            return


def counted_loop(
    places: Sequence[Place], body: FunctionType, flags: Flags, count: Any, item: Callable[[Any], Any]
) -> None:
    """Carry out a number of iterations."""
    test = flags.running if flags.cells else None
    staged_loop("for", places, body, test, [body], Counted(count, item))


def rolled(array: Tensor, places: Sequence[Place], body: FunctionType, flags: Flags) -> bool:
    """Carry out a loop over the rows of an array as one loop; tell whether what it does allows that."""
    if array.ndim == 0 or len(array) < 2:
        return False
    test = flags.running if flags.cells else None
    counted = Counted(len(array), lambda k: array[k], array)
    return staged_loop("for", places, body, test, [body], counted, optional=True)


# The staged loop


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
        self.spoiled = False
        self.carried: list[Aval | None] = []
        if content.structure is UNBOUND:
            self.undefined = content.value if isinstance(content.value, Undefined) else self.missing()
        else:
            self.carried = [aval_of(x) if is_array(x) else None for x in content.leaves]

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
            wanted = joint_aval(old, aval, leaf)
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
        self.content = Content(UNBOUND, zeros, found.structure)
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
        return [x for x, aval in zip(found.leaves, self.carried, strict=True) if aval is not None]

    @property
    def avals(self) -> list[Aval]:
        """The avals of what is carried."""
        return [aval for aval in self.carried if aval is not None] if self.undefined is None else []

    def initial(self) -> list[Any]:
        """Return what is carried into the first iteration."""
        if self.undefined is not None:
            return []
        pairs = zip(self.content.leaves, self.carried, strict=True)
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


class Counted(NamedTuple):
    """Hold how often a loop runs, and what gives the item of each iteration: rows of `rows` if that is there."""

    count: Any
    item: Callable[[Any], Any]
    rows: Tensor | None = None


class StagedLoop:
    """Be a loop that a traced value decides about.

    Inputs of its traced pieces are the counter or row, what is carried, and the variables that it only reads.

    Attributes:
        slots: the variables that it changes.
        readers: those that it reads.
        region: the traced body.
    """

    region: Region

    def __init__(
        self,
        kind: str,
        places: Sequence[Place],
        body: Callable[..., Any],
        test: Thunk | None,
        functions: Sequence[FunctionType],
        counted: Counted | None,
    ) -> None:
        self.kind = kind
        self.readers = read_by(functions, places)
        self.places = [*places, *self.readers]
        self.slots = [Slot(place, content_of(place.read())) for place in places]
        self.body = body
        self.test = test
        self.counted = counted
        self.note = (kind, "iterations", position_of(*caller()))
        self.rows = counted.rows if counted is not None and test is None else None

    def starts(self, stage: Stage) -> list[Any]:
        """Return what the places hold at the beginning of an iteration."""
        return [*(slot.start(stage) for slot in self.slots), *private(self.readers, stage)]

    def settle(self, optional: bool) -> bool:
        """Trace the body until what is carried is known; return False if the loop is optional and it cannot be."""
        defined = [slot for slot in self.slots if slot.undefined is None]
        while True:
            self.region = self.iteration()
            found = self.region.found[: len(self.slots)]
            grown = [slot.grow(content) for slot, content in zip(self.slots, found, strict=True)]
            if optional and any(slot.spoiled for slot in defined):
                return False
            if not any(grown):
                return True

    def iteration(self) -> Region:
        """Trace one iteration."""
        counted, items = self.counted, []

        def begin(stage: Stage) -> list[Any]:
            if counted is not None:
                row = None if self.rows is None else aval_of(self.rows)
                items.append(stage.input(COUNTER if row is None else Aval(row.shape[1:], row.dtype)))
            return self.starts(stage)

        def run() -> None:
            if counted is None:
                self.body()
            else:
                self.body(items[0] if self.rows is not None else counted.item(items[0]))

        with noted(*self.note):
            return traced(self.kind, self.places, begin, run)

    def emit(self) -> None:
        """Append the loop to the graph, and let the places hold what it leaves."""
        found = self.region.found[: len(self.slots)]
        pairs = list(zip(found, self.region.given, strict=False))
        init = [x for slot in self.slots for x in slot.initial()]
        outputs = [x for slot, content in zip(self.slots, found, strict=True) for x in slot.outputs(content)]
        step = self.region.function(outputs, [aval for slot in self.slots for aval in slot.avals])
        results = iter(self.repeated(step, init) if init else ())
        for slot, (after, before) in zip(self.slots, pairs, strict=True):
            slot.finish(results, after.value is before.value and slot.content.value is not UNBOUND)

    def repeated(self, step: Callable[..., Any], init: list[Any]) -> Sequence[Any]:
        """Append the loop to the graph, and return what it carries at its end."""
        read = inputs_of(self.readers)
        if self.rows is not None:
            end = len(read) + len(init)
            return self.apply(loop.scan_loop, [lambda *xs: step(xs[end], *xs[len(read) : end], *xs[: len(read)])], init)
        decide = self.decision()
        if self.counted is None:
            count = len(read)
            return self.apply(
                loop.while_loop,
                [lambda *xs: step(*xs[count:], *xs[:count]), lambda *xs: decide(*xs[count:], *xs[:count])],
                init,
            )
        count, most = len(read), self.counted.count

        def advance(*xs: Any) -> list[Any]:
            return [xs[count] + 1, *step(*xs[count:], *xs[:count])]

        def go_on(*xs: Any) -> list[Any]:
            more = xs[count] < most
            return [more if self.test is None else np.logical_and(more, decide(*xs[count + 1 :], *xs[:count])[0])]

        return self.apply(loop.while_loop, [advance, go_on], [np.int64(0), *init])[1:]

    def apply(
        self, primitive: Any, functions: Sequence[Callable[..., Sequence[Any]]], init: Sequence[Any]
    ) -> Sequence[Any]:
        """Append a loop with a body and a condition of (what is read, what is carried, a row)."""
        read = inputs_of(self.readers)
        avals = [aval_of(x) for x in (*read, *init)]
        row = [] if self.rows is None else [Aval(self.rows.shape[1:], self.rows.dtype)]
        graphs, captured = with_common_constants(functions, [[*avals, *row], avals][: len(functions)], self.kind)
        results: Sequence[Any] = apply(
            primitive,
            *captured,
            *read,
            *init,
            *([] if self.rows is None else [self.rows]),
            body=graphs[0],
            cond=graphs[1] if len(graphs) > 1 else None,
            constants=len(captured) + len(read),
            carried=len(init),
            length=None if self.rows is None else len(self.rows),
            reverse=False,
        )
        return results

    def decision(self) -> Callable[..., Sequence[Any]]:
        """Return whether to go on as a function of what is carried and read."""
        test = self.test
        if test is None:
            return lambda *_: [np.True_]
        with noted(*self.note):
            asked = traced(self.kind, self.places, self.starts, test)
        truth = asked.result
        if not is_traced(truth):
            constant = np.bool_(bool(truth))
            return lambda *_: [constant]
        decide = asked.function([truth], [aval_of(truth)])
        return lambda *xs: [as_truth(decide(*xs)[0])]


def staged_loop(
    kind: str,
    places: Sequence[Place],
    body: Callable[..., Any],
    test: Thunk | None,
    functions: Sequence[FunctionType],
    counted: Counted | None = None,
    optional: bool = False,
) -> bool:
    """Carry out a loop that a traced value decides about.

    Args:
        kind: the statement, for errors.
        places: the variables that the loop changes.
        body: one iteration, called with an item if the loop is counted.
        test: whether to go on, beside the count.
        functions: what the parts of the statement became.
        counted: how often it runs, for `for`.
        optional: whether to do nothing, and return False, if a variable cannot be carried.
    """
    found = StagedLoop(kind, places, body, test, functions, counted)
    if not found.settle(optional):
        return False
    found.emit()
    return True
