"""What functions that are traced must not change: a graph returns its results and does nothing else."""

from __future__ import annotations

import dis
import functools
import re
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, Self

import numpy as np

from wengert.control.reachable_state import ReachableState
from wengert.core.diagnostics.source_positions import ASSIGNING, Position, caller, expression_at, is_own, position_of
from wengert.core.memory.views import current
from wengert.core.memory.write_watches import Watch, lost_text, rebind_handle, snapshot
from wengert.core.values.aval import is_differentiable
from wengert.core.values.frozen import is_frozen
from wengert.core.values.recording import has_ended
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError
from wengert.support.attributes import own_attributes
from wengert.support.function_contents import captured_by, reach
from wengert.traces.staging import Staging

ATTRIBUTE = re.compile(r"\.(\w+)")
SHOWING_ALL = frozenset(("__dict__", "vars"))
"""Names by which code reads attributes that it does not name."""


def require_unwritten(watch: Watch, name: str) -> None:
    """Raise if a function that was traced wrote to a Tensor from outside, which its graph cannot do."""
    for written in watch.written_handles():
        raise effect_error(name, f"writes to a Tensor of shape {written.shape} from outside", "Write into a copy")


class Reach:
    """Keep what a user's function can reach, which its graph cannot change; a context in which it does not.

    Args:
        name: of what traces it, for errors.
        function: the user's, or one of the library that calls it.
        more: what else it can reach.
    """

    def __init__(self, name: str, function: Callable[..., Any], more: Sequence[Any] = ()) -> None:
        self.name = name
        found = users_functions(function)
        self.heap = ReachableState((), values=(*found, *more))
        usable = [x for x in self.heap.tensors if not (lost_text(x) or has_ended(x._trace))]
        self.tensors = [(x, snapshot(x)) for x in usable] if found else []

    def parameters(self) -> list[Tensor]:
        """Return the Tensors that are being differentiated by what goes on outside, or were and are frozen."""
        return [x for x, _ in self.tensors if x._node is not None and not is_staged(x)]

    def staged_tensors(self) -> list[Tensor]:
        """Return the Tensors that have no elements yet: what is computed of them need not be the function's."""
        return [x for x, _ in self.tensors if is_staged(x)]

    def constants(self) -> list[Tensor]:
        """Return the Tensors that a graph takes for constants, views too: they might require grad, and never have."""
        found = [x for x in self.heap.seen.values() if type(x) is Tensor and is_differentiable(x.dtype)]
        return [x for x in (*(x for x, _ in self.tensors), *found) if current(x)._trace is None and not is_frozen(x)]

    def require_unchanged(self) -> None:
        """Raise, and put back what was there, if the function changed variables, containers, objects or ndarrays."""
        heap = self.heap
        found = [
            heap.holders[identity].entry_name(key)
            for identity, contents in heap.contents().items()
            for key in {**heap.kept[identity], **contents}
            if heap.kept[identity].get(key, self) is not contents.get(key, self)
        ]
        if found:
            heap.restore()
            raise effect_error(self.name, f"changes {found[0]}, which is not its own", "Compute its value")
        self.refuse(self.restore_written())

    def requiring_unchanged(self) -> Callable[[], None]:
        """Return what raises if something that the function may read has been changed since, at a later call of it.

        What was added counts if it is traced: the function may keep a list of its own calls. Attributes do if it, or a
        method that it may call, names them. Generators of random numbers go on by themselves.
        """
        place = caller()

        def require_unchanged() -> None:
            changed = self.heap.changed_entries()
            read = self.heap.names_read() if changed else frozenset()
            for name in changed:
                if read.issuperset(ATTRIBUTE.findall(name)) or not read.isdisjoint(SHOWING_ALL):
                    given = f"a function that captures {name}, which is changed after the call"
                    needed = "it must stay as it is, because a graph calls the function later"
                    action = "Pass what it reads as an argument, or make a new list, array or object"
                    raise GraphError(self.name, given, needed, action, place=position_of(*place))

        return require_unchanged

    def restore_written(self) -> list[tuple[str, Position | None]]:
        """Put back the arrays and Tensors that were written to; return what they are, and where if that is known."""
        found: list[tuple[str, Position | None]] = []
        codes = [x.__code__ for x in self.heap.seen.values() if type(x) is FunctionType]
        for identity in self.heap.changed_arrays():
            name = self.heap.arrays[identity].name
            found.append((f"the ndarray {name}", written_at(codes, name)))
        for tensor, before in self.tensors:
            trace = tensor._trace
            if has_been_written(tensor, before):
                place = trace.made_at(tensor) if isinstance(trace, Staging) else None
                found.append((f"a Tensor of shape {tensor.shape}", None if place is None else position_of(*place)))
                rebind_handle(tensor, before)
        self.heap.restore_arrays()
        return found

    def __enter__(self) -> Self:
        """Let nothing be written to meanwhile but what the function makes itself."""
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        """Put back what was, and raise unless an error is on its way: what is traced does not stay behind it."""
        written = self.restore_written()
        if kind is None:
            self.refuse(written)
        else:
            self.heap.restore_traced()

    def refuse(self, written: Sequence[tuple[str, Position | None]]) -> None:
        """Raise if something was written to, of what it was to whose place is known, if there is such."""
        for what, position in sorted(written, key=lambda entry: entry[1] is None):
            raise effect_error(self.name, f"writes to {what} from outside", "Write into a copy", position)


