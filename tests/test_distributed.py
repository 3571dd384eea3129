"""Sums over partitions and derivatives of them, in this process: data, bits, budgets and faults."""

import io
import itertools
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from scipy.optimize import minimize

import wengert as wg
from tests.cases import together
from wengert import distributed, random
from wengert.compile.programs import PROCESSOR
from wengert.distributed import partitions, total, value_and_grad
from wengert.distributed.blocks import ONE_CORE, BlockPlan
from wengert.distributed.passes import RowBudget, RowCache
from wengert.distributed.sums import SumTree
from wengert.errors import DtypeError, GraphError, NumericalError, RangeError, ShapeError, UsageError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(1000, 5)), (RNG.random(1000) < 0.5) * 1.0
W = RNG.normal(size=5)


def loss(w, x, y):
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


class Halves:
    """Read partitions of `X` and `Y` of unequal lengths, one of them empty."""

    bounds = (0, 300, 300, 310, 900, 1000)

    def __call__(self, i):
        return X[self.bounds[i] : self.bounds[i + 1]].copy(), Y[self.bounds[i] : self.bounds[i + 1]].copy()


def saved(folder):
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    return tuple(np.load(folder / f"{name}.npy", mmap_mode="r") for name in "xy")


SOURCES = {
    "arrays": lambda folder: partitions((X, Y), count=7),
    "one array": lambda folder: partitions((X, Y)),
    "maps of files": lambda folder: partitions(saved(folder), count=7),
    "parts of maps": lambda folder: partitions(tuple(x[10:] for x in saved(folder)), count=3),
    "a function": lambda folder: partitions((5, Halves())),
    "a list": lambda folder: partitions([Halves()(i) for i in (0, 2, 3, 4)]),
    "finer maps of files": lambda folder: partitions(saved(folder), count=2).split(5),
    "finer": lambda folder: partitions((5, Halves())).split(3),
    "Fortran order": lambda folder: partitions((np.asfortranarray(X), Y[::1]), count=4),
    "negative strides": lambda folder: partitions((X[::-1], Y[::-1]), count=4),
}


@together("name", SOURCES)
def test_every_source_has_all_rows_in_order(name, tmp_path):
    data = SOURCES[name](tmp_path)
    parts = [data.read(i) for i in range(data.count)]
    found = [np.concatenate(column) for column in zip(*parts, strict=True)]
    expected = {"parts of maps": (X[10:], Y[10:]), "negative strides": (X[::-1], Y[::-1])}.get(name, (X, Y))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert data.rows == len(expected[0])
    batches = list(data.batches(64))
    np.testing.assert_array_equal(np.concatenate([y for _, y in batches]), expected[1])
    assert len(batches) == len(data.batches(64)) == -(-data.rows // 64)
    value, gradient = value_and_grad(loss, data)(W)
    one, other = wg.value_and_grad(loss)(W, *expected)
    assert value == pytest.approx(one, rel=1e-12)
    np.testing.assert_allclose(gradient, other, rtol=1e-10)


def test_what_is_no_data_is_refused():
    for data, error, text in (
        ((X, Y[:10]), ShapeError, "arrays of shapes .1000, 5., .10,. in the data"),
        (np.array(["a", "b"]), DtypeError, "an array of dtype <U1 in the data"),
        (np.array([1, None]), DtypeError, "an array of objects in the data"),
        ([(X, Y), (X, Y[1:])], ShapeError, "in item 1 of the list"),
        ([], UsageError, "an empty list"),
        ((0, Halves()), UsageError, "0 for the number of partitions"),
        ((3, 4), DtypeError, "4 as the function"),
        (np.zeros((0, 3)), UsageError, "arrays without rows"),
        (3.0, DtypeError, "3.0 in the data"),
        (["x.npy"], DtypeError, "'x.npy' in item 0 of the list; .* Pass .count, read., where read.i. returns"),
        ({"x": X}, DtypeError, "type dict in the data; .* Pass its arrays as a tuple"),
        ((np.load, 8), DtypeError, "in the data; .* Pass .count, read., in this order"),
    ):
        with pytest.raises(error, match=text):
            partitions(data)
    with pytest.raises(ShapeError, match=r"shapes \(1,\), \(2,\) in partition 0 of 1 \(.*<lambda>\(0\)\)"):
        partitions((1, lambda i: (np.ones(1), np.ones(2)))).read(0)
    with pytest.raises(UsageError, match="0 for count"):
        partitions(X, count=0)


def test_files_that_are_too_short_are_told(tmp_path):
    data = partitions(saved(tmp_path), count=2).split(2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data)).read(2)[1], Y[500:750])
    os.truncate(tmp_path / "y.npy", 128 + 8 * 700)
    with pytest.raises(EOFError, match=r"y\.npy: 400 bytes are missing at its end"):
        data.read(2)


