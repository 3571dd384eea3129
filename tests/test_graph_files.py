"""Graphs in files: equal after a round trip, and whatever else is in a file is refused with one error."""

import base64
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.samples import SAMPLES
from tests.samples.base import Fixed
from tests.samples.running import LOOKING, over
from wengert.control.cond import cond
from wengert.control.scan import scan
from wengert.control.while_loop import fori_loop, while_loop
from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Reduction
from wengert.core.graph.graph import Equation, Graph, Variable
from wengert.core.primitives.opaque_kinds import Constant
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.errors import FileFormatError, UsageError, WengertError
from wengert.graph import check, gradient, load, save, trace
from wengert.graph.graph_files import count_claimed, decode, encode

CONTENT = "wengert graph 3 sha256:"


def signed(body):
    """A file with this body and its checksum."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{CONTENT}{hashlib.sha256(body).hexdigest()}\n".encode() + body


def body_of(graph):
    """The JSON document of a saved graph."""
    return json.loads(encode(graph).split(b"\n", 1)[1])


def is_differentiated(arg):
    if isinstance(arg, list | tuple):
        return bool(arg) and all(isinstance(x, np.ndarray) and is_differentiated(x) for x in arg)
    return isinstance(arg, float | np.ndarray) and np.asarray(arg).dtype.kind in "fc"


def without_marks(value):
    if isinstance(value, Fixed):
        return without_marks(value.value)
    return type(value)(map(without_marks, value)) if type(value) in (list, tuple) else value


def graph_of(sample):
    """The graph of a sample's call, its other arguments being literals; None where it looks at elements."""
    args = [without_marks(arg) for arg in sample.args]
    kwargs = {key: without_marks(value) for key, value in sample.kwargs.items()}
    places = [i for i, arg in enumerate(sample.args) if is_differentiated(arg)]

    def function(*given):
        for i, x in zip(places, given, strict=True):
            args[i] = x
        return sample.function(*args, **kwargs)

    try:
        return trace(function)(*(args[i] for i in places))
    except (WengertError, TypeError):
        return None


def total(graph):
    """The graph of the sum of a graph's outputs; None where there is nothing to differentiate."""
    floats = [i for i, x in enumerate(graph.outputs) if type(x) is Variable and x.dtype.kind in "fc"]
    if not floats:
        return None
    return trace(lambda *xs: sum(np.sum(np.real(graph(*xs)[i])) for i in floats))(*graph.inputs)


@pytest.fixture
def given(monkeypatch):
    primitive = Constant("test_graph_files.given", lambda x, **_: x)
    monkeypatch.setitem(PRIMITIVES, primitive.name, primitive)
    monkeypatch.setattr(primitive, "registered", True)

    def graph(value):
        x, y = Variable((3,), np.dtype(float), "x"), Variable((3,), np.dtype(float))
        return Graph([x], [Equation(primitive, (x,), {"value": value}, (y,))], [y])

    return graph


# Round trips


@over(SAMPLES, few=True, third=True)
def test_samples_and_their_gradients_come_back_equal(sample):
    graph = graph_of(sample)
    if graph is None:
        assert sample.primitive in LOOKING
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        whole = total(graph) if sample.order else None
        for one in [graph] if whole is None else [graph, gradient(whole)]:
            text = encode(one)
            found = decode(text)
            assert found == one
            assert hash(found) == hash(one)
            assert str(found) == str(one)
            assert encode(found) == text