def written_at(codes: Sequence[CodeType], name: str) -> Position | None:
    """Return where code assigns to elements of what it calls by a name, or has a function write there; None if nowhere.

    NumPy tells nobody of writes to an ndarray, so that its source has to.
    """
    array = re.escape(name)
    writes = re.compile(
        rf"^{array}\[|^{array}\.(fill|itemset|partition|put|resize|sort)\(|\bout={array}\b"
        rf"|\b(copyto|place|put|put_along_axis|putmask|at|fill_diagonal)\({array}\b"
    )
    queue = list(codes)
    for code in queue:
        queue += [x for x in code.co_consts if type(x) is CodeType]
        for instruction in dis.get_instructions(code):
            is_write = instruction.opcode in ASSIGNING or "CALL" in instruction.opname
            if is_write and writes.search(expression_at(code, instruction.offset)):
                return position_of(code, instruction.offset)
    return None


def has_been_written(tensor: Tensor, before: Tensor) -> bool:
    """Tell whether a Tensor that owns its memory has been written to; not if its memory has merely been copied."""
    value, old = tensor._value, before._value
    if tensor._trace is not before._trace or type(value) is not type(old):
        return True
    return value is not old and not (isinstance(value, np.ndarray) and value.tobytes() == old.tobytes())


def effect_error(name: str, what: str, action: str, position: Position | None = None) -> GraphError:
    """Return the error about a function that does more than return its results."""
    given = f"a function that {what}"
    needed = "what it changes has to be among its results while it is being traced"
    action = f"{action} and return it, or leave it out"
    return GraphError(name, given, needed, action, place=position or position_of(*caller()))


def users_functions(function: Callable[..., Any]) -> list[Any]:
    """Return the functions of the user within a callable of the library, or it itself."""
    reached = reach([function], lambda x: parts_of_librarys(x) or ())
    return [x for x in reached if parts_of_librarys(x) is None and callable(x) and not isinstance(x, type)]


def parts_of_librarys(value: Any) -> Sequence[Any] | None:
    """Return what a function or an object of the library is around, None if it is none."""
    kind = type(value)
    if issubclass(kind, FunctionType) and is_own(value.__code__.co_filename):
        return [*captured_by(value), *(value.__defaults__ or ())]
    if issubclass(kind, MethodType) and is_wengerts_class(type(value.__self__)):
        return [value.__self__]
    if issubclass(kind, functools.partial) and is_wengerts_class(kind):
        return [value.func, *value.args]
    if issubclass(kind, tuple):
        return tuple(value)
    if is_wengerts_class(kind):
        return [x for x in map(own_attributes(value).get, ("function", "fun")) if x is not None]
    return None


def is_wengerts_class(kind: type) -> bool:
    """Tell whether a class is of the library."""
    return kind.__module__.startswith("wengert.")
