"""The heap of a piece of the user's program: everything it can reach that it may change.

Found from the closures of its functions: variables, the functions, methods and globals that these hold or use, lists,
dictionaries, sets, objects and classes, arrays and Tensors. A traced piece changes them in place, and all is put back
afterwards; so aliases stay what they are.
"""

from __future__ import annotations

import functools
import gc
import io
import itertools
import random
import sys
import weakref
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, cast

import numpy as np

from wengert.control.code_owners import is_library, is_library_file, is_wengerts
from wengert.control.mutable_state import CellHolder, GlobalsHolder, RandomHolder, holder_of, is_users
from wengert.control.variable_places import (
    HIDDEN,
    OPERATIONS,
    Contents,
    HalfDefined,
    Holder,
    StatementSite,
    VariablePlace,
    is_undefined,
    line_text,
)
from wengert.core.containers.container_classes import REGISTERED
from wengert.core.containers.tree_leaves import children_of, flatten
from wengert.core.graph.identity import Object
from wengert.core.memory.possible_aliases import Plain
from wengert.core.memory.views import base_and_path
from wengert.core.values.recording import has_ended
from wengert.core.values.tensor import WATCHING, Tensor, is_staged, make_tensor
from wengert.errors import GraphError, describe
from wengert.support.attributes import attribute, class_attribute, has_class_attribute, own_attributes
from wengert.support.function_contents import captured_by, names_of

ATOMS = frozenset(
    (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, slice, np.float64, np.int64)
)
USUAL = frozenset(method for kind in (object, SimpleNamespace) for method in (kind.__getattribute__, kind.__setattr__))
"""How objects are asked for attributes, and given some, whose classes have no methods for it."""
WRAPPED = ("__wrapped__", "registry")
"""Attributes of library functions that hold those of the user: of `contextmanager` and `singledispatch`."""
LEADING: tuple[tuple[Any, Callable[[Any], Sequence[Any]]], ...] = (
    (tuple | frozenset, tuple),
    (MethodType, lambda x: (x.__self__, x.__func__)),
    (
        BuiltinMethodType | MethodWrapperType,
        lambda x: () if issubclass(type(x.__self__), ModuleType) else (x.__self__,),
    ),
    (functools.partial, lambda x: (x.func, x.args, x.keywords)),
    (property, lambda x: (x.fget, x.fset, x.fdel)),
    (staticmethod | classmethod, lambda x: (x.__func__,)),
    (memoryview, lambda x: (x.obj,)),
    (weakref.ref, lambda x: (x(),)),
    (weakref.WeakSet | weakref.WeakKeyDictionary | weakref.WeakValueDictionary, lambda x: (x.data,)),
    (Exception, lambda x: (*x.args, *vars(x).values())),
    (MappingProxyType, lambda x: (*x, *x.values())),
    (KeysView | ValuesView | ItemsView, lambda x: (getattr(x, "mapping", None),)),
    (itertools.repeat, gc.get_referents),  # its pickled form is deprecated
)
"""What values of some kinds lead to that is not their contents."""
UNOBSERVABLE: tuple[type, ...] = (
    *(x for x in vars(itertools).values() if hasattr(x, "__next__") and x not in (itertools.count, itertools.repeat)),
    *(type(iter(int, 1)), np.nditer, np.flatiter),
)
"""Iterators that do not show how far they are."""
MAKING = frozenset(("__init__", "__new__", "__post_init__", "__init_subclass__", "__setattr__", "__delattr__"))
"""Methods that Python calls where an object is made, or set."""
SMALL = 65536
"""Arrays with more elements are not copied but summed up: 2 ms for 8 MB. What is written to them is not put back."""