def test_a_loaded_graph_computes_the_same_bits(tmp_path):
    weights = np.random.default_rng(0).normal(size=(3, 2))
    graph = gradient(trace(lambda x: np.sum(np.tanh(x @ weights) ** 2))(np.ones((4, 3))))
    save(graph, tmp_path / "g.graph")
    found = load(tmp_path / "g.graph")
    x = np.random.default_rng(1).normal(size=(4, 3))
    for one, other in zip(graph(x), found(x), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_a_loaded_graph_can_be_differentiated_again(tmp_path):
    save(gradient(trace(lambda x: x**3)(2.0)), tmp_path / "g.graph")
    assert [float(y) for y in gradient(load(tmp_path / "g.graph"))(2.0)] == [8.0, 12.0, 12.0]


QUIET_NAN = struct.unpack(">d", bytes.fromhex("7ff8000000000000"))[0]
OTHER_NAN = struct.unpack(">d", bytes.fromhex("fff8000000000123"))[0]


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, 1, -1, 2**20, "", "text", 'q"\\\n\u2603'),
        *(0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, float("inf"), -float("inf"), QUIET_NAN, OTHER_NAN),
        *(1j, complex(-0.0, OTHER_NAN)),
        *((), (1, (2.0, "x"), None), [1, [2]], slice(None), slice(1, -2, 3), slice(-(2**70), None), Ellipsis),
        *(np.dtype("f4"), np.dtype(">i2"), np.dtype(bool), np.add, np.logaddexp),
        *(np.float64(0.1), np.float32(np.nan), np.int8(-3), np.bool_(True), np.complex64(1 + 2j)),
        *(np.arange(6).reshape(2, 3), np.zeros((0, 3)), np.array(2.5), np.arange(6.0)[::-2], np.array([True, False])),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        *(np.broadcast_to(-0.0, (2, 3)), np.broadcast_to(np.True_, 2), np.broadcast_to(np.arange(3.0), (2, 3))),
    ],
    ids=repr,
)
def test_parameters_come_back_with_type_and_bits(given, value):
    graph = given(value)
    found = decode(encode(graph))
    assert found == graph
    back = found.equations[0].params["value"]
    assert type(back) is type(value)
    if isinstance(value, float):
        assert struct.pack(">d", back) == struct.pack(">d", value)
    elif isinstance(value, complex):
        assert struct.pack(">dd", back.real, back.imag) == struct.pack(">dd", value.real, value.imag)
    elif isinstance(value, np.ndarray | np.generic):
        assert (back.dtype, back.shape, back.tobytes()) == (value.dtype, value.shape, value.tobytes())
    elif value is Ellipsis or isinstance(value, np.ufunc):
        assert back is value
    else:
        assert back == value


def test_indices_views_and_subgraphs_come_back(given):
    def function(x, places):
        x = x * 1.5
        x[1:][..., ::2][places] += 1.0
        return x[:, None][np.array([0, 1])], x

    graph = trace(function)(np.ones((4, 3)), np.array([0, 1]))
    assert decode(encode(graph)) == graph
    inner = trace(lambda x: x * 2.0)(1.0)
    for value in (inner, (inner, inner)):
        assert decode(encode(given(value))) == given(value)


CONTROL = {
    "fori_loop": lambda x: fori_loop(0, 3, lambda i, v: v * np.sin(v) + i, x),
    "while_loop": lambda x: while_loop(lambda v: v < 10.0, lambda v: v * v + 1.0, x),
    "cond": lambda x: cond(x > 1.0, lambda v: v * 2.0, np.sin, x),
    "scan": lambda x: scan(lambda c, t: (c * t, c + t), x, np.arange(1.0, 4.0))[0],
}


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_and_its_gradients_come_back(name):
    graph = trace(CONTROL[name])(2.0)
    for one in (graph, gradient(graph), gradient(gradient(graph))):
        found = decode(encode(one))
        assert found == one
        assert found(2.0) == one(2.0)


def test_names_of_inputs_are_kept(tmp_path):
    save(trace(lambda first, second: first + second)(1.0, 2.0), tmp_path / "g")
    assert [v.name for v in load(tmp_path / "g").inputs] == ["first", "second"]


def test_literals_come_back_read_only():
    graph = trace(lambda x: x + np.arange(3.0))(np.ones(3))
    literal = decode(encode(graph)).equations[0].inputs[1]
    assert not literal.flags.writeable


def test_literals_that_are_one_element_are_saved_and_read_as_that():
    graph = trace(gradient_of_a_part)(np.ones((1000, 100)))
    text = encode(graph)
    assert len(text) < 1000
    found = decode(text)
    assert found == graph
    zeros = found.equations[-1].inputs[0]
    assert zeros.shape == (1000, 100)
    assert not any(zeros.strides)


def gradient_of_a_part(x):
    return wg.grad(lambda y: np.sum(np.sin(y[1:])))(x)


@pytest.mark.parametrize(
    ("shape", "own"), [([1], [1]), ([], []), ([0, 2], [2, 1]), ([2**62], [1]), ([2], []), ([2], [2])]
)
def test_repeated_arrays_that_are_not_are_refused(shape, own):
    form = {"literal": {"repeated": [shape, {"array": {"dtype": "|b1", "shape": own, "data": "AQ=="}}]}}
    with pytest.raises(FileFormatError):
        decode(changed("outputs", to=[form]))


