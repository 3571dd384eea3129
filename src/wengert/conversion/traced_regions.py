"""Regions: branches and loop bodies traced to graphs of their own, with the variables they set as outputs."""

from __future__ import annotations

import dis
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from wengert.control.code_owners import is_library
from wengert.control.reachable_state import ReachableState, is_numeric_array, tensors_in
from wengert.control.variable_places import Contents, Holder
from wengert.core.containers.container_classes import is_container
from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.source_positions import position_of
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate, must_run
from wengert.core.memory.memory_layout import Joined, Strides, axes_by_stride, strides_among, strides_of, ways_of
from wengert.core.memory.possible_aliases import Plain, Share, SharedMemory, hold, shared_with
from wengert.core.memory.views import base_and_path, current, share
from wengert.core.memory.write_watches import Watch, is_over, lose, snapshot
from wengert.core.values.aval import Aval, aval_of, is_number
from wengert.core.values.dispatch import apply, conform
from wengert.core.values.recording import next_level
from wengert.core.values.tensor import Tensor, is_staged, make_tensor, not_one_element
from wengert.errors import GraphError, WengertError, describe
from wengert.primitives.conversion import raised, require_none
from wengert.support.function_contents import UNBOUND
from wengert.support.scopes import OtherAttributes
from wengert.traces.staging import Staging
from wengert.traces.whole_number_bounds import copy_bounds, not_alike
from wengert.traces.written_out import ROLLING

RAISE = dis.opmap["RAISE_VARARGS"]


class Ending:
    """Keep the error of the user's that a piece of a program ends with; None if it ends without.

    Attributes:
        raised: the error.
    """

    raised: Exception | None = None


class Handlers(threading.local):
    """Count the statements that run in this thread and might handle an error."""

    count = 0


HANDLERS = Handlers()


def handle_errors() -> OtherAttributes:
    """Return a context for statements the errors of which the user's program may handle.

    Raises:
        TracedTruthError: they stand in a loop that may be written out: an error of one round may be raised by none that
            is traced.
    """
    if ROLLING.strict:
        raise not_alike("a `with` or `try`")
    return OtherAttributes(HANDLERS, count=HANDLERS.count + 1)


def may_wait(error: Exception) -> bool:
    """Tell whether an error may be raised later, when the graph runs; note where it came from."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or HANDLERS.count:
        return False
    code = place.tb_frame.f_code
    if code is require_none.__code__:  # of a graph that has been traced already
        return True
    if code.co_code[place.tb_lasti] != RAISE or is_library(code):
        return False
    origin = f"  {position_of(code, place.tb_lasti)}"
    if origin not in getattr(error, "__notes__", ()):
        error.add_note(origin)
    return True


def raise_where(failed: Any, error: Exception) -> None:
    """Let the graph raise an error where a traced truth holds."""
    apply(raised, failed, error=error.with_traceback(None))


def is_array(leaf: Any) -> bool:
    """Tell whether a leaf is an array."""
    return isinstance(leaf, Tensor | np.ndarray | np.generic)


def is_same(a: Any, b: Any) -> bool:
    """Tell whether two leaves are the same object or equal constants."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if is_number(a):
        return repr(a) == repr(b)
    return isinstance(a, str | bytes | set) and a == b


def is_unchanged(a: Any, b: Any) -> bool:
    """Tell whether a place holds what it did; an equal ndarray is another, which a write may tell from the old one."""
    return a is b or (is_same(a, b) and not is_numeric_array(a))


Note: TypeAlias = tuple[str, str, Any]
"""The name of a statement, what is traced of it, and where it stands: for errors."""
TakeApart: TypeAlias = Callable[[Any, Callable[[Any], bool]], tuple[list[Any], Any]]
"""How to get the leaves of a value, with what is one besides, and its structure."""


