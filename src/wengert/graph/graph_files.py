"""Graphs in files: one line with a checksum, then one JSON document. docs/graph-format.md describes it.

Loading carries nothing out but what shapes and dtypes are asked for: there is no pickle and no code in a file. The
file is not compressed, so nothing in it can grow; references go only backwards, so it cannot hold a cycle.
The shapes of results are found by asking NumPy, so an equation whose result would be enormous has to be refused before
it is checked: `count_claimed` estimates upper bounds of the elements of a result, or of the work where that is more.
"""

from __future__ import annotations

import copyreg
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control import call, loop  # noqa: F401 - they declare what files may name, and how it is checked
from wengert.core.diagnostics.argument_checks import as_path
from wengert.core.graph.equation import Equation, Variable, require_graph
from wengert.core.graph.graph import Graph
from wengert.core.graph.graph_checker import FAILURES, check
from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN, aval_of, shape_of
from wengert.errors import FileFormatError, GraphError
from wengert.graph.value_forms import (
    JSON,
    Decoder,
    Encoder,
    aval_form,
    entries,
    form_text,
    invalid,
    items,
    primitive_name,
    primitive_of,
    string,
    too_large,
)
from wengert.support.whole_files import write_whole

Shapes = Sequence[tuple[int, ...]]
Params = Mapping[str, Any]

HARMLESS = frozenset(
    (
        *("axis", "axes", "axis1", "axis2", "ddof", "decimals", "dims", "index", "kth", "lengths"),
        *("offset", "optimize", "order", "shift", "subscripts"),
    )
)
"""Parameters whose integers do not decide how large a result is."""


def count_claimed(primitive: Primitive, inputs: Sequence[Any], params: Params) -> int:
    """Return about how many elements an equation claims, at most: of its result, or in the course of it."""
    if primitive.name in ("getitem", "assign"):
        return of_part(primitive.name, inputs, params)
    shapes = [shape_of(x) for x in inputs]
    own = ESTIMATES.get(primitive.name)
    if own is not None:
        return max(own(shapes, params), 1)
    found = [of_numbers(value) for key, value in params.items() if key not in HARMLESS]
    found += [broadcast(shapes), broadcast([s[:-2] for s in shapes]) * max((size(s[-2:]) for s in shapes), default=1)]
    if not isinstance(primitive, Elementwise):
        found.append(sum(map(size, shapes)))
    return max(found)


def size(shape: Iterable[int]) -> int:
    """Return the number of elements, counting empty axes as one."""
    return math.prod(abs(n) for n in shape if n)


def broadcast(shapes: Shapes) -> int:
    """Return the size of the broadcast shape; 1 if there is none."""
    try:
        return size(np.broadcast_shapes(*(tuple(map(abs, shape)) for shape in shapes)))
    except ValueError:
        return 1


def of_numbers(value: Any) -> int:
    """Return the product of the integers in a parameter, in tuples of tuples, too."""
    if isinstance(value, tuple | list):
        return math.prod(max(1, of_numbers(item)) for item in value)
    return abs(value) if type(value) is int else 1


def of_part(name: str, inputs: Sequence[Any], params: Params) -> int:
    """Bound an indexed part: the broadcast indices, or those of a mask, times the axes that they may leave."""
    x, arrays = shape_of(inputs[0]), inputs[1 if name == "getitem" else 2 :]
    masks = [size(shape_of(a)) for a in arrays if aval_of(a).dtype.kind == "b"]
    indices = broadcast([shape_of(a) for a in arrays if aval_of(a).dtype.kind != "b"])
    part = max(indices, *masks, 1) * size(sorted(x)[len(arrays) :])
    steps = [of_numbers(value) for _, step in params.get("path", ()) for key, value in step if key not in HARMLESS]
    return max(part, *steps, *(size(shape_of(a)) for a in inputs))


def of_pad(shapes: Shapes, params: Params) -> int:
    """Bound a padded array: each axis grows by the widths on both sides."""
    widths = params["widths"]
    return size(n + abs(before) + abs(after) for n, (before, after) in zip(shapes[0], widths, strict=True))


def times(name: str) -> Callable[[Shapes, Params], int]:
    """Return the bound of a primitive that makes the product of a parameter's integers copies."""
    return lambda shapes, params: broadcast(shapes) * max(1, of_numbers(params[name]))


def product(shapes: Shapes, _params: Params) -> int:
    """Bound what combines each element of one operand with each of the other."""
    return math.prod(map(size, shapes))


def of_square(shapes: Shapes, _params: Params) -> int:
    """Bound the square matrices of decompositions, each as large as the longer side."""
    *batch, rows, columns = shapes[0]
    return size(batch) * max(abs(rows), abs(columns), 1) ** 2