# Writing


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, np.array(["a"]), np.dtype("M8[s]"), np.array([None]), b"bytes"],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_form_is_refused(given, value):
    with pytest.raises(UsageError, match=r"^save: .*; .* can be saved\. Trace a function without it\.$"):
        encode(given(value))


def test_unregistered_operations_are_refused(given):
    stranger = Constant("test_graph_files.given", lambda x, **_: x)
    equation = given(1).equations[0]
    graph = Graph(equation.inputs, [Equation(stranger, equation.inputs, {}, equation.outputs)], equation.outputs)
    with pytest.raises(UsageError, match="which is not registered"):
        encode(graph)


def test_a_failed_save_leaves_the_old_file(tmp_path, given):
    path = tmp_path / "g.graph"
    save(given(1), path)
    with pytest.raises(UsageError):
        save(given(object()), path)
    assert load(path) == given(1)
    assert os.listdir(tmp_path) == ["g.graph"]


def test_a_save_that_cannot_write_leaves_nothing(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        save(trace(lambda x: x)(1.0), tmp_path / "taken")
    assert os.listdir(tmp_path) == ["taken"]


def test_saved_files_have_the_usual_permissions(tmp_path):
    save(trace(lambda x: x)(1.0), tmp_path / "g")
    (tmp_path / "other").touch()
    assert os.stat(tmp_path / "g").st_mode == os.stat(tmp_path / "other").st_mode


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


# Hostile files


def simple():
    return body_of(trace(lambda x: np.tile(x * 2.0, 2))(np.ones(3)))


def changed(*path, to):
    """A signed file in which one place has another value."""
    body = place = simple()
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return signed(body)


HUGE = 2**40
EQUATION = ("equations", 0)
TILE = ("equations", 1)


@together(
    "data, message",
    [
        (b"", "does not begin like a graph file"),
        (b"\x80\x04.", "does not begin like a graph file"),
        (signed(simple())[:-1], "does not fit its checksum"),
        (signed(simple()).replace(b"graph 3", b"graph 2"), "version 2 of the format; version 3 is needed"),
        (signed(b"{"), "content that is not JSON"),
        (signed(b"\xff"), "content that is not JSON"),
        (signed(b"[" * 100_000), "content that is not JSON"),
        (signed(b'{"inputs":' * 50_000), "content that is not JSON"),
        (signed(b'{"inputs":[],"inputs":[],"outputs":[]}'), "the same name twice"),
        (signed(b"NaN"), "NaN as a number"),
        (signed(b"1" * 5000), "content that is not JSON"),
        (signed([]), "a list in the place of an object; the entries inputs, equations, outputs are needed"),
        (signed({**simple(), "more": 1}), "the entries inputs, equations, outputs are needed"),
        (changed("inputs", to={}), "in the place of a list"),
        (changed("inputs", 0, "name", to=3), "in the place of a string"),
        (changed("inputs", 0, "name", to="../../\x00"), "printable characters are needed"),
        (changed("inputs", to=[*simple()["inputs"], *simple()["inputs"]]), "two inputs called 'x'"),
        (changed("inputs", 0, "shape", to=[HUGE, HUGE]), "at most 16777216 elements are expected"),
        (
            changed("inputs", 0, "shape", to=[-1]),
            "cannot be evaluated|which it gives|is what it gives|lengths from 0 are needed",
        ),
        (changed("inputs", 0, "shape", to=[True]), "lengths from 0"),
        (changed("inputs", 0, "shape", to=[2.0]), "lengths from 0"),
        (changed("inputs", 0, "shape", to=[1] * 65), "lengths from 0"),
        (changed("inputs", 0, "dtype", to="O"), "a numeric dtype such as <f8"),
        (changed("inputs", 0, "dtype", to="<f3"), "a dtype of this platform"),
        (changed(*EQUATION, "primitive", to="os.system"), "the primitive 'os.system', which is unknown here"),
        (changed(*EQUATION, "inputs", to=[0, 1]), "a variable bound before or a literal is needed"),
        (changed(*EQUATION, "inputs", to=[0, True]), "a variable bound before or a literal is needed"),
        (changed(*EQUATION, "inputs", to=[0, -1]), "a variable bound before or a literal is needed"),
        (changed(*EQUATION, "inputs", to=[0]), "cannot be evaluated"),
        (changed(*EQUATION, "inputs", to=[0, {"literal": "text"}]), "a literal of type str"),
        (changed(*TILE, "outputs", to=[]), "variable bound before"),
        (changed(*EQUATION, "outputs", 0, "shape", to=[4]), "is what it gives"),
        (changed(*EQUATION, "outputs", 0, "dtype", to="<f4"), "is what it gives"),
        (changed(*EQUATION, "params", to=[]), "in the place of parameters"),
        (changed(*EQUATION, "params", to={"out": {"array": {}}}), "the entries dtype, shape, data are needed"),
        (changed(*TILE, "params", "reps", to={"tuple": [HUGE]}), "an equation of tile that may take"),
        (changed(*TILE, "params", "reps", to={"tuple": [10**30]}), "an equation of tile that may take"),
        (changed(*TILE, "params", "reps", to={"tuple": [4096, 4096, 4096]}), "an equation of tile that may take"),
        (changed(*TILE, "params", "reps", to="two"), "tile that cannot be evaluated|is what it gives"),
        (changed(*TILE, "params", to={}), "parameters of tile that do not fit"),
        (changed(*TILE, "params", "reps", to={"code": "import os"}), "the type of value 'code'; a known one is needed"),
        (changed(*TILE, "params", "reps", to={"ufunc": "frompyfunc"}), "the ufunc 'frompyfunc'; a known one"),
        (changed(*TILE, "params", "reps", to={"primitive": "tile"}), "a primitive that makes views is needed"),
        (changed(*TILE, "params", "reps", to={"float": "nan"}), "16 hexadecimal digits"),
        (changed(*TILE, "params", "reps", to={"slice": [1]}), "3 items are needed"),
        (changed(*TILE, "params", "reps", to={"slice": [1, 2, "3"]}), "integers or null are needed"),
        (changed(*TILE, "params", "reps", to={"ellipsis": 1}), "true is needed"),
        (changed(*TILE, "params", "reps", to={"tuple": [], "list": []}), "one tagged value is needed"),
        (
            signed(encode(trace(lambda x: x)(1.0)).split(b"\n")[1].replace(b"[0]", b'[{"literal":1e999}]')),
            "finite numbers",
        ),
        (changed("outputs", to=[7]), "a variable bound before or a literal is needed"),
    ],
)
def test_hostile_files_are_refused(data, message):
    with pytest.raises(FileFormatError, match=r"^load: .*; .*\. .*\.$") as caught:
        decode(data)
    assert re.search(message, str(caught.value)), str(caught.value)


def without(params, key):
    return {name: value for name, value in params.items() if name != key}


def with_spec(params, place, value):
    fields = list(params["spec"]["loopspec"])
    fields[place] = value
    return {**params, "spec": {"loopspec": fields}}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("scan", lambda p: without(p, "spec"), "scan that cannot be evaluated .'spec'"),
        ("scan", lambda p: {**p, "spec": 3}, "spec=3; a record of a loop is needed"),
        ("scan", lambda p: with_spec(p, 2, "3"), "a record of loopspec that does not hold together"),
        ("scan", lambda p: with_spec(p, 3, 1), "a record of loopspec that does not hold together"),
        ("scan", lambda p: with_spec(p, 2, 4), r"a sequence of shape \(3,\) for 4 iterations"),
        ("scan", lambda p: with_spec(p, 1, 2), "body of inputs"),
        ("scan", lambda p: with_spec(p, 0, 5), "a loop of 2 operands"),
        ("scan", lambda p: {**p, "body": 1}, "body that is a int; a graph is needed"),
        ("while_loop", lambda p: {**p, "cond": "less"}, "cond that is a str; a graph is needed"),
        ("cond", lambda p: {**p, "branches": {"tuple": []}}, "a choice without branches"),
        ("cond", lambda p: {**p, "branches": {"tuple": [1]}}, "branch that is a int"),
    ],
)
def test_control_flow_that_does_not_fit_is_refused(name, change, message):
    document = body_of(trace(CONTROL[name])(2.0))
    [equation] = [e for e in document["equations"] if e["primitive"] == name]
    equation["params"] = change(equation["params"])
    with pytest.raises(FileFormatError, match=message):
        decode(signed(document))