class ReachableState:
    """Find and keep what functions can reach that they may change.

    Attributes:
        holders: what has contents, by identity.
        kept: the contents at the beginning, by identity of the holder.
        handles: the Tensors that become inputs of the piece: they own their memory.
        views: Tensors that are views of these.
        lost: those of which nobody knows what they hold, with the text of the error about their use.
        arrays: ndarrays that may be written to.
        plain: handles that stand for those that traced values may be, by identity.
        lines: source lines that set a variable, in the body and in the `else`, by its place's identity.
        halves: variables that are read where only some paths give them a value.
        times_found: how often a value was found, by identity.
        times_taken: how often what has contents was found, a variable once for each function that has it; likewise.
    """

    def __init__(self, functions: Sequence[Any], site: StatementSite | None = None, values: Sequence[Any] = ()) -> None:
        self.holders: dict[int, Holder] = {}
        self.handles: dict[int, Tensor] = {}
        self.views: dict[int, Tensor] = {}
        self.lost: dict[int, tuple[Tensor, str]] = {}
        self.arrays: dict[int, ReachableArray] = {}
        self.plain: dict[int, Tensor] = {}
        self.iterators: list[tuple[Any, Any]] = []
        self.kept: dict[int, Contents] = {}
        self.queue: list[tuple[Any, str, Any]] = []
        self.seen: dict[int, Any] = {}
        self.times_found: Counter[int] = Counter()
        self.times_taken: Counter[int] = Counter()
        self.leading: dict[type, Callable[[Any], Sequence[Any]] | None] = {}
        self.function: Any = functions[0] if functions else None
        self.cells = self.own_cells(functions)
        for name, cell in self.cells.items():
            self.take(CellHolder(cell, name), True)
        for function in functions:
            self.look_into_code(function)
        self.queue += [(value, str(attribute(value, "__name__", "")), None) for value in values]
        while self.queue:
            self.look(*self.queue.pop())
        for found in self.arrays.values():
            found.references = sys.getrefcount(found.array)
        self.lines = {} if site is None else dict(self.lines_of(site))
        self.halves = () if site is None else site.halves

    # The search

    def own_cells(self, functions: Sequence[Any]) -> dict[str, CellType]:
        """Return the variables of the piece, by name."""
        found: dict[str, CellType] = {}
        for function in functions:
            found.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        found.pop(OPERATIONS, None)  # the library's
        return found

    def take(self, holder: Holder, own: bool = False) -> None:
        """Enter a holder, and look into its contents next."""
        identity = id(holder.target)
        self.times_taken[identity] += 1
        if identity in self.holders:
            if isinstance(self.holders[identity], GlobalsHolder):  # globals under a name, which may be changed by key
                self.look_into_all(holder.target)
            return
        self.holders[identity] = holder
        contents = self.kept[identity] = holder.contents()
        for key, value in contents.items():
            if type(value) not in ATOMS:
                if own:
                    self.adopt(value)
                self.queue.append((value, holder.entry_name(key), (holder, key)))

    def adopt(self, value: Any) -> None:
        """Let the Tensors that a variable of the piece itself holds be inputs, with elements or not."""
        for leaf in tensors_in(value):
            base, path = base_and_path(leaf)
            if has_ended(base._trace):  # whoever uses it will hear that it escaped
                continue
            self.handles[id(base)] = base
            if path:
                self.views[id(leaf)] = leaf

    def look(self, value: Any, name: str, where: Any) -> None:
        """Enter a value; `where` is the holder and key that it was found under, None if it is not to be replaced."""
        if issubclass(type(value), np.ndarray):
            if id(value) not in self.arrays:
                self.arrays[id(value)] = ReachableArray(value, name)
            self.arrays[id(value)].places.append(where)
        self.times_found[id(value)] += 1
        if id(value) in self.seen or is_undefined(value):
            return
        self.seen[id(value)] = value
        if type(value) is Tensor:
            if not has_ended(base_and_path(value)[0]._trace) and is_staged(value):
                self.adopt(value)
        elif type(value) is FunctionType and is_library(value.__code__):
            inside = [vars(value)[x] for x in WRAPPED if x in vars(value)]
            if is_wengerts(value.__code__):  # what a transformation returned, around a function of the user
                inside += captured_by(value)
            self.queue += [(x, name, None) for x in inside]
            return
        elif (holder := holder_of(value, name)) is not None:
            self.take(holder)
        self.look_around(value, name)

    def look_around(self, value: Any, name: str) -> None:
        """Look into what a value leads to that is not its contents."""
        inside: Sequence[Any] = ()
        kind = type(value)
        if kind is FunctionType:
            inside = (value.__defaults__, value.__kwdefaults__)
            self.look_into_function(value)
        elif issubclass(kind, ModuleType):
            if is_users_module(value):
                space = own_attributes(value)
                self.look_into_module(space, frozenset(space))
        elif (leads := self.leading_of(kind)) is not None:
            inside = (*leads(value), *((kind,) if id(value) in self.holders else ()))
        elif issubclass(kind, np.ndarray):
            inside = tuple(value.flat) if value.dtype.hasobject and value.size <= SMALL else ()
        elif issubclass(kind, type):
            inside = (kind, *value.__mro__[1:-1], *(special_methods(value) if is_users(value) else ()))
        elif id(value) in self.holders:
            inside = (kind, *keys_of(value))
        elif has_class_attribute(kind, "__next__"):
            self.iterators.append((value, progress(value)))
        elif kind in REGISTERED:  # a container of the library: a sparse array
            inside = flatten(value)[0]
        else:  # an object of a library: what a function wraps, and arrays, which somebody may write to
            held = own_attributes(value)
            inside = [x for key, x in held.items() if issubclass(type(x), np.ndarray) or key == "__wrapped__"]
        self.queue += [(x, name, None) for x in inside if type(x) not in ATOMS]

    def leading_of(self, kind: type) -> Callable[[Any], Sequence[Any]] | None:
        """Return what values of a kind lead to that is not their contents; None if there is nothing."""
        if kind not in self.leading:  # asking for each of many values took a quarter of the search
            self.leading[kind] = next((leads for x, leads in LEADING if issubclass(kind, x)), None)
        return self.leading[kind]

    def look_into_function(self, function: FunctionType) -> None:
        """Look into the variables that a function which may be called reads."""
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if not name.startswith(HIDDEN):
                self.take(CellHolder(cell, name))
        self.look_into_code(function)

    def look_into_code(self, function: FunctionType) -> None:
        """Look into the global variables that code may use."""
        space = function.__globals__
        names = names_of(function.__code__)
        self.look_into_module(space, names)
        for module in modules_named(names, space):
            self.look_into_module(own_attributes(module), names)
        if "globals" in names:
            self.look_into_all(space)

    def look_into_all(self, space: dict[str, Any]) -> None:
        """Look into all variables of a module, which may be changed under names that are computed."""
        holder = self.holders.get(id(space))
        if holder is None or isinstance(holder, GlobalsHolder):
            self.look_into_module(space, frozenset(x for x in space if not x.startswith("__")))
            cast("GlobalsHolder", self.holders[id(space)]).whole = True

    def look_into_module(self, space: dict[str, Any], names: frozenset[str]) -> None:
        """Look into those of a module's variables that code may use."""
        holder = self.holders.get(id(space))
        if holder is None:
            holder = self.holders[id(space)] = GlobalsHolder(space, "")
            self.kept[id(space)] = {}
        if not isinstance(
            holder, GlobalsHolder
        ):  # a dictionary of the user's, as code was run in, and all of it is held
            return
        for name in names - holder.names:
            holder.names.add(name)  # one that is not there may be set
            if name not in space:
                continue
            value = self.kept[id(space)][name] = space[name]
            if issubclass(type(value), ModuleType):
                if is_users_module(value):
                    self.look_into_module(own_attributes(value), names)
                self.queue += [(x, "random", None) for x in random_generators_of(value, names)]
            elif type(value) not in ATOMS:
                self.queue.append((value, name, (holder, name)))

    # The state

    @property
    def tensors(self) -> list[Tensor]:
        """The Tensors that own the memory of those it has found."""
        return list({id(b): b for x in self.seen.values() if type(x) is Tensor for b in base_and_path(x)[:1]}.values())

    def changed_entries(self) -> list[str]:
        """Return the names of what is no longer what it was, or has been added and is traced."""
        found = [self.arrays[identity].name for identity in self.changed_arrays()]
        for identity, contents in self.contents().items():
            holder, kept = self.holders[identity], self.kept[identity]
            if isinstance(holder, RandomHolder):
                continue
            changed = [key for key, before in kept.items() if before is not contents.get(key, self)]
            added = [key for key in contents if key not in kept and any(map(is_staged, tensors_in(contents[key])))]
            found += map(holder.entry_name, (*changed, *added))
        return found

    def names_read(self) -> frozenset[str]:
        """Return the names in the code of the functions that it has found, and of methods whose names these have.

        Methods that Python calls by itself count, too, but for those that make an object.
        """
        seen = list(self.seen.values())
        methods = {x for kind in seen if issubclass(type(kind), type) for x in methods_of(kind)}
        bound = {x.__func__ for x in seen if type(x) is MethodType}
        queue = {x for x in seen if type(x) is FunctionType and (x in bound or x not in methods)}
        found: frozenset[str] = frozenset()
        while queue:
            methods -= queue
            found = found.union(*[names_of(x.__code__) for x in queue])
            queue = {x for x in methods if x.__name__ in found or is_called_by_python(x.__name__)}
        return found

    def keeps_new_tensors(self) -> bool:
        """Tell whether holders hold Tensors that were not there at the beginning."""
        return any(
            self.kept[identity].get(key, self) is not value and tensors_in(value)
            for identity, contents in self.contents().items()
            for key, value in contents.items()
        )

    def contents(self) -> dict[int, Contents]:
        """Return the contents of the holders that have changed since the beginning."""
        found = {}
        for identity, holder in self.holders.items():
            contents = holder.contents()
            if holder.differs(self.kept[identity], contents):
                found[identity] = contents
        return found

    def restore(self) -> None:
        """Put back what was there at the beginning."""
        for identity, contents in self.kept.items():
            holder = self.holders[identity]
            if holder.differs(contents, holder.contents()):
                holder.restore(contents)
        self.restore_arrays()

    def restore_traced(self) -> None:
        """Put back what was there at the beginning where something is traced now; what is known is the user's."""
        for identity, contents in self.contents().items():
            inside = [*contents.values()]
            inside += [x for value in inside if type(value) in (list, tuple, dict) for x in children_of(value)]
            if any(type(x) is Tensor and is_staged(x) for x in inside):
                self.holders[identity].restore(self.kept[identity])

    def restore_arrays(self) -> None:
        """Put back the elements of arrays."""
        for array in self.arrays.values():
            array.restore()

    def changed_arrays(self) -> list[int]:
        """Return the identities of the arrays that have been written to."""
        return [identity for identity, array in self.arrays.items() if array.is_changed]

    def require_iterators_unused(self, note: tuple[str, str, Any]) -> None:
        """Raise if an iterator from outside has been advanced, which cannot be taken back, or may have been."""
        for iterator, before in self.iterators:
            if progress(iterator) != before:
                raise GraphError(
                    note[0],
                    f"an iterator of type {type(iterator).__name__}, used where a traced value decides",
                    "an iterator that does not depend on traced values is needed",
                    "Take its items before, or index a list",
                    place=note[2],
                )

    def promote(self, identities: Sequence[int], note: tuple[str, str, Any]) -> dict[int, Tensor]:
        """Let Tensors take the place of ndarrays, by identity: these can hold what is traced, and share memory with it.

        Raises:
            GraphError: others may see the array, who would not see the Tensor, or nobody knows what it held.
        """
        tensors: dict[int, Tensor] = {}
        for identity in identities:
            found = self.arrays[identity]
            seen = self.seen_by_others(found)
            if seen or found.copy is None:
                why = "which others may see" if seen else f"which has more than {SMALL} elements"
                raise GraphError(
                    note[0],
                    f"a write to the ndarray {found.name}, {why}, where a traced value decides",
                    "an array that can hold what is traced is needed",
                    "Make it with wengert.numpy, or write to it outside",
                    place=note[2],
                )
            del self.arrays[identity], self.seen[identity]
            tensor = tensors[identity] = make_tensor(found.array.copy(order="K"), None, None)
            self.handles[id(tensor)] = tensor
            for holder, key in found.places:
                holder.write(key, tensor)
                self.kept[id(holder.target)] = holder.contents()
        return tensors

    def find_shared(self, values: Sequence[Any], replaced: Mapping[int, int]) -> list[int]:
        """Return which ndarrays others hold too that some values may be, or share memory with.

        Args:
            values: what traced values are some of, as decisions come out.
            replaced: in how many places an ndarray gives way to such a traced value, by identity.
        """
        found: dict[int, None] = {}
        for value in (x for x in values if is_numeric_array(x)):
            for array in self.overlapping(value):
                identity = id(array.array)
                sole = array.array is value and sum(x is value for x in values) == 1
                if not (sole and replaced.get(identity) == len(array.places)) or self.seen_by_others(array):
                    found[identity] = None
        return list(found)

    def can_promote(self, identity: int) -> bool:
        """Tell whether a Tensor can take the place of an ndarray."""
        found = self.arrays[identity]
        return found.copy is not None and not self.seen_by_others(found)

    def stand_in(self, value: np.ndarray[Any, Any], note: tuple[str, str, Any]) -> Tensor:
        """Return the handle that stands for an ndarray, or for one that has its memory, which others hold too.

        The outermost heap that knows it keeps the handle: pieces of its own piece are traced many times.
        """
        heap, found = next((x, found) for x in self.around if (found := x.overlapping(value)))
        identity = id(found[0].array)
        if identity not in heap.plain:
            heap.plain[identity] = make_tensor(found[0].array, plain_trace(found, note), None)
        return heap.plain[identity]

    @property
    def around(self) -> list[ReachableState]:
        """The heaps of the pieces that are being traced, outermost first, and this one."""
        return [*(watch.heap for watch in WATCHING.stack if watch.heap is not None), self]

    def seen_by_others(self, found: ReachableArray) -> bool:
        """Tell whether an array, or memory of it, is held by something that cannot be given another array instead.

        That is so if it is a view or has views, or if there are more references to it than the heap knows of.
        """
        array = found.array
        if None in found.places or self.overlapping(array) != [found]:
            return True
        if array.base is not None and sys.getrefcount(array.base) > 2:  # the array's own, and that of this call
            return True
        return found.references > 1 + len(found.places) + sum(heap.references_to(array) for heap in self.around)

    def references_to(self, array: np.ndarray[Any, Any]) -> int:
        """Return how many references to an array there are in this heap."""
        if id(array) not in self.arrays:
            return 0
        return 2 + sum(x is array for contents in self.kept.values() for x in contents.values())

    def overlapping(self, array: np.ndarray[Any, Any]) -> list[ReachableArray]:
        """Return the arrays that may share memory with one."""
        return [x for x in self.arrays.values() if np.may_share_memory(x.array, array)]

    # Places

    def place(self, holder: Holder, key: Any) -> VariablePlace:
        """Return an entry as a place."""
        return VariablePlace(holder, key, self.lines.get((id(holder.target), key), ("", "")))

    def lines_of(self, site: StatementSite) -> Iterator[tuple[Any, tuple[str, str]]]:
        """Return the lines of a statement that set variables, by the identity of their places."""
        for name, *lines in site.names:
            found = self.entry(name)
            if found is not None:
                code = self.function.__code__
                one, other = (line_text(code.co_filename, half[-1], code.co_qualname) if half else "" for half in lines)
                yield (id(found[0].target), found[1]), (one, other)

    def has_alone(self, name: str, attributes: Sequence[str] = ()) -> bool:
        """Tell whether no other function that the piece may call has a variable of its function.

        Of an attribute of a variable, `attributes` are all that the piece asks the object for: nobody else has the
        object, and these are its own, which no property or method gives.
        """
        root, *path = name.split(".")
        if root not in self.cells or self.times_taken[id(self.cells[root])] != 1:
            return False
        if not path:
            return True
        owner = self.kept[id(self.cells[root])].get("")
        kind, contents = type(owner), self.kept.get(id(owner), {})
        if self.times_found[id(owner)] > 1 or not USUAL.issuperset((kind.__getattribute__, kind.__setattr__)):
            return False
        return all(x in contents and not hasattr(type(class_attribute(kind, x)), "__set__") for x in attributes)

    def entry(self, name: str) -> tuple[Holder, Any] | None:
        """Return the holder and the key of a variable or an attribute, by its dotted name."""
        root, *path = name.split(".")
        space = self.function.__globals__
        holder = self.holders[id(self.cells[root])] if root in self.cells else self.holders.get(id(space))
        key = "" if root in self.cells else root
        for name_of_attribute in path:
            value = holder.contents().get(key) if holder is not None else None
            holder, key = self.holders.get(id(value)), name_of_attribute
        return None if holder is None else (holder, key)

    def variables_of(self, site: StatementSite) -> list[VariablePlace]:
        """Return the variables that a statement binds or changes."""
        found = [self.entry(name) for name, *_ in site.names]
        return [self.place(*entry) for entry in found if entry is not None and entry[0].variable]


