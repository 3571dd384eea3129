"""Parameters and literals of graphs as JSON, and back: data of a closed set of types, never code.

What JSON has is written as it is: null, booleans, integers, finite floats, strings. Everything else is an object with
one entry, whose key tells the type: `{"tuple": [...]}`, `{"slice": [start, stop, step]}`, `{"array": {...}}` and so
on; docs/graph-format.md lists them.
"""

from __future__ import annotations

import binascii
import importlib
import math
import re
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from wengert.core.forms.labels import Labels, Relation
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import LoopSpec
from wengert.core.memory.memory_layout import axes_in_memory, without_repetition
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import NUMBERS, UNKNOWN, Aval
from wengert.errors import FileFormatError, UsageError
from wengert.primitives.indexing.index_layout import OPERAND
from wengert.primitives.sparse.storage_pattern import StoragePattern
from wengert.support.records import FieldRecord, fields_of

JSON = Any
DEEPEST = 32
MOST_AXES = 64
DTYPE = re.compile(r"[<>|=]?[biufc][0-9]{1,2}")
NUMBER_TYPES = {kind.__name__: kind for kind in NUMBERS}
WAITING = (
    *("wengert.primitives.special", "wengert.primitives.signals.fourier", "wengert.primitives.sparse.products"),
    *("wengert.primitives.sparse.direct_solves", "wengert.primitives.sparse.iterative_solves"),
    *("wengert.primitives.sparse.eigenpairs", "wengert.numpy.linalg"),
)
"""Modules with primitives that are imported when they are first asked for."""
RECORDS: dict[str, type[Any]] = {
    "labels": Labels,
    "loopspec": LoopSpec,
    "relation": Relation,
    "storagepattern": StoragePattern,
}
"""Classes of typed parameters by their tags; what they hold is written in the order of their fields."""
FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: fields_of(kind) if issubclass(kind, FieldRecord) else kind.fields for kind in RECORDS.values()
}
UFUNCS = {name: value for name, value in vars(np).items() if isinstance(value, np.ufunc)}


def invalid(given: str, needed: str) -> FileFormatError:
    """Return the error about a file that is not a graph."""
    return FileFormatError("load", given, needed, "Save the graph anew with wengert.graph.save")


def too_large(given: str, largest: int) -> FileFormatError:
    """Return the error about a file with larger arrays than expected."""
    action = "If you trust the file, call load(path, largest=...) with a larger number"
    return FileFormatError("load", given, f"at most {largest} elements are expected", action)


def form_text(value: Any) -> str:
    """Return the beginning of a value of a file, for an error; strings may be long, containers deep."""
    return f"a {type(value).__name__}" if isinstance(value, dict | list) else repr(value)[:80]


class Encoder:
    """Write values as JSON; `graph` is how graphs are written."""

    def __init__(self, graph: Callable[[Graph], JSON]) -> None:
        self.graph = graph

    def value(self, value: Any) -> JSON:
        """Return a parameter or literal as JSON.

        Raises:
            UsageError: it is of a type that files have no form for.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": bits(value)}
        if kind is complex:
            return {"complex": [bits(value.real), bits(value.imag)]}
        if kind in (tuple, list):
            return {kind.__name__: [self.value(item) for item in value]}
        if kind is slice:
            return {"slice": [self.value(item) for item in (value.start, value.stop, value.step)]}
        if value is Ellipsis or value is OPERAND:
            return {"ellipsis" if value is Ellipsis else "operand": True}
        if isinstance(value, np.dtype):
            return {"dtype": dtype_text(value)}
        if isinstance(value, np.ndarray | np.generic):
            core = without_repetition(value)
            if core is not value:
                return {"repeated": [list(value.shape), self.value(core)]}
            if isinstance(value, np.ndarray) and (axes := axes_in_memory(value)) is not None:
                return {"transposed": [axes, array_form(value.transpose(axes))]}
            return {"array" if isinstance(value, np.ndarray) else "scalar": array_form(value)}
        if isinstance(value, np.ufunc) and UFUNCS.get(value.__name__) is value:
            return {"ufunc": value.__name__}
        if isinstance(value, Primitive):
            return {"primitive": primitive_name(value)}
        if kind in FIELDS:
            return {kind.__name__.lower(): [self.value(getattr(value, name)) for name in FIELDS[kind]]}
        if isinstance(value, Graph):
            return {"graph": self.graph(value)}
        raise unsaved_error(
            f"a value of type {kind.__name__}", "numbers, arrays, strings, tuples and graphs can be saved"
        )


def unsaved_error(given: str, needed: str) -> UsageError:
    """Return the error about a graph that has no form in files."""
    return UsageError("save", given, needed, "Trace a function without it")


def primitive_name(primitive: Primitive) -> str:
    """Return the name under which a primitive is registered."""
    if not primitive.registered:
        raise unsaved_error(
            f"the operation {primitive.name}, which is not registered", "registered primitives are needed"
        )
    return primitive.name


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a numeric dtype as NumPy's array interface writes it, such as `<f8`."""
    if dtype.kind not in "biufc":
        raise unsaved_error(f"dtype {dtype}", "numeric dtypes can be saved")
    return dtype.str