def test_deep_values_are_refused():
    value = 1
    for _ in range(100):
        value = {"tuple": [value]}
    with pytest.raises(FileFormatError, match="at most 32 levels"):
        decode(changed(*TILE, "params", "reps", to=value))
    graph = simple()
    for _ in range(100):
        graph = {"inputs": [], "equations": [], "outputs": [{"literal": {"graph": graph}}]}
    with pytest.raises(FileFormatError, match="at most 32 levels"):
        decode(signed(graph))


@pytest.mark.parametrize(
    ("shape", "data", "message"),
    [
        ([2**62], "", "elements are expected"),
        ([2], "AAAA", "4 characters of data"),
        ([1], "AAAAAAAAAAA!", "not base64"),
        ([1], "A" * 12, "9 bytes for shape"),
        ([0, 2**62], "", "elements are expected"),
    ],
)
def test_arrays_whose_data_do_not_fit_are_refused(shape, data, message):
    form = {"literal": {"array": {"dtype": "<f8", "shape": shape, "data": data}}}
    with pytest.raises(FileFormatError, match=message):
        decode(changed("outputs", to=[form]))


def test_booleans_other_than_0_and_1_are_refused():
    data = base64.b64encode(b"\x02").decode()
    form = {"literal": {"array": {"dtype": "|b1", "shape": [1], "data": data}}}
    with pytest.raises(FileFormatError, match="booleans other than 0 and 1"):
        decode(changed("outputs", to=[form]))