class ReachableArray:
    """Hold an ndarray that may be written to.

    Attributes:
        copy: its elements at the beginning; None for a large one.
        sum: a checksum of those of a large one.
        places: the holders and keys it was found under; None for one that cannot be replaced.
        references: how many references to it there were at the beginning.
    """

    references: int

    def __init__(self, array: np.ndarray[Any, Any], name: str) -> None:
        self.array = array
        self.name = name
        small = array.size <= SMALL
        self.copy = array.copy() if small and array.flags.writeable else None
        self.sum = checksum(array) if not small and array.flags.writeable else None
        self.places: list[Any] = []

    @property
    def is_changed(self) -> bool:
        """Whether it has been written to."""
        if self.copy is None:
            return self.sum is not None and checksum(self.array) != self.sum
        return self.array.tobytes() != self.copy.tobytes()

    def restore(self) -> None:
        """Put back the elements."""
        if self.copy is not None and self.is_changed:
            self.array[...] = self.copy


def checksum(array: np.ndarray[Any, Any]) -> int:
    """Return a checksum of an array's elements; of an array of objects, of their identities."""
    elements = np.asarray(array).ravel("K")
    return zlib.crc32(elements.tobytes() if elements.dtype.hasobject else elements.view(np.uint8).data)


def is_numeric_array(value: Any) -> bool:
    """Tell whether a value is an ndarray of numbers, which a Tensor could hold."""
    return type(value) is np.ndarray and value.dtype.kind in "biufc"