def of_contraction(_shapes: Shapes, params: Params) -> int:
    """Bound the products that are summed."""
    return size(params["labels"].lengths)


def of_sparse(shapes: Shapes, params: Params) -> int:
    """Bound what is stored, or the rows and columns of a product."""
    lengths: Shapes = params["pattern"].shape, params["pattern"].data_shape
    return max(size(lengths[1]), max(lengths[0]) * size(shapes[1][1:]), *map(size, shapes))


ESTIMATES: Mapping[str, Callable[[Shapes, Params], int]] = {
    "contract": of_contraction,
    "pad": of_pad,
    "tile": times("reps"),
    "repeat": times("repeats"),
    **dict.fromkeys(("qr", "scipy_qr", "svd"), of_square),
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "real_fourier"), times("n")),
    "linspace": times("num"),
    "sharing": lambda shapes, _params: size(shapes[0]) * abs(shapes[0][-1]),
    "unravel_index": lambda shapes, params: size(shapes[0]) * len(params["shape"]),
    **dict.fromkeys(("outer", "kron", "convolve", "correlate"), product),
    **dict.fromkeys(("sampled_product", "sparse_product", "sparse_solve"), of_sparse),
    **dict.fromkeys(("iterative_solve", "normal_solve", "sparse_lsmr", "sparse_lsqr"), of_sparse),
}