@pytest.mark.long
def test_estimates_of_what_an_equation_takes_are_upper_bounds():
    for graph in filter(None, map(graph_of, SAMPLES)):
        for equation in graph.equations:
            if equation.primitive.name != "getitem" and (
                equation.primitive.view or isinstance(equation.primitive.form, Contraction | Reduction)
            ):
                continue  # nothing is computed
            most = max((np.prod(v.shape, dtype=int) for v in equation.outputs), default=0)
            assert count_claimed(equation.primitive, equation.inputs, equation.params) >= most, equation.primitive.name


WIDE, TALL, MANY = np.zeros((1, 2**13)), np.zeros((2**13, 1)), np.zeros(2**13)
PLACES = np.zeros(2**13, int)


@pytest.mark.parametrize(
    ("function", "examples"),
    [
        (lambda x: np.concatenate([x] * 3000), (MANY,)),
        (lambda x: np.outer(x, x), (MANY,)),
        (lambda x: np.kron(x, x), (MANY,)),
        (lambda x, y: np.isclose(x, y), (WIDE, TALL)),
        (lambda x, y: x + y, (WIDE, TALL)),
        (lambda x, i: x[i], (np.zeros((2, 2**13)), PLACES)),
        (lambda x, i, j: x[i[:, None], j], (TALL, PLACES, PLACES)),
        (lambda x: np.pad(x, 3000), (np.zeros((1, 1)),)),
        (lambda x: np.repeat(x, 2**12), (MANY,)),
        (lambda x: np.linspace(x, 1.0, 2**12), (MANY,)),
        (lambda x: np.diag(x), (MANY,)),
        (lambda x: np.broadcast_to(x, (2**13, 2**13)), (MANY,)),
    ],
)
def test_equations_with_enormous_results_are_refused_before_they_are_checked(function, examples):
    data = encode(trace(function)(*examples))
    document = json.loads(data.split(b"\n", 1)[1])
    for equation in document["equations"]:
        for output in equation["outputs"]:
            if np.prod(output["shape"]) > 2**24:
                output["shape"] = [2]
    with pytest.raises(FileFormatError, match="elements are expected"):
        decode(signed(document))
    assert decode(data, largest=2**28)


def test_larger_arrays_can_be_allowed(tmp_path):
    graph = trace(lambda x: x * 2.0)(np.broadcast_to(1.0, (2**13, 2**12)))
    save(graph, tmp_path / "g")
    with pytest.raises(FileFormatError, match=r"call load\(path, largest=\.\.\.\) with a larger number"):
        load(tmp_path / "g")
    assert load(tmp_path / "g", largest=2**25) == graph


# Fuzzing

SCALARS = (
    None,
    True,
    0,
    -1,
    1,
    7,
    2**31,
    2**63,
    10**40,
    0.5,
    1e308,
    "",
    "add",
    "sum",
    "einsum",
    "<f4",
    "|b1",
    "C",
)