def plain_trace(found: Sequence[ReachableArray], note: tuple[str, str, Any]) -> Plain:
    """Return the trace of what stands for ndarrays with the same memory."""

    def text(what: str) -> str:
        needed = "an array that can hold what is traced is needed"
        return describe(note[0], what, needed, "Make it with wengert.numpy, or copy what is written to")

    name = found[0].name or "that is chosen"
    return Plain(
        text(f"a write to what is the ndarray {name}, or not, as a traced value decides"),
        text(f"a write to the ndarray {name} after a traced value has decided what else it is") + f"\n  {note[2]}",
        lambda: any(x.is_changed for x in found),
    )


def is_users_module(module: ModuleType) -> bool:
    """Tell whether a module is the user's: neither of Python nor of an installed package; it may be made by hand."""
    filename = attribute(module, "__file__")
    if type(filename) is not str:
        return attribute(module, "__spec__") is None
    return not is_library_file(filename)


def modules_named(names: frozenset[str], space: Mapping[str, Any]) -> list[ModuleType]:
    """Return the modules of the user's that code with these names may import where it runs, beside its global ones."""
    package = space.get("__package__") or ""
    found = [sys.modules.get(y) for x in names if x not in space for y in (x, f"{package}.{x}")]
    return [x for x in found if x is not None and issubclass(type(x), ModuleType) and is_users_module(x)]