def test_rows_of_files_lie_where_those_did_that_nobody_has_any_more(tmp_path):
    data = partitions(saved(tmp_path), count=4)
    spare = data.source.arrays[0].spare
    rows = data.read(0)
    view = rows[0][:, 1]
    del rows
    other = data.read(1)
    np.testing.assert_array_equal(view, X[:250, 1])
    assert len(spare) == 2
    place = view.ctypes.data - 8
    del view
    assert data.read(2)[0].ctypes.data == place
    assert data.read(3)[0].ctypes.data == place
    assert len(spare) == 2
    np.testing.assert_array_equal(other[0], X[250:500])


# Bits


def test_a_sum_is_that_of_one_tree_in_whichever_order_it_is_taken():
    leaves = RNG.normal(size=(13, 3)) * 10.0 ** RNG.integers(-9, 9, (13, 1))
    roots = set()
    for _ in range(20):
        tree, parts = SumTree(13), [SumTree(13) for _ in range(3)]
        for i in RNG.permutation(13):
            parts[RNG.integers(3)].add(0, int(i), [leaves[i]])
        for part in parts:
            for place, found in part.nodes.items():
                tree.add(*place, found)
        roots.add(tree.root[0].tobytes())
    assert len(roots) == 1
    np.testing.assert_allclose(np.frombuffer(roots.pop()), leaves.sum(0))


@together("compiled", [True, False])
def test_any_number_of_threads_has_the_same_bits(compiled, monkeypatch):
    found = []
    for threads in (1, 2, 12):
        monkeypatch.setattr("wengert.distributed.here.SHARING.threads", threads)
        monkeypatch.setattr("wengert.distributed.here.WORTHWHILE", -1.0)
        run = value_and_grad(loss, partitions((9, lambda i: (X[i::9], Y[i::9]))), jit=compiled)
        value, gradient = run(W)
        again = run(W)
        assert value == again[0]
        if compiled:  # kernels share processors where there are more of them than partitions
            assert run.run.runner.jitted.processor is (PROCESSOR if threads > 9 else ONE_CORE)
        found.append((value, gradient.tobytes()))
    assert len(set(found)) == 1


def iterates(fun):
    """Return the bits of all points that SciPy's L-BFGS passes."""
    found = []
    minimize(fun, np.zeros(5), jac=True, method="L-BFGS-B", callback=lambda x: found.append(x.tobytes()))
    return found


def test_an_optimiser_of_scipy_has_the_same_iterates_wherever_rows_are(tmp_path):
    direct = wg.jit(wg.value_and_grad(loss), native=True)
    expected = iterates(lambda w: direct(w, X, Y))
    assert len(expected) > 3
    run = value_and_grad(loss, partitions((X, Y), count=1))
    assert iterates(run) == expected
    assert run.rows == 1000
    parts = np.array_split(X, 4), np.array_split(Y, 4)
    sources = (X, Y), saved(tmp_path), (4, lambda i: (parts[0][i], parts[1][i])), list(zip(*parts, strict=True))
    found = [iterates(value_and_grad(loss, partitions(source, count=4))) for source in sources]
    assert len(found[0]) > 3
    assert found == [found[0]] * 4