def seeds():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3, 3))

    def assigned(x, i):
        x = x * 1.0
        x[1:][i] = np.sum(x)
        return x

    def mixed(x, y):
        return np.sum(np.sort(np.concatenate([np.exp(x), np.tile(y, 2)]))[::2]) * np.max(np.pad(y, 1))

    functions = [
        (lambda x1, x2: np.log(x1) + x1 * x2 - np.sin(x2), (2.0, 5.0)),
        (lambda x: np.sum(np.tanh(matrix @ x) ** 2), (np.ones(3),)),
        (lambda x: np.linalg.det(x) + np.einsum("ij,jk,kl->", x, x, x), (matrix,)),
        (mixed, (np.ones(3), np.ones(2))),
        (lambda x: np.std(x, axis=0).sum() + np.cumprod(x)[-1] + np.quantile(x, 0.3), (matrix,)),
    ]
    graphs = [gradient(trace(f)(*examples)) for f, examples in functions]
    graphs.append(trace(assigned)(matrix, np.array([0, 1])))
    graphs.append(trace(lambda x: np.linspace(x, 2.0, 5) + np.broadcast_to(x, (2, 5)))(1.0))
    graphs += [gradient(trace(function)(2.0)) for function in CONTROL.values()]
    return [encode(graph) for graph in graphs]


def places(node, found):
    """All containers of a JSON document with the keys in them."""
    for key in node if isinstance(node, dict) else range(len(node)):
        found.append((node, key))
        if isinstance(node[key], dict | list):
            places(node[key], found)
    return found


def broken_bytes(rng, data):
    data = bytearray(data)
    kind = rng.randrange(3)
    if kind == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    else:
        start = rng.randrange(len(data))
        data[start:start] = rng.randbytes(rng.randrange(1, 9))
    return bytes(data)


def broken_values(rng, data, donors):
    body = json.loads(data.split(b"\n", 1)[1])
    for _ in range(rng.choice((1, 1, 2, 4))):
        node, key = rng.choice(places(body, []) or [([None], 0)])
        kind = rng.randrange(5)
        if kind == 0:
            node[key] = rng.choice(SCALARS)
        elif kind == 1:
            other, place = rng.choice(places(json.loads(rng.choice(donors).split(b"\n", 1)[1]), []))
            node[key] = other[place]
        elif kind == 2:
            del node[key]
        elif kind == 3 and isinstance(node, list):
            node.insert(key, node[key])
        elif kind == 4 and isinstance(node[key], int):
            node[key] += rng.choice((-1, 1, 1000, 2**33))
    return signed(body)


def fuzz(count):
    """Load mutations of saved graphs; return how many were refused, and how many gave a graph."""
    rng = random.Random(20)
    donors = seeds()
    refused = loaded = 0
    for i in range(count):
        data = rng.choice(donors)
        if i % 5 == 0:
            data = broken_bytes(rng, data)
        elif i % 5 == 1:
            data = signed(broken_bytes(rng, data.split(b"\n", 1)[1]))
        else:
            data = broken_values(rng, data, donors)
        try:
            graph = decode(data)
        except FileFormatError:
            refused += 1
            continue
        check(graph)
        loaded += 1
    return refused, loaded


def peak_of_this_process():
    """Return the most memory in KiB that this program has held; `ru_maxrss` counts what ran before `exec` as well."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(re.search(r"VmHWM:\s+(\d+)", status.read_text()).group(1))


@pytest.mark.long
def test_mutated_files_are_refused_or_give_a_checked_graph(tmp_path):
    """In a process of its own, with bounded memory and a directory in which nothing may appear."""
    program = (
        "import resource, tests.test_graph_files as t\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "print(*t.fuzz(3_000), t.peak_of_this_process())"
    )
    root = Path(__file__).resolve().parent.parent
    package = Path(wg.__file__).parent.parent  # the one tested here, whatever is installed
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{package}", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    refused, loaded, peak = map(int, done.stdout.split())
    assert refused + loaded == 3_000  # more: the program above with another number
    assert refused > 1_500
    assert loaded > 30
    assert peak < 1 << 20, "more than 1 GiB"
    assert os.listdir(tmp_path) == []


def test_an_assignment_without_a_path_is_refused():
    def written(x):
        y = x * 1.0
        y[1] = 5.0
        return y

    body = body_of(trace(written)(np.ones(3)))
    for equation in body["equations"]:
        equation["params"].pop("path", None)
    with pytest.raises(FileFormatError, match="missing a required argument: 'path'"):
        decode(signed(body))


def test_an_input_of_unknown_length_is_refused():
    body = {"inputs": [{"name": "x", "dtype": "<f8", "shape": [-1]}], "equations": [], "outputs": [0]}
    with pytest.raises(FileFormatError, match=r"an input of shape \(-1,\); lengths from 0 are needed"):
        decode(signed(body))