def random_generators_of(module: ModuleType, names: frozenset[str]) -> list[Any]:
    """Return the generator of random numbers that functions of a module draw from, for code with these names."""
    if module is np:
        module = np.random if "random" in names else module
    draw = {random: random.random, np.random: np.random.random_sample}.get(module)
    return [] if draw is None else [attribute(draw, "__self__")]


def tensors_in(value: Any) -> list[Tensor]:
    """Return the Tensors in a value."""
    if type(value) is Tensor:
        return [value]
    if type(value) is HalfDefined:
        return [x for half in value.halves() for x in tensors_in(half)]
    if type(value) in ATOMS or is_undefined(value):
        return []
    return [leaf for leaf in flatten(value)[0] if type(leaf) is Tensor]


def place_in_file(file: io.IOBase) -> Any:
    """Return where a file is at; nobody can tell of one that is gone through line by line."""
    try:
        return file.tell()
    except (OSError, ValueError):
        return object() if file.seekable() else None


def keys_of(value: Any) -> tuple[Any, ...]:
    """Return the elements of a set, or the keys of a dictionary and what makes those of its values that are missing."""
    kind = type(value)
    if issubclass(kind, set):
        return tuple(set.__iter__(value))
    made = (value.default_factory,) if issubclass(kind, defaultdict) else ()
    return (*made, *dict.__iter__(value)) if issubclass(kind, dict) else ()