def test_blocks_depend_on_the_number_of_rows_alone():
    plan = BlockPlan((1000, 40), 1 << 62)
    for rows in (0, 1, 40, 255, 999, 1000, 12345, 500_000):
        assert sum(plan.cut(rows)) == rows
    assert plan.cut(1000) == [1000]
    assert plan.cut(40) == [40]
    assert len({size for rows in range(0, 100_000, 7) for size in plan.cut(rows) if size >= 256}) <= 11
    assert max(BlockPlan((), 100).cut(1234)) == 100


def test_a_budget_cuts_partitions_until_a_block_fits():
    def deep(w, x, y):
        for _ in range(10):
            x = np.tanh(x * w)
        return np.sum(x) + 0.0 * np.sum(y)

    sizes = []
    run = value_and_grad(deep, (X, Y), memory="200kB")
    value, gradient = run(W)
    plan = run.run.runner.plan
    sizes = plan.cut(1000)
    assert max(sizes) * 5 * 8 * 10 < 200_000 / 4
    assert max(sizes) > 10
    one, other = wg.value_and_grad(deep)(W, X, Y)
    assert value == pytest.approx(one)
    np.testing.assert_allclose(gradient, other, rtol=1e-10)


def test_what_a_process_keeps_of_rows_has_one_limit():
    data, room = partitions((4, lambda i: X[i::4].copy())), RowBudget(25_000)
    one, other = RowCache(data, room), RowCache(data, room)
    for number in range(4):
        np.testing.assert_array_equal(one(number)[0], other(number)[0])
    assert [list(cache.known) for cache in (one, other)] == [[0], [0]]
    del one
    assert [len(other(number)[0]) for number in range(4)] == [250] * 4
    assert (list(other.known), room.free) == ([0, 1], 5_000)


# Derivatives