class TracedRegion(Ending):
    """Hold a traced piece of the user's program.

    Attributes:
        stage: what recorded it.
        heap: what it can reach, as it was before.
        result: what the piece returned.
        starts: the contents of the holders that `begin` changed, by identity.
        contents: those of the holders that differ from before at its end.
        arrays: the ndarrays that it wrote to, by identity.
        written: the Tensors from outside that it wrote to.
        lost: those of which nobody knows what they hold at its end, with the text of the error about their use.
        born: the identities of the handles that it made.
        plain: handles that stand for ndarrays that it made and left, by identity.
        ends: what Tensors stand for at its end, by identity: inputs, those written to and those it leaves anywhere.
        captured: Tensors from outside that it uses, the last inputs of its graphs.
    """

    def __init__(self, stage: Staging, heap: ReachableState, note: Note) -> None:
        self.stage = stage
        self.heap = heap
        self.note = note
        self.result: Any = None
        self.starts: dict[int, Contents] = {}
        self.contents: dict[int, Contents] = {}
        self.arrays: list[int] = []
        self.written: list[Tensor] = []
        self.lost: dict[int, tuple[Tensor, str]] = {}
        self.born: set[int] = set()
        self.plain: dict[int, Tensor] = {}
        self.ends: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def checks(self) -> bool:
        """Whether it may raise an error where nobody uses what it gives."""
        return any(map(must_run, self.stage.equations))

    def finish(self, result: Any, watch: Watch) -> None:
        """Keep what the piece leaves, which is about to be put back."""
        heap = self.heap
        self.result = result
        self.contents = heap.contents()
        self.arrays = heap.changed_arrays()
        self.written = watch.written_handles()
        self.lost = watch.lost()
        self.born = watch.born
        changed = {id(x) for x in self.written}
        self.keep([x for x in (*heap.handles.values(), *self.written) if id(x) not in self.lost])
        self.keep([x for x in heap.views.values() if id(base_and_path(x)[0]) in changed])
        self.keep(self.values_left())

    def values_left(self) -> Iterator[Any]:
        """Return what the piece leaves somewhere that was not there before."""
        yield self.result
        for identity, contents in self.contents.items():
            kept = self.heap.kept[identity]
            yield from (x for key, x in contents.items() if kept.get(key, UNBOUND) is not x)

    def keep(self, values: Iterable[Any]) -> None:
        """Keep what the Tensors in some values stand for."""
        for value in values:
            for leaf in tensors_in(value):
                if id(leaf) not in self.ends:
                    self.ends[id(leaf)] = leaf, snapshot(current(leaf))

    def end_of(self, leaf: Any) -> Any:
        """Return what a Tensor stands for at the end; anything else as it is."""
        if type(leaf) is not Tensor:
            return leaf
        found = self.ends.get(id(leaf))
        return operand_of(current(leaf)) if found is None else found[1]

    def has_made(self, handle: Tensor) -> bool:
        """Tell whether a handle is one that the piece made, so that it is in nobody's hands any more."""
        if type(handle._trace) is Plain:  # made afterwards, perhaps in the place of one that the piece made
            return False
        return id(handle) in self.born or is_over(handle)

    def handle_of(self, value: Any, shared: Container[int]) -> Any:
        """Return the Tensor that stands for an ndarray that the piece leaves, as its memory; anything else as it is.

        `shared` are the identities of the ndarrays that others hold too.
        """
        if not is_numeric_array(value):
            return value
        if any(id(x.array) in shared for x in self.heap.overlapping(value)):
            return self.heap.stand_in(value, self.note)
        handle = self.plain.get(id(value))
        if handle is None:
            handle = make_tensor(value, None, None)
            self.born.add(id(handle))
            for other in self.plain.values():
                if np.may_share_memory(other._value, value):
                    shared_with(handle, other, shared_text(self.note))
            self.plain[id(value)] = handle
        return handle

    def taken_apart(
        self, value: Any, is_leaf: Callable[[Any], bool] | None = None, *, opened: bool = False
    ) -> tuple[list[Any], Any]:
        """Return the leaves of a value and its structure, as the piece leaves it: what it changed has been put back."""
        changed = self.contents if is_container(type(value)) else {}
        try:
            for identity, contents in changed.items():
                self.heap.holders[identity].restore(contents)
            return flatten(value, is_leaf, in_order=True, opened=opened)
        finally:
            for identity in changed:
                self.heap.holders[identity].restore(self.heap.kept[identity])

    def value(self, holder: Holder, key: Any) -> Any:
        """Return what an entry holds at the end; UNBOUND if there is none."""
        identity = id(holder.target)
        return self.contents.get(identity, self.heap.kept[identity]).get(key, UNBOUND)

    def graph(self, outputs: Sequence[Any]) -> tuple[Graph, list[Tensor]]:
        """Return the graph of some outputs, and the Tensors it captured."""
        return self.stage.graph(outputs), self.stage.captured_tensors()

    def function(self, outputs: Sequence[Any], avals: Sequence[Aval]) -> Callable[..., tuple[Any, ...]]:
        """Return the traced piece as a function of its inputs to some outputs of given dtypes."""
        graph, captured = self.graph(outputs)

        def run(*args: Any) -> tuple[Any, ...]:
            found = evaluate(graph, [*args, *captured])
            return tuple(conform(x, aval) for x, aval in zip(found, avals, strict=True))

        return run


def trace_region(
    note: Note,
    heap: ReachableState,
    run: Callable[[], Any],
    begin: Callable[[Staging], Any] | None = None,
    may_raise: bool = False,
) -> TracedRegion:
    """Trace a piece of the user's program; what it changes is put back.

    The Tensors in `heap`, which the piece can reach, stand for inputs meanwhile; `begin` makes inputs before those.
    With `may_raise` a piece that raises an error of the user's is returned, too, with nothing but that.
    """
    stage = Staging(next_level(), note[0])
    region = TracedRegion(stage, heap, note)
    try:
        with with_note(*note, region if may_raise else None), Watch(heap) as watch:
            if begin is not None:
                begin(stage)
                region.starts = heap.contents()
            for handle in heap.handles.values():
                start = stage.input(aval_of(handle), "", strides_of(handle))
                copy_bounds(handle._value, start._value)
                watch.adopt(handle, start)
            for handle, text in heap.lost.values():
                lose(handle, text)
            result = run()
            stage.require_steady()
            region.finish(result, watch)
    finally:
        stage.end()
        heap.restore()
    heap.require_iterators_unused(note)
    return region