def methods_of(kind: type) -> Iterator[FunctionType]:
    """Return the functions of a class, those of its properties too."""
    for member in vars(kind).values():
        parts = (member.fget, member.fset) if isinstance(member, property) else (attribute(member, "__func__", member),)
        yield from (x for x in parts if type(x) is FunctionType)


def is_called_by_python(name: str) -> bool:
    """Tell whether Python calls methods of a name by itself, on an object that has been made."""
    return name.startswith("__") and name.endswith("__") and name not in MAKING


def special_methods(kind: type) -> list[Any]:
    """Return the methods of a class that Python calls by itself, which are not among its contents."""
    return [x for x in vars(kind).values() if isinstance(x, FunctionType | classmethod | staticmethod)]


def progress(iterator: Any) -> Any:
    """Return something that changes when an iterator is advanced, and in any case where nobody can tell."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return None if frame is None else (frame.f_lasti, [Object(x) for x in frame.f_locals.values()])
    if isinstance(iterator, io.IOBase):
        return place_in_file(iterator)
    if has_class_attribute(type(iterator), "__length_hint__"):
        return iterator.__length_hint__()
    if isinstance(iterator, enumerate | zip | map | filter):
        return [progress(x) if has_class_attribute(type(x), "__next__") else x for x in iterator.__reduce__()[1]]
    return object() if isinstance(iterator, UNOBSERVABLE) else repr(iterator)