def aval_form(aval: Aval) -> JSON:
    """Return a shape and dtype as JSON; of a Python number its type."""
    if aval.weak:
        return {"number": aval.number.__name__}
    return {"dtype": dtype_text(aval.dtype), "shape": list(aval.shape)}


def bits(value: float) -> str:
    """Return the bits of a float in hexadecimal."""
    return struct.pack(">d", value).hex()


def array_form(value: Any) -> JSON:
    """Return an array or NumPy scalar as dtype, shape, and elements in C order."""
    data = binascii.b2a_base64(np.ascontiguousarray(value).tobytes(), newline=False).decode("ascii")
    return {"dtype": dtype_text(value.dtype), "shape": list(value.shape), "data": data}


class Decoder:
    """Read values from JSON, refusing whatever is not exactly of the form that `Encoder` writes.

    Graphs are read by a function of the JSON and the depth it stands at; `largest` is the most elements of an array.
    """

    def __init__(self, graph: Callable[[JSON, int], Graph], largest: int) -> None:
        self.graph = graph
        self.largest = largest
        self.tagged: dict[str, Callable[[JSON, int], Any]] = {
            "float": lambda form, _: float_of(form),
            "complex": lambda form, _: complex(*map(float_of, items(form, 2))),
            "tuple": lambda form, depth: tuple(self.value(item, depth) for item in items(form)),
            "list": lambda form, depth: [self.value(item, depth) for item in items(form)],
            "slice": lambda form, _: slice(*map(slice_part, items(form, 3))),
            "ellipsis": lambda form, _: mark(form, Ellipsis),
            "operand": lambda form, _: mark(form, OPERAND),
            "dtype": lambda form, _: dtype_of(form),
            "array": lambda form, _: self.array(form),
            "scalar": lambda form, _: self.scalar(form),
            "repeated": lambda form, depth: self.read_repeated(items(form, 2), depth),
            "transposed": lambda form, _: self.read_transposed(*items(form, 2)),
            "ufunc": lambda form, _: find_named(UFUNCS, form, "ufunc"),
            "primitive": lambda form, _: view_of(form),
            "graph": self.graph,
        }
        for tag, kind in RECORDS.items():
            self.tagged[tag] = partial(self.record, kind)

    def value(self, form: JSON, depth: int = 0) -> Any:
        """Return the value that a piece of JSON stands for.

        Raises:
            FileFormatError: it is of no known form.
        """
        if form is None or isinstance(form, bool | int | str):
            return form
        if isinstance(form, float):
            if not math.isfinite(form):
                raise invalid(f"the number {form}", "finite numbers are written as numbers, others by their bits")
            return form
        if not isinstance(form, dict) or len(form) != 1:
            raise invalid(
                f"{form_text(form)} in the place of a value", "a number, a string or one tagged value is needed"
            )
        if depth >= DEEPEST:
            raise invalid("values within values", f"at most {DEEPEST} levels are needed")
        [(tag, content)] = form.items()
        return find_named(self.tagged, tag, "type of value")(content, depth + 1)

    def shape(self, form: JSON, least: int = 0) -> tuple[int, ...]:
        """Return a shape, whose elements must not be too many; `least` is the smallest length."""
        lengths = items(form)
        if len(lengths) > MOST_AXES or not all(type(n) is int and least <= n < 2**63 for n in lengths):
            raise invalid(f"the shape {lengths!r:.80}", f"at most {MOST_AXES} lengths from 0 are needed")
        if math.prod(abs(n) for n in lengths if n) > self.largest:
            raise too_large(f"an array of shape {tuple(lengths)!r:.200}", self.largest)
        return tuple(lengths)

    def aval(self, form: JSON) -> Aval:
        """Return a shape and dtype, or that of a Python number; sequences that loops leave have unknown lengths."""
        if isinstance(form, dict) and "number" in form:
            kind = find_named(NUMBER_TYPES, entries(form, "number")["number"], "type of number")
            return Aval((), NUMBERS[kind], weak=True)
        fields = entries(form, "dtype", "shape")
        return Aval(self.shape(fields["shape"], UNKNOWN), dtype_of(fields["dtype"]))

    def record(self, kind: type[Any], form: JSON, depth: int) -> Any:
        """Return a record, which says itself whether its fields fit together."""
        values = [self.value(item, depth) for item in items(form, len(FIELDS[kind]))]
        try:
            found = kind(*values)
            found.check()
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise invalid(
                f"a record of {kind.__name__.lower()} that does not hold together", "one is needed"
            ) from error
        return found

    def array(self, form: JSON) -> Any:
        """Return an array, read-only."""
        fields = entries(form, "dtype", "shape", "data")
        dtype, shape = dtype_of(fields["dtype"]), self.shape(fields["shape"])
        text = string(fields["data"])
        size = math.prod(shape) * dtype.itemsize
        if len(text) != 4 * -(-size // 3):
            raise invalid(f"{len(text)} characters of data for shape {shape} of {dtype}", "all elements are needed")
        try:
            data = binascii.a2b_base64(text, strict_mode=True)
        except ValueError as error:
            raise invalid("data that is not base64", "base64 is needed") from error
        if len(data) != size:
            raise invalid(f"{len(data)} bytes for shape {shape} of {dtype}", f"{size} are needed")
        if dtype.kind == "b" and data.strip(b"\0\1"):
            raise invalid("booleans other than 0 and 1", "0 and 1 are needed")
        return np.frombuffer(data, dtype).reshape(shape)

    def read_repeated(self, parts: list[JSON], depth: int) -> Any:
        """Return an array of which one element along some axes is in memory."""
        shape, form = parts
        core, wanted = self.value(form, depth), self.shape(shape)
        fits = isinstance(core, np.ndarray) and core.ndim == len(wanted) and core.shape != wanted
        if not fits or any(n not in (1, m) for n, m in zip(core.shape, wanted, strict=True)):
            raise invalid(f"an array that is repeated to the shape {shape!r:.80}", "one that fits is needed")
        return np.broadcast_to(core, wanted)

    def read_transposed(self, axes: JSON, form: JSON) -> Any:
        """Return an array that lies in memory in another order than that of its axes."""
        found = self.array(form)
        if not all(type(axis) is int for axis in items(axes)) or sorted(axes) != list(range(found.ndim)):
            raise invalid(f"axes {form_text(axes)} of an array of shape {found.shape}", "each axis once is needed")
        return found.transpose(np.argsort(axes))

    def scalar(self, form: JSON) -> Any:
        """Return a NumPy scalar."""
        found = self.array(form)
        if found.shape != ():
            raise invalid(f"a scalar of shape {found.shape}", "shape () is needed")
        return found[()]


# Pieces


def items(form: JSON, count: int | None = None) -> list[Any]:
    """Return a JSON array, of a given length."""
    if not isinstance(form, list) or (count is not None and len(form) != count):
        raise invalid(f"{form_text(form)} in the place of a list", f"{count or 'some'} items are needed")
    return form


def entries(form: JSON, *names: str) -> dict[str, Any]:
    """Return a JSON object that has just these entries."""
    if not isinstance(form, dict) or form.keys() != set(names):
        raise invalid(f"{form_text(form)} in the place of an object", f"the entries {', '.join(names)} are needed")
    return form


def string(form: JSON) -> str:
    """Return a JSON string."""
    if not isinstance(form, str):
        raise invalid(f"{form_text(form)} in the place of a string", "a string is needed")
    return form


def find_named(table: dict[str, Any], form: JSON, what: str) -> Any:
    """Return what a table holds under a name."""
    found = table.get(string(form))
    if found is None:
        raise invalid(f"the {what} {form_text(form)}", "a known one is needed")
    return found


def mark(form: JSON, value: Any) -> Any:
    """Return one of the values that carry no content."""
    if form is not True:
        raise invalid(f"{form_text(form)} in the place of true", "true is needed")
    return value


def slice_part(form: JSON) -> int | None:
    """Return start, stop or step of a slice."""
    if form is None or type(form) is int:
        return form
    raise invalid(f"a slice with {form_text(form)}", "integers or null are needed")


def float_of(form: JSON) -> float:
    """Return the float with some bits."""
    if not re.fullmatch(r"[0-9a-f]{16}", string(form)):
        raise invalid(f"a float {form_text(form)}", "16 hexadecimal digits are needed")
    found: float = struct.unpack(">d", bytes.fromhex(form))[0]
    return found


def dtype_of(form: JSON) -> np.dtype[Any]:
    """Return a numeric dtype."""
    if not DTYPE.fullmatch(string(form)):
        raise invalid(f"the dtype {form_text(form)}", "a numeric dtype such as <f8 is needed")
    try:
        return np.dtype(form)
    except TypeError as error:
        raise invalid(f"the dtype {form_text(form)}", "a dtype of this platform is needed") from error


def primitive_of(form: JSON) -> Primitive:
    """Return the primitive registered under a name."""
    name = string(form)
    if name not in PRIMITIVES:
        for module in WAITING:
            importlib.import_module(module)
    found = PRIMITIVES.get(name)
    if found is None:
        given = f"the primitive {form_text(form)}, which is unknown here"
        action = "Import the module that declares it first, or install the version of Wengert that saved the graph"
        raise FileFormatError("load", given, "registered primitives are needed", action)
    return found


def view_of(form: JSON) -> Primitive:
    """Return a primitive as it may stand among parameters, in the path of a view: only those that make views."""
    found = primitive_of(form)
    if not found.view:
        raise invalid(f"the primitive {found.name} among parameters", "a primitive that makes views is needed")
    return found