def take_alike(
    pair: Sequence[Any], known: Container[int], ways: Sequence[TakeApart]
) -> tuple[list[Any], list[Any], Any]:
    """Return two values taken apart alike, or as one leaf each if they cannot be.

    What was there before, whose identities are `known`, is a leaf, unless it stands for the whole value against one
    that is new. The ways tell how each is taken apart: as it is, or as a piece leaves it.
    """
    both = list(zip(ways, pair, strict=True))
    inner = {id(x) for way, value in both for x in way(value, lambda x: id(x) in known)[0] if id(x) in known}
    if not all(id(value) in known for value in pair):
        inner -= set(map(id, pair))
    (one, form), (other, other_form) = (way(value, lambda x: id(x) in inner) for way, value in both)
    return (one, other, form) if form == other_form else ([pair[0]], [pair[1]], None)


def common_strides(one: Any, other: Any) -> Strides:
    """Return the strides of what is one of two values."""
    aval = aval_of(one)
    return strides_among(aval.shape, aval.dtype.itemsize, ways_of(strides_of(one)) | ways_of(strides_of(other)))


def give_strides(value: Any, strides: Strides) -> Any:
    """Return a traced value that lies in memory in the order of some strides; `()`: that is (or may be) an array."""
    if type(value) is not Tensor or strides is None or strides == strides_of(value):
        return value
    if not strides:
        value._array = strides
        return value
    if type(strides) is Joined:
        below = value
        while type(below) is Tensor:
            below = below._value
        if type(below) is Variable and below.shape == value.shape:
            below.strides = strides
        return value
    axes = axes_by_stride(strides)
    view: Any = np.transpose(np.copy(np.transpose(value, axes), order="C"), np.argsort(axes))
    return share(view)  # nobody has the base


def enter_memory(result: Tensor, memory: SharedMemory, share: Share) -> None:
    """Let a traced result have a memory; the ndarrays that others know it as must stay as they are from now on."""
    hold(result, memory, share)
    plain = {id(x): x for x, _ in memory.living_holders() if type(x._trace) is Plain}
    value: Any = result
    while type(value) is Tensor:
        if isinstance(value._trace, Staging):
            value._trace.plain.update(plain)
        value = value._value


def shared_text(note: Note) -> str:
    """Return the text of the error about a Tensor that may share memory with one that has been written to."""
    given = "an array that shares memory, or not, with one that has been written to since, as a traced value decides"
    needed = "it must be known which array a write changes"
    return describe(note[0], given, needed, "Copy what is written to first") + f"\n  {note[2]}"


def operand_of(handle: Tensor) -> Tensor:
    """Return what a Tensor stands for now; one with elements, which `jit` reads anew at each call, stays itself."""
    return snapshot(handle) if is_staged(handle) else handle


def as_truth(value: Any) -> Any:
    """Return a traced value as one boolean.

    Raises:
        DtypeError: it has not exactly one element.
    """
    one = one_element("bool", value)
    return one if one.dtype == np.bool_ else np.not_equal(one, 0)


def one_element(name: str, value: Any) -> Any:
    """Return the only element of a traced value; an error if there is not exactly one."""
    if value.size != 1:
        raise not_one_element(name, value.shape)
    return value if value.shape == () else np.reshape(value, ())


@contextmanager
def with_note(name: str, what: str, position: Any, ending: Ending | None = None) -> Iterator[None]:
    """Let errors that are raised while a piece of the user's program is traced say so.

    Those of the program become errors of ours: an `except` around the piece must not take them for a decision.
    An `ending` keeps an error that the graph may raise when it runs.

    Raises:
        GraphError: something else than an error of this library was raised.
    """
    try:
        yield
    except WengertError as error:
        note = f"This was raised while {what} of a traced decision were traced: {position}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
    except Exception as error:
        if ending is None or not may_wait(error):
            raise tracing_error((name, what, position), error) from error
        ending.raised = error


def tracing_error(note: Note, error: Exception) -> GraphError:
    """Return the error about one that was raised in a traced piece, and cannot be raised when the graph runs."""
    name, what, position = note
    needed = (
        "what depends on traced values can raise by a `raise` or `assert` in one of its branches, outside of `try` "
        "and `with`, because it is traced whether it will run or not"
    )
    remedy = "Check the values outside of the function, or choose with wengert.numpy.where"
    if isinstance(error, RecursionError):
        needed = "a recursion must end by values that are known while tracing, because both branches are traced"
        remedy = "Pass what ends it in static_argnums, or write it as a loop"
    given = f"{type(error).__name__} ({error}) was raised while {what} of a traced decision were traced"
    return GraphError(name, given, needed, remedy, place=position)
