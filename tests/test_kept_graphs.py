"""Compiled graphs in the cache: found by other processes that trace the same, and by none that trace something else."""

from __future__ import annotations

import json
import marshal
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import OPTIONS
from wengert import extend
from wengert.compile import codegen, compilation_cache
from wengert.compile.executable import Compiled, GraphFunction
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.native import cache, cache_writing, loader
from wengert.native.availability import UnavailableError
from wengert.native.cache import object_cache
from wengert.passes.pipeline import flatten_calls
from wengert.support import config
from wengert.transforms.tracing import trace

pytest.importorskip("llvmlite")
X = np.linspace(-0.9, 1.1, 12)
TABLE = np.arange(12.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where code is kept during a test."""
    monkeypatch.setattr(config, "CACHE", str(tmp_path / "kept"))
    object_cache.cache_clear()
    yield tmp_path / "kept"
    object_cache.cache_clear()


def solved(x: Any) -> Any:
    return np.linalg.solve(np.eye(len(x)) * 2.0, np.exp(x)) * x, np.sort(x), 3.0


def oriented(x: Any) -> Any:
    return np.exp(x.reshape(3, 4).T) * 2.0, x


def complicated(x: Any) -> Any:
    return np.exp(1j * x) * 2.0, np.sum(x * TABLE), x > 0.0


def indexed(x: Any) -> Any:
    y = x[..., np.array([0, 2, 5])] * x[0]
    y[np.array([1])] = x[1:2]
    if np.sum(x) > 1e9:
        raise ValueError("too much")
    return y, np.exp(x)


def chosen(x: Any) -> Any:
    return np.exp(x)[np.floor(x + 5.0).astype(int)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gradient": wg.value_and_grad(lambda x: np.sum(np.log(x + 1.0) * np.sin(x))),
    "numpy between": solved,
    "orders and inputs": oriented,
    "complex and constants": complicated,
    "indices and errors": wg.jit(indexed),
    "one of several orders": wg.grad(lambda x: wg.while_loop(lambda s: np.sum(s) < 50.0, lambda s: s * 1.5, x).sum()),
    "nothing to do": lambda x: (x, 2.0),
    "call with places": lambda x: wg.jit(chosen)(x) + x,
}
PARTLY_NUMPYS = {"numpy between", "indices and errors", "nothing to do"}


def run(graph: Any) -> list[Any]:
    return [np.asarray(x) for x in Compiled(graph)([X])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_found_gives_the_same(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = FUNCTIONS[name]
    first = run(trace(function)(X))
    monkeypatch.setattr(codegen, "compile_segments", None)  # nothing is compiled any more
    if name not in PARTLY_NUMPYS:
        monkeypatch.setattr(compilation_cache, "flatten_calls", None)  # and no pass is gone through
    second = run(trace(function)(X))
    for one, other, plain in zip(first, second, trace(function)(X)(X), strict=True):
        assert (one.tobytes(), one.dtype, one.strides) == (other.tobytes(), other.dtype, other.strides)
        assert (one.dtype, one.shape, one.strides) == (
            np.asarray(plain).dtype,
            np.shape(plain),
            np.asarray(plain).strides,
        )
        np.testing.assert_allclose(one, plain, rtol=1e-13)
    if name == "call with places":
        with pytest.raises(IndexError, match="out of bounds"):
            Compiled(trace(function)(X))([X + 99.0])


def jitted_graph(function: Any, x: Any) -> Any:
    """Return a graph that knows how its input lies in memory."""
    made = wg.jit(function)
    made(x)
    (entry,) = made.forms.values()
    return entry.graph


def test_graphs_that_differ_have_different_keys() -> None:
    table = np.arange(1000.0)
    row, column = np.ones((3, 4)), np.ones((4, 3)).T
    graphs = [
        trace(lambda x: x * 2.0)(X),
        trace(lambda x: x * 2)(X),
        trace(lambda x: x * -0.0)(X),
        trace(lambda x: x * 0.0)(X),
        trace(lambda x: np.copysign(x, np.nan))(X),
        trace(lambda x: np.copysign(x, -np.nan))(X),
        trace(lambda x: np.copysign(x, np.float64(-np.nan)))(X),
        trace(lambda x: x * 2.0)(X.astype(np.float32)),
        trace(lambda x: x * 2.0)(X[:6]),
        trace(lambda x: x * 2.0)(2.0),
        trace(lambda x: np.sum(x) * table)(X),
        trace(lambda x: np.sum(x) * (table + 1.0))(X),
        jitted_graph(lambda x: x + 1.0, row),
        jitted_graph(lambda x: x + 1.0, column),
    ]
    keys = [compilation_cache.key_of(flatten_calls(graph)) for graph in graphs]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert compilation_cache.key_of(flatten_calls(trace(lambda x: x * 2.0)(X))) == keys[0]


def test_whose_lapack_may_be_called_is_part_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.eye(3)
    graphs = [flatten_calls(trace(f)(a)) for f in (np.sin, np.linalg.inv, lambda a: wg.scan(inverted, a, a))]
    before = [compilation_cache.key_of(graph) for graph in graphs]
    monkeypatch.setattr(compilation_cache, "installation", lambda: "another")
    assert [compilation_cache.key_of(x) == key for x, key in zip(graphs, before, strict=True)] == [True, False, False]


def inverted(a: Any, _row: Any) -> Any:
    """Return a state for the next round of a scan, and nothing of this one."""
    return np.linalg.inv(a), None


def test_what_an_earlier_process_compiled_changes_no_digits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "AT_ONCE", False)
    graph = trace(lambda x: np.exp(x) * 3.0)(X)
    waiting = GraphFunction(graph).waiting
    run(graph)
    assert GraphFunction(graph).waiting == waiting > 0


def test_functions_of_the_user_are_not_kept(folder: Path) -> None:
    for factor, looks in ((lambda _: 2.0, False), (lambda x: 2.0 * x.numpy().size / X.size, True)):
        rule = wg.custom_rule(lambda x, factor=factor: x * factor(x))
        rule.defvjp(lambda x, rule=rule: (rule(x), None), lambda _, ct: (ct * 3.0,))
        graph = trace(lambda x, rule=rule: np.exp(rule(x)))(X)
        np.testing.assert_allclose(run(graph)[0], np.exp(2.0 * X), rtol=1e-13)
        assert (compilation_cache.Keeper(flatten_calls(graph)).load_segments() is None) == looks


def test_equal_kernels_are_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of graphs that differ in what NumPy computes, and of those that cannot be known again."""
    rule = wg.custom_rule(lambda x: np.partition(x, 0))
    rule.defvjp(lambda x: (rule(x), None), lambda _, ct: (ct * 3.0,))
    x = np.linspace(0.0, 1.0, 3000)
    functions = [lambda x, k=k: np.exp(np.sin(x)) * np.sum(np.partition(x, k)) for k in range(3)]
    functions.append(lambda x: np.exp(np.sin(x)) * np.sum(rule(x)))
    Compiled(trace(functions[0])(x))([x])
    monkeypatch.setattr("wengert.native.engine.emit_object", None)
    for function in functions[1:]:
        made = Compiled(trace(function)(x))
        assert made.is_native
        np.testing.assert_allclose(made([x])[0], np.asarray(function(x)), rtol=1e-13)


def test_names_of_users_do_not_tell_kernels_apart() -> None:
    """A user may declare something else by the same name in another process."""
    twice: dict[str, Any] = {"d": lambda t, _out, _x: t * 2}
    scaled = extend.elementwise("test_kept.scaled", lambda x: x * 2, scalar=lambda x: x * 2, **twice)
    first = extend.linear("test_kept.first", lambda x: x[:3], transpose=lambda ct, x: ct, form=extend.View())
    called = extend.elementwise("test_kept.called", lambda x: x * 2, **twice)
    loops = wg.jit(lambda x: wg.fori_loop(0, 3, lambda _, y: extend.apply(scaled, y), x))
    for declared in (scaled, first, called):
        del PRIMITIVES[declared.name]
    for function, kept in [(scaled, False), (first, False), (called, True)]:
        graph = trace(lambda x, function=function: np.exp(extend.apply(function, x)))(X)
        assert (compilation_cache.key_of(graph) is not None) is kept
    assert compilation_cache.key_of(jitted_graph(loops, X)) is None


def test_large_constants_are_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a key says of them: sums of pieces are those of their elements in another order."""
    table = np.linspace(1.0, 2.0, 8192).reshape(128, 64)
    other = table.copy()
    other[0, 1:3] = table[0, 2:0:-1]
    at = np.arange(8192)[::-1] % 12

    def graph_of(values: Any) -> Any:
        return flatten_calls(trace(lambda x: (np.exp(x[0]) * values, np.sin(x[at]), np.exp(x[1]) * values[:, 0]))(X))

    one, two, turned = graph_of(table), graph_of(other), graph_of(np.asfortranarray(table))
    keys = list(map(compilation_cache.key_of, (one, two, turned)))
    assert keys[0] == keys[1] != keys[2]
    expected = []
    for graph, values in ((one, table), (two, other)):
        assert compilation_cache.Keeper(graph).load_segments() is None
        expected.append(run(graph))
        np.testing.assert_allclose(expected[-1][0], np.exp(X[0]) * values, rtol=1e-13)
    assert compilation_cache.Keeper(one).load_segments() is None  # of two that differ only there, the last one is kept
    assert keys[0] is not None
    path = Path(object_cache().path_of(keys[0]) or "")
    whole = path.read_bytes()
    for content in (whole[:-1], whole + b"1", whole[:100], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], b""):
        path.write_bytes(content)
        assert compilation_cache.Keeper(two).load_segments() is None
    path.write_bytes(whole)
    monkeypatch.setattr(codegen, "compile_segments", None)  # nothing is compiled any more
    assert [x.tobytes() for x in run(graph_of(other))] == [x.tobytes() for x in expected[1]]


SECOND = """
import json, sys
import numpy as np, wengert as wg
from wengert.transforms.tracing import trace
def f(x, y):
    return np.sum(np.log(x) + x * y - np.sin(y))
x, y = np.random.default_rng(0).uniform(1, 2, (2, 200_000))
graph = trace(wg.value_and_grad(f, (0, 1)))(x, y)
from wengert.compile.executable import Compiled
results = Compiled(graph)([x, y])
wanted = "llvmlite", "wengert.lowering.rules.lower", "wengert.kernel.kernel", "wengert.native.builder"
loaded = [name for name in wanted if name in sys.modules]
print(json.dumps([[np.asarray(r).tobytes().hex()[:64] for r in results], float(results[0]), loaded]))
"""


def test_a_second_process_compiles_nothing_and_loads_no_llvm(tmp_path: Path) -> None:
    environment = os.environ | {"WENGERT_CACHE": str(tmp_path / "kept")}
    (first, value, loaded), (second, _, loaded_later) = [
        json.loads(
            subprocess.run([sys.executable, "-c", SECOND], env=environment, capture_output=True, check=True).stdout
        )
        for _ in range(2)
    ]
    assert first == second
    assert "llvmlite" in loaded
    assert loaded_later == []
    x, y = np.random.default_rng(0).uniform(1, 2, (2, 200_000))
    np.testing.assert_allclose(value, np.sum(np.log(x) + x * y - np.sin(y)), rtol=1e-13)


# -------------------------------------------------------------------------------------------------- faults


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return a file in which something is wrong."""
    made = bytearray(content)
    way = rng.randrange(4)
    if way == 0:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del made[rng.randrange(len(made)) :]
    elif way == 2:
        place = rng.randrange(len(made))
        made[place : place + 8] = rng.randbytes(9)
    else:
        made = bytearray(rng.randbytes(rng.randrange(200)))
    return bytes(made)


def test_damaged_entries_are_compiled_anew(folder: Path) -> None:
    function = FUNCTIONS["numpy between"]
    graph = flatten_calls(trace(function)(X))
    expected = run(graph)
    files = {path: path.read_bytes() for path in folder.iterdir()}
    rng = random.Random(0)
    key = compilation_cache.key_of(graph)
    assert key is not None
    path = object_cache().path_of(key)
    assert path is not None
    for _ in range(10_000 if OPTIONS.every else 100):
        Path(path).write_bytes(damaged(files[Path(path)], rng))
        assert compilation_cache.Keeper(graph).load_segments() is None
    for one, content in files.items():
        one.write_bytes(damaged(content, rng))
    assert [x.tobytes() for x in run(graph)] == [x.tobytes() for x in expected]
    assert compilation_cache.Keeper(graph).load_segments() is not None


def wrong_records(content: bytes) -> list[bytes]:
    """Return what cannot be the content of an entry."""
    data = marshal.loads(content)
    made: list[Any] = [None, 1, "text", (1, 2, 3), [(1,) * 7], (1,) * 4]
    if is_linked(content):
        code, inside, outside, functions = data
        made += [(code[:4], inside, ((0, "free"),), functions), (code, ((-1, 0),), outside, functions)]
        made += [(code, inside, ((0, 1),), functions), (code, inside, outside, (("run", len(code) + 1),))]
    else:
        (code, outside, *rest), _ = data
        made += [((code, outside), None), ((code[:-9], outside, *rest), None), (None, [([999],) * 7])]
        given = ((("rubbish", (1,)),), (("<f4", X.shape),), (("<f8", (2, *X.shape)),), (("<f8", X.shape),) * 2, ())
        made += [((code, outside, x, *rest[1:]), None) for x in given]
        made += [((code, outside, rest[0], x, *rest[2:]), None) for x in given]
    ends = range(0, len(content), len(content) // 20)
    return [content[:n] for n in ends] + [marshal.dumps(x) for x in made]


def is_linked(content: bytes) -> bool:
    """Tell whether an entry is code alone, not a graph."""
    return len(marshal.loads(content)) == 4


def test_records_that_nobody_wrote_are_passed_by_whatever_their_digest(folder: Path) -> None:
    graph = flatten_calls(trace(lambda x: np.exp(x) * 2.0)(X))
    expected = run(graph)
    keeper = compilation_cache.Keeper(graph)
    for path in folder.iterdir():
        content = cache.unseal(path.name, path.read_bytes())
        assert content is not None
        for wrong in wrong_records(content):
            if is_linked(content):
                assert cache.read_or_pass(wrong, loader.read_code) is None
            else:
                path.write_bytes(cache_writing.seal(path.name, wrong))
                assert keeper.load_segments() is None
    for path in folder.iterdir():
        path.write_bytes(cache_writing.seal(path.name, b""))
    assert [x.tobytes() for x in run(graph)] == [x.tobytes() for x in expected]
    assert keeper.load_segments() is not None


def test_where_nothing_can_be_kept_all_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(config, "CACHE", str(file / "below"))
    object_cache.cache_clear()
    try:
        with pytest.warns(UserWarning, match=r"^WENGERT_CACHE: .*below, not used because .* is no folder; a folder in"):
            run(trace(lambda x: np.exp(x) * 2.0)(X))
        np.testing.assert_allclose(run(trace(lambda x: np.exp(x) * 2.0)(X))[0], np.exp(X) * 2.0, rtol=1e-14)
    finally:
        object_cache.cache_clear()


def test_where_there_is_no_memory_for_code_numpy_computes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise UnavailableError("there is no memory for code")

    graph = trace(lambda x: np.exp(x) * 2.0)(X)
    run(graph)
    monkeypatch.setattr("wengert.native.loader.CodeMemory", full)
    np.testing.assert_array_equal(GraphFunction(graph)(X)[0], np.exp(X) * 2.0)


TOGETHER = """
import os, sys, threading
import numpy as np, wengert as wg
x = np.linspace(0.1, 1.0, 3000)

def check(k):
    f = lambda x: np.sum(np.exp(x * k) + np.sin(x))
    value, gradient = wg.jit(wg.value_and_grad(f))(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.exp(x * k) * k + np.cos(x), rtol=1e-12)

processes, graphs = int(sys.argv[1]), int(sys.argv[2])
check(0.5)                       # LLVM and the library are loaded, a program is in memory
using = threading.Event()
runs = [wg.jit(lambda x: np.exp(x) * 2.0)]
def use():
    k = 0.0
    while not using.is_set():
        k += 1.0
        runs.append(wg.jit(lambda x: np.exp(x) * 2.0 + k - k))
        for run in (runs[0], runs[-1]):
            np.testing.assert_allclose(run(x), np.exp(x) * 2.0, rtol=1e-12)
thread = threading.Thread(target=use)
thread.start()                   # it compiles and computes while processes are made
children = []
for number in range(processes):
    child = os.fork()
    if not child:
        try:
            np.testing.assert_allclose(runs[0](x), np.exp(x) * 2.0, rtol=1e-14)
            for k in range(graphs):
                check(1.0 + (k + number) % graphs)
        except BaseException as error:
            print(number, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
using.set()                      # so that the children have the processors
thread.join()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_forked_processes_compile_into_one_cache_while_a_thread_computes(tmp_path: Path) -> None:
    environment = os.environ | {"WENGERT_CACHE": str(tmp_path / "kept"), "WENGERT_NATIVE": "1"}
    processes, graphs = (8, 20) if OPTIONS.every else (3, 3)
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, str(processes), str(graphs)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,  # a process that hangs; on a busy machine, of which it once took 120, it needs 10 of its own
    )
    assert (done.returncode, done.stdout.strip()) == (0, str([0] * processes)), done.stdout + done.stderr