def test_derivatives_are_sums_over_rows():
    data = partitions((X, Y), count=5)

    def residuals(p, x, y):
        return {"r": np.tanh(x @ p["w"]) - y, "s": 0.1 * x[:, :1] * p["b"]}

    parameters, vector = {"w": W, "b": 2.0}, {"w": W[::-1].copy(), "b": 0.5}
    flat, back = wg.tree.ravel(parameters)

    def stacked(v):
        found = residuals(back(v), X, Y)
        return np.concatenate([found["r"], found["s"].ravel()])

    r, j = stacked(flat), wg.jacobian(stacked)(flat)
    equations = distributed.normal_equations(residuals, data)
    assert repr(equations).startswith("<distributed.normal_equations of residuals over ")
    matrix, right = equations(parameters)
    np.testing.assert_allclose(matrix, j.T @ j, rtol=1e-10)
    np.testing.assert_allclose(right, j.T @ r, rtol=1e-10)
    product = distributed.gauss_newton_product(residuals, data)(parameters, vector)
    np.testing.assert_allclose(wg.tree.ravel(product)[0], j.T @ (j @ wg.tree.ravel(vector)[0]), rtol=1e-10)

    def squares(p, x, y):
        return sum(np.sum(part**2) for part in residuals(p, x, y).values())

    expected = wg.hvp(lambda p: squares(p, X, Y), (parameters,), (vector,))[0]
    product = distributed.hvp(squares, data)(parameters, vector)
    assert product["b"] == pytest.approx(expected["b"])
    np.testing.assert_allclose(product["w"], expected["w"], rtol=1e-10)
    gradient = distributed.grad(squares, data, reduce="mean")(parameters)
    expected = wg.grad(squares)(parameters, X, Y)
    assert gradient["b"] == pytest.approx(expected["b"] / 1000)
    both = value_and_grad(lambda a, b, x, y: np.sum((x @ a * b - y) ** 2), data, argnums=(1, 0))(W, 2.0)[1]
    expected = wg.grad(lambda a, b: np.sum((X @ a * b - Y) ** 2), (1, 0))(W, 2.0)
    assert both[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(both[1], expected[1], rtol=1e-10)


def test_totals_are_of_any_containers():
    run = total(lambda shift, x: {"n": len(x), "big": np.sum(x > shift, axis=0), "sum": (x - shift).sum(0)}, X)
    found = run(0.5)
    assert found["n"] == 1000
    assert found["big"].dtype == np.int64
    np.testing.assert_array_equal(found["big"], np.sum(X > 0.5, axis=0))
    np.testing.assert_allclose(found["sum"], (X - 0.5).sum(0))
    count = total(lambda x: np.any(x > 1e9), X, jit=False)
    assert count() == 0
    w = wg.tensor(W)
    value, gradient = value_and_grad(loss, (X, Y))(w)
    assert type(value) is type(gradient) is wg.Tensor


def test_what_is_no_sum_over_rows_is_refused():
    for function, error, text in (
        (lambda w, x, y: np.mean(x @ w), UsageError, "Write np.sum for np.mean"),
        (lambda w, x, y: loss(w, x, y) + 0.1 * w @ w, UsageError, "add regularisers outside"),
        (lambda w, x, y: x @ w, ShapeError, r"a function that returned shape \(64,\)"),
        (lambda w, x, y: "text", DtypeError, "value_and_grad"),
    ):
        with pytest.raises(error, match=text) as told:
            value_and_grad(function, (X, Y), reduce="mean")(W)
        assert "in partition 0 of 1 (rows 0 to 1000)" in told.value.__notes__
    with pytest.raises(UsageError, match="add regularisers outside"):  # which are 0 there
        value_and_grad(lambda w, x, y: loss(w, x, y) + 0.1 * w @ w, (X, Y))(np.zeros(5))
    with pytest.raises(ShapeError, match=r"shapes \(\d+, 5\) for one block of rows and \(\d+, 5\) for another"):
        total(lambda x, y: x, partitions((5, Halves())), jit=False)()
    with pytest.raises(DtypeError, match="a function that returned a value of type object as part of its result"):
        total(lambda x: object(), X, jit=False)()
    with pytest.raises(UsageError, match="reduce='max'; 'sum' or 'mean' is needed"):
        value_and_grad(loss, (X, Y), reduce="max")
    with pytest.raises(
        TypeError, match=r"^grad\(\) got an unexpected keyword argument 'jut'; .* argnums, client, jit, "
    ):
        distributed.grad(loss, (X, Y), jut=False)
    with pytest.raises(DtypeError, match=r"scale= in a call of .*; arguments by position are needed"):
        value_and_grad(loss, (X, Y))(W, scale=3.0)
    with pytest.raises(GraphError, match="an argument that is being differentiated"):
        wg.grad(lambda w: value_and_grad(loss, (X, Y))(w)[0])(W)
    with pytest.raises(GraphError, match="an argument that is being differentiated, batched or traced") as told:
        wg.optim.train(lambda w, x: w - value_and_grad(loss, (X, Y))(w)[1], W, [X])
    assert "optim.train traces its functions; with jit=False they are called as they are." in told.value.__notes__


def test_functions_that_are_sent_by_value_have_their_source():
    cloudpickle = pytest.importorskip("cloudpickle", reason="the extra `dask` is not installed")

    def branching(w, x):
        return np.sum(x @ w) if x[0, 0] > 1e9 else -np.sum(x @ w)

    branching.__module__ = "__main__"
    summand = distributed.grad(branching, X).summand
    sent = cloudpickle.loads(cloudpickle.dumps(summand))
    assert sent[0] == summand[0]
    np.testing.assert_allclose(wg.jit(sent.fun)(W, X), -X.sum(0))


# Faults


@pytest.fixture
def quiet():
    with np.errstate(invalid="ignore"):
        yield


def bad_rows():
    x = X.copy()
    x[[17, 650]] = np.nan
    return partitions((x, Y), count=4)


@pytest.mark.usefixtures("quiet")
def test_rows_that_give_nan_are_named_or_left_out():
    with pytest.raises(NumericalError, match=r"NaN from row 17 of partition 0 of 4 \(rows 0 to 250\); .* nan='skip'"):
        value_and_grad(loss, bad_rows())(W)
    assert np.isnan(value_and_grad(loss, bad_rows(), nan="keep")(W)[0])
    run = value_and_grad(loss, bad_rows(), nan="skip", reduce="mean")
    value, gradient = run(W)
    good = np.ones(1000, bool)
    good[[17, 650]] = False
    one, other = wg.value_and_grad(loss)(W, X[good], Y[good])
    assert value == pytest.approx(one / 998)
    np.testing.assert_allclose(gradient, other / 998, rtol=1e-10)
    assert (run.rows, run.skipped) == (998, 2)
    assert np.isnan(value_and_grad(loss, (X, Y))(np.full(5, np.nan))[0])  # no row is at fault


@together("threads", [1, 2])
def test_errors_name_the_partition(threads, monkeypatch):
    monkeypatch.setattr("wengert.distributed.here.SHARING.threads", threads)

    def read(i):
        if i == 3:
            raise OSError("the disk is gone")
        return X[:10], Y[:10]

    data = partitions((5, read), names="file_{}.npy".format)
    with pytest.raises(OSError, match="the disk is gone") as told:
        value_and_grad(loss, data)(W)
    assert "in partition 3 of 5 (file_3.npy)" in told.value.__notes__

    def picky(w, x, y):
        if x[0, 0] > 1.0:
            raise ValueError("row 0 is odd")
        return loss(w, x, y)

    first = int(np.argmax(X[:, 0] > 1.0)) // 10
    run = value_and_grad(picky, partitions((X, Y), count=100), jit=False)
    with pytest.raises(ValueError, match="row 0 is odd") as told:
        run(W)
    assert any(note.startswith("in partition ") for note in told.value.__notes__), first


def test_an_interrupt_ends_a_pass_and_the_next_one_is_right(monkeypatch):
    monkeypatch.setattr("wengert.distributed.here.SHARING.threads", 2)
    begun = threading.Event()

    def slow(w, x, y):
        begun.set()
        threading.Event().wait(0.05)
        return loss(w, x, y)

    run = value_and_grad(slow, partitions((X, Y), count=40), jit=False)

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(W)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert value_and_grad(loss, partitions((X, Y), count=40))(W)[0] == pytest.approx(loss(W, X, Y))


# Minibatches


def test_batches_are_a_function_of_key_and_epoch():
    data, numbers = partitions((10, lambda i: np.arange(7 * i, 7 * i + 7))), np.arange(70)
    key = random.key(3)

    def order(**options):
        return [x.tolist() for (x,) in data.batches(16, shuffle=key, **options)]

    first = order()
    assert first == order(budget="1GB") == order()
    assert sorted(itertools.chain(*first)) == numbers.tolist()
    assert order(epoch=1) != first
    assert order(start=2) == first[2:]
    assert order(drop_last=True) == first[:-1]
    assert order(window=10) != first
    assert sorted(itertools.chain(*order(window=3))) == numbers.tolist()
    known = partitions(numbers, count=10)
    assert [x.tolist() for (x,) in known.batches(16, start=3)] == [numbers[48:64].tolist(), numbers[64:].tolist()]
    assert len(known.batches(16, start=3)) == 2
    for _ in known.batches(1):
        break  # and the thread that reads ahead ends
    with pytest.raises(UsageError, match="0 for size"):
        data.batches(0)


def test_batches_keep_memory_of_their_own():
    for (x,) in partitions(np.zeros(10), count=2).batches(4, shuffle=random.key(0)):
        x += 1.0


@pytest.mark.parametrize("jit", [True, False])
def test_what_functions_capture_is_read_anew(jit):
    factor, weights, rows = 1.0, np.ones(5), partitions(X, count=2)

    def scaled(w, x):
        return factor * np.sum((x * weights) @ w)

    both = value_and_grad(scaled, rows, jit=jit)
    for factor in (1.0, 2.0):
        for weights[0] in (1.0, 3.0):
            value, slope = both(W)
            np.testing.assert_allclose(slope, factor * weights * X.sum(0))
            np.testing.assert_allclose(value, slope @ W)
    with pytest.raises(GraphError, match=r"distributed.total: a function that captures a Tensor of shape \(\) that is"):
        wg.grad(lambda rate: total(lambda w, x: rate * np.sum(x @ w), rows, jit=jit)(W))(2.0)


def test_budgets_are_refused_by_name():
    with pytest.raises(RangeError, match=r"distributed.value_and_grad: memory='lots'; a positive number of bytes"):
        value_and_grad(loss, (X, Y), memory="lots")
    with pytest.raises(RangeError, match=r"distributed.batches: budget=0; a positive number of bytes"):
        partitions(X).batches(4, budget=0)


def test_batches_are_no_part_of_the_data():
    x = np.zeros(10)
    for (batch,) in partitions(x, count=2).batches(4):
        batch += 1.0
    assert not x.any()


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("rows", [6, 600])
def test_losses_that_write_to_rows_leave_the_data_as_it_is(rows, jit):
    x, y, w = np.linspace(-1.0, 1.0, 2 * rows).reshape(rows, 2), np.ones(rows), np.array([0.5, 2.0])

    def residuals(w, x, y):
        x *= 2.0
        return x @ w - y

    def loss(w, x, y):
        return np.sum(residuals(w, x, y) ** 2)

    before, wide = x.copy(), 2.0 * x
    data, r = partitions((x, y), count=2), wide @ w - y
    gradient = distributed.grad(loss, data, jit=jit)
    for _ in range(2):
        np.testing.assert_allclose(gradient(w), 2.0 * wide.T @ r)
    np.testing.assert_allclose(distributed.hvp(loss, data, jit=jit)(w, w), 2.0 * wide.T @ wide @ w)
    np.testing.assert_allclose(distributed.gauss_newton_product(residuals, data, jit=jit)(w, w), wide.T @ wide @ w)
    np.testing.assert_allclose(distributed.normal_equations(residuals, data, jit=jit)(w)[1], wide.T @ r)
    np.testing.assert_array_equal(x, before)
    x.flags.writeable = False
    np.testing.assert_allclose(distributed.grad(loss, partitions((x, y), count=2), jit=jit)(w), 2.0 * wide.T @ r)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_passes_tell_how_far_they_are_and_what_they_took(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("wengert.distributed.profiles.SILENT", 0.0)
    monkeypatch.setattr("wengert.distributed.profiles.REFRESH", 0.0)
    run = value_and_grad(loss, partitions((X, Y), count=4), jit=False)
    run(W)
    lines = sys.stderr.getvalue().split("\r\x1b[K")
    assert [line.rpartition(",")[0] for line in lines[1:-1]] == [
        f"distributed.value_and_grad: {i} of 4 partitions" for i in range(1, 5)
    ]
    assert lines[-1] == ""
    monkeypatch.setattr("wengert.distributed.profiles.SILENT", 60.0)

    def read(i):
        time.sleep(0.02)
        return X[i::2], Y[i::2]

    told = value_and_grad(loss, partitions((2, read)), jit=False, memory="1kB")
    told(W)
    told(W)
    seconds, workers = told.profile
    assert sum(worker.reading for worker in workers) > 0.03
    for _, *times in workers:
        assert all(x >= 0.0 for x in times)
        assert sum(times) == pytest.approx(seconds)
    assert repr(told.profile).split("\n")[0].endswith("reading  computing  waiting")
    assert sys.stderr.getvalue().count("\r") == len(lines) - 1