VERSION = 3
HEADER = re.compile(rb"wengert graph ([0-9]{1,9}) sha256:([0-9a-f]{64})\n")
LONGEST_HEADER = 100
LONGEST_NAME = 200
LARGEST_FILE = 1 << 28
LARGEST_ARRAY = 1 << 24


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file, which appears whole or not at all.

    Args:
        graph: the graph. Where its equations were traced is not saved.
        path: the file, which is replaced if it exists.

    Raises:
        UsageError: a primitive is not registered, or a parameter is of a type that files have no form for.
        OSError: the file cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> from wengert.graph import trace
    >>> graph = trace(lambda x: x * 2.0)(1.0)
    >>> with TemporaryDirectory() as folder:
    ...     save(graph, f"{folder}/double.graph")
    ...     load(f"{folder}/double.graph") == graph
    True
    """
    require_graph("save", graph)
    target = as_path("save", path)
    data = encode(graph)
    write_whole(target, lambda file: file.write(data))


def load(path: str | os.PathLike[str], *, largest: int = LARGEST_ARRAY) -> Graph:
    """Read a graph from a file that `save` wrote.

    The file is only data, and is trusted in nothing: its checksum, form and sizes are checked, and so is the graph.

    Args:
        path: the file.
        largest: the most elements that an array of the graph may have, 2**24 by default; what may be computed on the
            way to checking the graph is bounded by it.

    Returns:
        The graph; it equals the one saved.

    Raises:
        FileFormatError: the content is damaged, or not a well formed graph.
        OSError: the file cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> from wengert.graph import trace
    >>> with TemporaryDirectory() as folder:
    ...     save(trace(lambda x: x * 2.0)(1.0), f"{folder}/double.graph")
    ...     load(f"{folder}/double.graph")(4.0)
    (8.0,)
    """
    with open(as_path("load", path), "rb") as file:
        data = file.read(LARGEST_FILE + 1)
    return decode(data, largest=largest)


# Pickled and copied graphs are the content of a file.
copyreg.pickle(Graph, lambda graph: (decode, (encode(graph),)))


# Writing


def encode(graph: Graph) -> bytes:
    """Return the content of a file."""
    import hashlib  # on first use, like the next: the import of Wengert stays quick
    import json

    body = json.dumps(graph_form(graph), separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"wengert graph %d sha256:%s\n%s" % (VERSION, hashlib.sha256(body).hexdigest().encode("ascii"), body)


def graph_form(graph: Graph) -> JSON:
    """Return a graph as JSON; its variables are numbered in the order in which they are bound."""
    encoder = Encoder(graph_form)
    numbers: dict[Variable, int] = {}

    def bind(variable: Variable) -> JSON:
        numbers[variable] = len(numbers)
        return aval_form(variable.aval)

    def use(value: Any) -> JSON:
        return numbers[value] if type(value) is Variable else {"literal": encoder.value(value)}

    inputs = [{"name": variable.name, **bind(variable)} for variable in graph.inputs]
    equations = [
        {
            "primitive": primitive_name(equation.primitive),
            "inputs": list(map(use, equation.inputs)),
            "params": {key: encoder.value(value) for key, value in equation.params.items()},
            "outputs": list(map(bind, equation.outputs)),
        }
        for equation in graph.equations
    ]
    return {"inputs": inputs, "equations": equations, "outputs": list(map(use, graph.outputs))}


# Reading


def decode(data: bytes, *, largest: int = LARGEST_ARRAY) -> Graph:
    """Return the graph in the content of a file.

    Raises:
        FileFormatError: the content is damaged, or not a well formed graph.
    """
    graph = GraphReader(largest).graph(document(data), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(graph)
        except GraphError as error:
            raise invalid(f"a graph that is not well formed ({error})", "a well formed graph is needed") from error
    return graph


def document(data: bytes) -> JSON:
    """Return the JSON document in the content of a file, if the checksum is right."""
    import hashlib
    import json

    if len(data) > LARGEST_FILE:
        raise invalid(f"more than {LARGEST_FILE} bytes", "a smaller file is needed")
    header = HEADER.match(data[:LONGEST_HEADER])
    if header is None:
        raise invalid("content that does not begin like a graph file", "a file written by save is needed")
    if int(header[1]) != VERSION:
        action = "Use the version of Wengert that saved the graph"
        raise FileFormatError("load", f"version {int(header[1])} of the format", f"version {VERSION} is needed", action)
    body = memoryview(data)[header.end() :]
    if hashlib.sha256(body).hexdigest().encode("ascii") != header[2]:
        raise invalid("content that does not fit its checksum: the file is damaged", "an undamaged file is needed")
    try:
        return json.loads(bytes(body), object_pairs_hook=require_distinct, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise invalid(f"content that is not JSON ({error})", "a JSON document is needed") from error


def require_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, whose names must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise invalid("an object with the same name twice", "different names are needed")
    return found


def refuse_constant(name: str) -> Any:
    """Refuse NaN and infinities, which are not JSON."""
    raise invalid(f"{name} as a number", "numbers that are not finite are written by their bits")


class GraphReader:
    """Read graphs from JSON, bounding their sizes.

    `largest` is the most elements that an array may have.
    """

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.decoder = Decoder(self.graph, largest)

    def graph(self, form: JSON, depth: int) -> Graph:
        """Return a graph."""
        fields = entries(form, "inputs", "equations", "outputs")
        bound: list[Variable] = []
        names: set[str] = set()
        for one in items(fields["inputs"]):
            parts = dict(one) if isinstance(one, dict) else entries(one, "name")
            name = self.name(parts.pop("name", None), names)
            aval = self.decoder.aval(parts)
            if depth == 0 and UNKNOWN in aval.shape:  # sequences are made by loops, inside of graphs
                raise invalid(f"an input of shape {aval.shape}", "lengths from 0 are needed")
            bound.append(Variable.of(aval, name))
        inputs = tuple(bound)
        equations = [self.equation(one, bound, depth) for one in items(fields["equations"])]
        return Graph(inputs, equations, [self.operand(one, bound, depth) for one in items(fields["outputs"])])

    def name(self, form: JSON, taken: set[str]) -> str:
        """Return the name of an input, which may be empty, but is otherwise given once."""
        name = string(form)
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise invalid(f"the name {form_text(name)}", f"at most {LONGEST_NAME} printable characters are needed")
        if name in taken:
            raise invalid(f"two inputs called {form_text(name)}", "different names are needed")
        taken.update({name} if name else ())
        return name

    def equation(self, form: JSON, bound: list[Variable], depth: int) -> Equation:
        """Return an equation, whose outputs become known."""
        fields = entries(form, "primitive", "inputs", "params", "outputs")
        primitive = primitive_of(fields["primitive"])
        inputs = tuple(self.operand(one, bound, depth) for one in items(fields["inputs"]))
        if not isinstance(fields["params"], dict):
            raise invalid(f"{form_text(fields['params'])} in the place of parameters", "an object is needed")
        params = {key: self.decoder.value(one, depth) for key, one in fields["params"].items()}
        outputs = tuple(Variable.of(self.decoder.aval(one)) for one in items(fields["outputs"]))
        self.require_moderate(primitive, inputs, params)
        bound += outputs
        return Equation(primitive, inputs, params, outputs)

    def operand(self, form: JSON, bound: list[Variable], depth: int) -> Any:
        """Return a variable that is bound already, or a literal."""
        if type(form) is int and 0 <= form < len(bound):
            return bound[form]
        if isinstance(form, dict) and form.keys() == {"literal"}:
            return self.decoder.value(form["literal"], depth)
        raise invalid(f"{form_text(form)} as an operand", "a variable bound before or a literal is needed")

    def require_moderate(self, primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Refuse an equation that would make NumPy allocate much more than an array may take."""
        try:
            count = count_claimed(primitive, inputs, params)
        except FAILURES as error:
            raise invalid(
                f"parameters of {primitive.name} that do not fit ({error!r:.200})", "a valid call is needed"
            ) from error
        if count > self.largest:
            raise too_large(
                f"an equation of {primitive.name} that may take {min(count, 10**30):.3g} elements", self.largest
            )
