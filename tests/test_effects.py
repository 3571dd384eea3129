"""What a traced function changes besides its results is carried, or refused with its line; nothing is dropped."""

import contextlib
import re
import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError
from wengert.scipy import integrate, optimize

X = np.array([1.0, 2.0])
COUNT = 0
LOG = np.zeros(3)


class Model:
    def __init__(self):
        self.calls = 0
        self.buffer = np.zeros(2)
        self.state = wg.tensor([1.0, 2.0])

    def with_tensor(self, x):
        self.state[0] = self.state[0] + x[0]
        return self.state * 1.0

    def with_constant(self, x):
        self.state[0] += 1.0
        return self.state * x

    def with_ndarray(self, x):
        self.buffer[0] += 1.0
        return self.buffer * x


TRACED = {
    "jit": lambda f: wg.jit(f)(X),
    "jit(grad)": lambda f: wg.jit(wg.grad(lambda x: np.sum(f(x))))(X),
    "grad(jit)": lambda f: wg.grad(lambda x: np.sum(wg.jit(f)(x)))(X),
    "jit(vmap)": lambda f: wg.jit(wg.vmap(f))(np.stack([X, X])),
    "jit(jit)": lambda f: wg.jit(wg.jit(f))(X),
    "trace": lambda f: wg.graph.trace(f)(X),
}


@together("mode", TRACED)
@together("name", ["with_tensor", "with_constant", "with_ndarray"])
def test_writes_to_what_a_traced_function_captures_are_refused_and_put_back(mode, name):
    model = Model()
    what = "the ndarray " if name == "with_ndarray" else r"a Tensor of shape \(2,\)"
    with pytest.raises(GraphError, match=f"a function that writes to {what}.* from outside") as info:
        TRACED[mode](getattr(model, name))
    assert __file__ in str(info.value)
    assert model.state.tolist() == [1.0, 2.0]
    assert model.buffer.tolist() == [0.0, 0.0]


def test_of_several_tensors_that_are_written_to_the_one_whose_line_is_known_is_named():
    steps, mean = wg.tensor(0.0), wg.tensor([1.0, 2.0])

    def f(x):
        steps.add_(1.0)
        mean[...] = x
        return x * 2.0

    line = r"\n  File \"[^\n]*, in [^\n]*f: mean\[\.\.\.\] = x$"
    with pytest.raises(GraphError, match=r"(?s)writes to a Tensor of shape \(2,\) from outside.*" + line):
        wg.jit(f)(X)
    assert (steps.item(), mean.tolist()) == (0.0, [1.0, 2.0])


BIG = {
    "contiguous": lambda: np.zeros(5000),
    "large": lambda: np.zeros(70000),
    "of Fortran": lambda: np.zeros((300, 300), order="F"),
    "strided": lambda: np.zeros(140000)[::2],
    "of dates": lambda: np.zeros(70000, "M8[s]"),
    "of objects": lambda: np.zeros(70000, object),
}


@pytest.mark.parametrize("kind", BIG)
def test_writes_to_large_arrays_are_refused(kind):
    big = BIG[kind]()

    def f(x):
        big[0] = 1
        return x * 2.0

    for run in (
        lambda: wg.jit(f)(X),
        lambda: wg.jit(lambda x: wg.scan(lambda c, y: (f(c), y), x, X)[0])(X),
        lambda: wg.jit(lambda x: wg.while_loop(lambda c: c[0] < 5, f, x))(X),
        lambda: wg.jit(lambda x: wg.cond(x[0] > 0, f, lambda x: x, x))(X),
    ):
        big[0] = 0
        with pytest.raises(GraphError, match=r"a function that writes to the ndarray big from outside") as info:
            run()
        assert __file__ in str(info.value)


@together("size", [3, 5000, 70000])
@together("use", [lambda a: a, lambda a: a[1:], wg.asarray, lambda a: np.broadcast_to(a, (2, a.size))])
def test_captured_arrays_are_constants_whatever_is_written_to_them_later(use, size):
    array = np.ones(size)

    @wg.jit
    def branch(x):
        y = use(array) - x
        if x > 0:
            y = x * use(array)
        return y[..., -1]

    plain = wg.jit(lambda x: x * use(array)[..., -1])
    before = branch(X[1]).tolist(), plain(X[1]).tolist()
    array[:] = 3.0
    assert (branch(X[1]).tolist(), plain(X[1]).tolist()) == before


def test_the_line_of_the_write_is_named_where_it_is_recorded():
    kept = wg.tensor([1.0, 2.0])

    def f(x):
        kept[0] = x[0]
        return x

    with pytest.raises(GraphError, match=re.escape("kept[0] = x[0]")):
        wg.jit(f)(X)


def test_a_captured_array_is_as_it_was_when_a_second_try_is_needed():
    kept = wg.tensor([1.0, 2.0])

    def f(x):
        kept[0] = kept[0] + x[0]
        return x if x[0] > 0 else -x

    with pytest.raises(GraphError, match="writes to a Tensor"):
        wg.jit(f)(X)
    assert kept.tolist() == [1.0, 2.0]


def test_what_a_traced_function_makes_itself_it_may_write_to():
    def f(x):
        rows = [np.zeros(2, like=x), wg.numpy.zeros(2)]
        table = np.zeros(2)
        table[0] = 5.0
        for row in rows:
            row[0] = x[0]
        return rows[0] + rows[1] + table

    assert wg.jit(f)(X).tolist() == [7.0, 0.0]


def test_reading_a_captured_array_is_no_write():
    array, tensor = np.ones(2), wg.asarray(np.ones(2))
    leaf = wg.tensor([1.0, 1.0], requires_grad=True)
    f = wg.jit(lambda x: x * array + tensor * x + tensor[1:] + leaf)
    assert f(X).tolist() == [4.0, 6.0]


# Counters


def with_nonlocal():
    n = 0

    def count():
        nonlocal n
        n += 1

    return count, lambda: n


def with_list():
    items = [0]

    def count():
        items[0] += 1

    return count, lambda: items[0]


def with_append():
    items = []
    return lambda: items.append(1), lambda: len(items)


def with_dictionary():
    table = {}

    def count():
        table["n"] = table.get("n", 0) + 1

    return count, lambda: table["n"]


def with_attribute():
    model = Model()

    def count():
        model.calls += 1

    return count, lambda: model.calls


def with_global():
    def count():
        global COUNT
        COUNT += 1

    return count, lambda: COUNT


def with_array():
    def count():
        LOG[0] += 1

    return count, lambda: LOG[0]


def with_inner_transformation():
    count, seen = with_list()
    square = wg.grad(lambda v: (count(), v * v)[1])
    return lambda: square(1.0), seen


COUNTERS = [
    with_nonlocal,
    with_list,
    with_append,
    with_dictionary,
    with_attribute,
    with_global,
    with_array,
    with_inner_transformation,
]
CONTROL = {
    "while_loop": lambda count, x: wg.while_loop(lambda c: c < 50.0, lambda c: (count(), c * 2.0)[1], x),
    "while_loop, condition": lambda count, x: wg.while_loop(lambda c: (count(), c < 50.0)[1], lambda c: c * 2.0, x),
    "fori_loop": lambda count, x: wg.fori_loop(0, 3, lambda _, c: (count(), c * 2.0)[1], x),
    "scan": lambda count, x: wg.scan(lambda c, r: ((count(), c + r)[1], c), x, np.arange(3.0))[0],
    "cond": lambda count, x: wg.cond(x > 5, lambda c: (count(), c)[1], lambda c: -c, x),
    "switch": lambda count, x: wg.switch(x.astype(int), [lambda c: (count(), c)[1], lambda c: -c], x),
    "call": lambda count, x: wg.call(lambda c: (count(), c)[1], x),
}


@together("control", CONTROL)
@together("counter", COUNTERS)
def test_counters_of_functions_that_are_traced_once_are_refused(counter, control):
    count, seen = counter()
    before = seen() if counter not in (with_dictionary,) else None
    with pytest.raises(GraphError, match=r"a function that (changes|writes to) .*\n.*test_effects.py") as info:
        wg.jit(lambda x: CONTROL[control](count, x))(1.0)
    assert info.value.args[0].startswith(control.split(",")[0])
    assert counter is with_dictionary or seen() == before


def test_counters_count_where_every_run_is_pythons():
    count, seen = with_nonlocal()
    assert wg.while_loop(lambda c: c < 50.0, lambda c: (count(), c * 2.0)[1], 1.0) == 64.0
    assert seen() == 6


# Calls


def doubled_and_written(a):
    a[0] = 7.0
    return a * 2.0


def called_on_an_array(x):
    a = x * 1.0
    b = wg.call(doubled_and_written, a)
    return a + b


def called_on_a_view(x):
    a = x * 1.0
    wg.call(doubled_and_written, a[1:])
    return a


@pytest.mark.parametrize("function", [called_on_an_array, called_on_a_view])
def test_writes_of_a_call_reach_its_arguments(function):
    want = function(wg.tensor(X)).tolist()
    gradient = wg.grad(lambda x: np.sum(function(x)))(X).tolist()
    assert wg.jit(function)(X).tolist() == want
    assert wg.jit(wg.grad(lambda x: np.sum(function(x))))(X).tolist() == gradient
    assert wg.grad(wg.jit(lambda x: np.sum(function(x))))(X).tolist() == gradient
    assert wg.jit(wg.vmap(function))(np.stack([X, X])).tolist() == [want, want]


def test_writes_of_a_call_to_one_of_two_that_share_memory_are_refused():
    def f(x):
        a = x * 1.0
        return wg.call(lambda one, other: (doubled_and_written(one), other * 1.0)[1], a, a[:1])

    def g(x):
        a = x * 1.0
        return wg.call(lambda one: (doubled_and_written(one), a * 1.0)[1], a)

    for program in (f, g):
        with pytest.raises(GraphError, match=r"call: .* writes to an argument that shares memory"):
            wg.jit(program)(X)


class Writing(wg.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        a[0] = 7.0
        return a * 2.0

    @staticmethod
    def backward(ctx, ct):
        return ct


def with_rule(a):
    rule = wg.custom_rule(doubled_and_written)
    rule.defvjp(lambda a: (a * 2.0, None), lambda _, ct: (ct,))
    return rule(a)


@pytest.mark.parametrize("function", [Writing.apply, with_rule])
def test_functions_with_derivatives_of_their_own_must_not_write_to_arguments(function):
    def program(x):
        a = x * 1.0
        return np.sum(a + function(a))

    modes = [
        lambda f: f(wg.tensor(X)),
        lambda f: wg.grad(f)(X),
        lambda f: wg.jit(f)(X),
        lambda f: wg.jvp(f, (X,), (X,)),
    ]
    for mode in modes:
        with pytest.raises(GraphError, match=r"a write to an argument, of shape \(2,\)"):
            mode(program)


# Arguments that share memory


def first_written(a, b):
    a[0] = 7.0
    return np.sum(b * 1.0)


def second_written(a, b):
    b *= 3.0
    return np.sum(a * 1.0)


PAIRS = {
    "one array": lambda q: (q, q),
    "a view": lambda q: (q, q[:]),
    "overlapping views": lambda q: (q[:2], q[1:]),
    "one Tensor": lambda q: (wg.asarray(q),) * 2,
    "views of a Tensor": lambda q: (lambda t: (t[:2], t[::-1][:2]))(wg.tensor(q)),
}
BOTH = {
    "jit": lambda f, a, b: wg.jit(f)(a, b),
    "grad": lambda f, a, b: wg.value_and_grad(f, (0, 1))(a, b),
    "jvp": lambda f, a, b: wg.jvp(f, (a, b), (np.ones(a.shape), np.ones(b.shape))),
    "taylor": lambda f, a, b: wg.taylor(f, (a, b), (np.ones(a.shape), np.ones(b.shape)), 2),
    "vmap": lambda f, a, b: wg.vmap(f, (None, 0))(a, np.broadcast_to(b, (2, *b.shape))),
    "jit(grad)": lambda f, a, b: wg.jit(wg.grad(f))(a, b),
    "in a list": lambda f, a, b: wg.jit(lambda both: f(*both))([a, b]),
}


@together("pair", PAIRS)
@together("mode", [mode for mode in BOTH if mode != "vmap"])
@together("function", [first_written, second_written])
def test_writes_to_one_of_two_arguments_that_share_memory_are_refused(function, mode, pair):
    a, b = PAIRS[pair](np.array([1.0, 2.0, 3.0]))
    with pytest.raises(
        GraphError, match=r"arguments 0 and 1 .* that share memory, of which the function writes to one"
    ):
        BOTH[mode](function, a, b)


@dataclass
class Store:
    """A container that can be changed."""

    items: list


TWINS = {
    "list": (lambda: [2.0, 3.0], lambda c: c.__setitem__(0, c[0] * 5.0), lambda c: c[0] * c[1]),
    "appended": (lambda: [2.0, 3.0], lambda c: c.append(c[0] * 5.0), lambda c: c[-1] * c[1]),
    "dictionary": (lambda: {"a": 2.0}, lambda c: c.update(a=c["a"] * 5.0), lambda c: c["a"] * 2.0),
    "deeper": (lambda: [[2.0]], lambda c: c[0].__setitem__(0, c[0][0] * 5.0), lambda c: c[0][0] * 2.0),
    "attribute": (lambda: Store([2.0]), lambda c: setattr(c, "items", [c.items[0] * 5.0]), lambda c: c.items[0] * 2.0),
}
GIVEN_TWICE = {
    "jit": lambda f, a, b: wg.jit(f)(a, b),
    "later": lambda f, a, b: [g(*c) for g in [wg.jit(f)] for c in [(deepcopy(a), deepcopy(b)), (a, b)]][-1],
    "by name": lambda f, a, b: wg.jit(lambda *, x, y: f(x, y))(x=a, y=b),
    "grad": lambda f, a, b: wg.value_and_grad(f)(a, b)[0],
    "jvp": lambda f, a, b: wg.jvp(f, (a, b), (a, b))[0],
    "linearize": lambda f, a, b: wg.linearize(f, a, b)[0],
    "taylor": lambda f, a, b: wg.taylor(f, (a, b), (a, b), 2)[0],
    "jit(grad)": lambda f, a, b: wg.jit(wg.value_and_grad(f))(a, b)[0],
    "grad(jit)": lambda f, a, b: wg.value_and_grad(wg.jit(f))(a, b)[0],
    "jvp(jit(vmap))": lambda f, a, b: wg.jvp(wg.jit(wg.vmap(f, (None, None, 0))), (a, b, X), (a, b, X))[0][0],
    "cond": lambda f, a, b: wg.cond(True, f, f, a, b),
    "jit(cond)": lambda f, a, b: wg.jit(lambda c, x, y: wg.cond(c > 0, f, f, x, y))(1.0, a, b),
    "in a list": lambda f, a, b: wg.jit(lambda both: f(*both))([a, b]),
    "jacfwd": lambda f, a, b: [wg.jacfwd(f)(a, b), f(deepcopy(a), deepcopy(b))][-1],
    "hessian": lambda f, a, b: [wg.hessian(f, (0, 1))(a, b), f(deepcopy(a), deepcopy(b))][-1],
}


@together("mode", GIVEN_TWICE)
@together("kind", TWINS)
def test_changes_to_one_of_two_arguments_that_are_one_container_are_refused(kind, mode):
    make, change, read = TWINS[kind]
    run = GIVEN_TWICE[mode]

    def changed(a, b, *_):
        change(a)
        return read(b) + 0.0 * read(a)

    def changed_last(a, b, *_):
        change(b)
        return read(a) + 0.0 * read(b)

    def unchanged(a, b, *_):
        return read(a) + read(b)

    for function in (changed, changed_last):
        one = make()
        with pytest.raises(GraphError, match=r"the same \w+ in .*, which the function changes in one of them"):
            run(function, one, one)
        assert run(function, make(), make()) == read(make())
    one = make()
    assert run(unchanged, one, one) == 2 * read(one)


LOOPS_OF_TWINS = {
    "scan": lambda f, c: wg.scan(lambda c, _: (f(c), None), c, X),
    "while_loop": lambda f, c: wg.while_loop(lambda c: c[0][0] < 50.0, f, c),
    "fori_loop": lambda f, c: wg.fori_loop(0, 2, lambda _, c: f(c), c),
    "jit(scan)": lambda f, c: wg.jit(lambda x: wg.scan(lambda c, _: (f(c), None), c, x * X))(1.0),
}


def test_rounds_do_not_write_to_one_of_two_arrays_that_are_one_at_first():
    def written(c, _):
        c[0][0] = c[0][0] * 0.9
        return c, c[1][0]

    with pytest.raises(GraphError, match=r"scan: arguments 0 and 1 .* share memory"):
        wg.scan(written, (X, X), X)
    assert wg.scan(written, (X, X.copy()), X)[1].tolist() == [1.0, 1.0]


@together("make", {kind: make for kind, (make, *_) in TWINS.items()}.values())
@together("wrap", [wg.checkpoint, wg.custom_rule])
def test_functions_within_others_must_not_change_containers_that_they_are_given(wrap, make):
    change, read = next((change, read) for other, change, read in TWINS.values() if other is make)

    def f(x, own):
        given = wg.tree.map(lambda leaf: leaf * x, make())
        return wrap(lambda c: (change(deepcopy(c) if own else c), read(c))[1])(given) + read(given)

    for transformed in (wg.jit(f, static_argnums=1), wg.jit(wg.grad(f), static_argnums=1)):
        with pytest.raises(GraphError, match=r"a change to a \w+ among its arguments"):
            transformed(1.0, False)
        transformed(1.0, True)


@pytest.mark.parametrize("run", LOOPS_OF_TWINS.values(), ids=LOOPS_OF_TWINS)
def test_rounds_do_not_change_one_of_two_containers_that_are_one_at_first(run):
    def changed(c):
        c[0][0] = c[0][0] * 3.0
        return c

    with pytest.raises(GraphError, match=r"the same list in two places of argument \d, which the function changes"):
        run(changed, ([2.0],) * 2)
    run(changed, ([2.0], [2.0]))
    run(lambda c: ([c[0][0] * 3.0], c[1]), ([2.0],) * 2)


def test_containers_may_be_put_into_each_other_and_keep_what_properties_compute():
    def stored(x, items, names):
        items.append(1.0)
        names["k"] = items
        return x * x

    @dataclass
    class Scaled:
        a: float

        @cached_property
        def twice(self):
            return self.a * 2

    assert wg.jit(lambda x: wg.grad(stored)(x, [2.0], {}))(3.0) == 6.0
    assert wg.grad(lambda x, items, names, *_: stored(x, items, names))(3.0, [2.0], {}, (), ()) == 6.0
    assert wg.grad(wg.custom_rule(lambda p: p.twice * 3))(Scaled(1.0)).a == 6.0
    assert wg.jit(wg.checkpoint(lambda p: p.twice * 3))(Scaled(1.0)) == 6.0
    one = Scaled(1.0)
    assert wg.jit(lambda p, q: p.twice * q.a)(one, one) == 2.0


def test_containers_that_pass_through_are_the_callers_own():
    scratch = [0.0]
    scratch.append(scratch)

    def f(x, a, b):
        a[0] += 1.0
        return x * b[0]

    assert wg.value_and_grad(f)(3.0, scratch, scratch) == (3.0, 1.0)
    assert scratch[0] == 1.0


def test_writes_to_one_of_two_lanes_that_share_memory_are_refused():
    q = np.ones((2, 3))
    with pytest.raises(GraphError, match=r"vmap: arguments 0 and 1 .* that share memory"):
        wg.vmap(first_written)(q, q)


def read_only(array):
    array.flags.writeable = False
    return array


WRITES = {
    "assignment": lambda x: x.__setitem__(0, 5.0),
    "operator": lambda x: x.__iadd__(1.0),
    "out=": lambda x: np.multiply(x, 2.0, out=x),
    "view": lambda x: x[1:].__setitem__(0, 5.0),
    "reshape": lambda x: x.reshape(2, 2).T.__setitem__(0, 5.0),
    "fill": lambda x: x.fill(3.0),
    "sort": lambda x: x.sort(),
    "broadcast": lambda x: np.broadcast_to(x[0], (3,)).__setitem__(0, 5.0),
}
ONE = np.array([4.0, 3.0, 2.0, 1.0])
WITH_ARGUMENT = {
    "asarray": lambda f, x: f(wg.asarray(x)),
    "asarray of NumPy": lambda f, x: f(np.asarray(x, like=wg.tensor(1.0))),
    "jit": lambda f, x: wg.jit(f)(x),
    "grad": lambda f, x: wg.grad(f)(x),
    "jvp": lambda f, x: wg.jvp(f, (x,), (ONE,)),
    "taylor": lambda f, x: wg.taylor(f, (x,), (ONE,), 2),
    "vmap": lambda f, x: wg.vmap(f)(read_only(np.stack([x, x]))),
    "vmap of one": lambda f, x: wg.vmap(lambda x, y: f(x) * y, (None, 0))(x, np.ones(2)),
    "linearize": lambda f, x: wg.linearize(f, x),
    "jit(grad)": lambda f, x: wg.jit(wg.grad(f))(x),
    "grad(jit)": lambda f, x: wg.grad(wg.jit(f))(x),
    "vmap(jit)": lambda f, x: wg.vmap(wg.jit(f))(read_only(np.stack([x, x]))),
    "checkpoint": lambda f, x: wg.grad(wg.checkpoint(f))(x),
    "cond": lambda f, x: wg.cond(True, f, lambda x: 0.0, x),
    "captured": lambda f, x: wg.jit(lambda y: y * f(x))(1.0),
}


@together("mode", WITH_ARGUMENT)
def test_read_only_arrays_are_not_written_to(mode):
    for name, write in WRITES.items():

        def f(x, write=write):
            write(x)
            return np.sum(x)

        x = read_only(ONE.copy())
        with pytest.raises(ValueError, match="read-only"):
            f(x)
        with pytest.raises(ValueError, match="read-only"):
            WITH_ARGUMENT[mode](f, x)
        assert (x == ONE).all(), name


def test_errors_about_read_only_arguments_name_the_line_that_writes():
    def f(x, y):
        y = y * 1.0
        x[0] = 5.0
        return np.sum(x * y)

    f = wg.jit(f)
    x = ONE.copy()
    assert f(x, ONE) == f(x, read_only(x.copy())) == 34.0  # traced once for both
    with pytest.raises(wg.errors.UsageError) as caught:
        f(read_only(x), ONE)
    text, place = str(caught.value).split("\n")
    assert text == (
        "jit: a read-only array as argument 0 (counted in the containers), which the function writes to; an array "
        "that can be written to is needed, as in NumPy. Pass a copy, or copy it in the function."
    )
    assert place.endswith("<locals>.f: x[0] = 5.0")
    assert f.trace_count == 1
    with pytest.raises(
        wg.errors.UsageError,
        match=r"^assignment: a Tensor that stands for a read-only array; an array that can be written to is needed, "
        r"as in NumPy\. Copy it first\.$",
    ):
        wg.grad(lambda x: x.__setitem__(0, 5.0) or np.sum(x))(x)


def test_copies_of_read_only_arrays_and_results_may_be_written_to():
    def f(x):
        y = x.copy()
        y[0] = 5.0
        z = x * 1.0
        z += y
        return np.sum(z)

    for run in WITH_ARGUMENT.values():
        run(f, read_only(ONE.copy()))


def test_arguments_that_share_memory_may_be_read_and_others_written():
    q = np.array([1.0, 2.0, 3.0, 4.0])
    product = wg.jit(lambda a, b: np.sum(a * b))
    assert product(q, q) == product(q.copy(), q) == 30.0
    written = wg.jit(first_written)
    assert written(q[:2], q[2:]) == written(q[::2], q[1::2]) + 1.0 == 7.0
    with pytest.raises(GraphError, match="share memory"):
        written(q[:2], q[:2])
    assert q.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_disjoint_views_of_one_tensor_may_be_donated():
    def step(a, b):
        a[0] = a[0] * b[0]
        return a * b

    def total(function, cut, x):
        y = x * 2.0
        one, other = cut(y)
        return np.sum(function(one, other)) + np.sum(y * y)

    donated = wg.jit(step, donate_argnums=0)
    point = np.arange(1.0, 7.0)
    for cut in (lambda y: (y[:3], y[3:]), lambda y: (y[::2], y[1::2]), lambda y: tuple(y.reshape(2, 3)[::-1])):
        for _ in range(2):
            np.testing.assert_array_equal(
                *[wg.grad(lambda x, f=f, c=cut: total(f, c, x))(point) for f in (donated, step)]
            )
        kept = [wg.tensor(point) for _ in range(2)]
        np.testing.assert_array_equal(*[f(*cut(x)) for f, x in zip((donated, step), kept, strict=True)])
        np.testing.assert_array_equal(*kept)
    with pytest.raises(GraphError, match="share memory"):
        donated(kept[0][:3], kept[0][2:5])


CALLS = []


def counted(x, *_):
    CALLS.append(x)
    return x * 1.0


def failing(x, *_):
    CALLS.append(x)
    return x + np.ones(5)[: len(CALLS) + 1]


LEFT_OUT = {
    "scan": lambda f: wg.jit(lambda x: wg.scan(lambda c, _: (f(c), None), x, X)[0])(X),
    "while": lambda f: wg.jit(lambda x: wg.while_loop(lambda c: c[0] < 5, f, x))(X),
    "cond": lambda f: wg.jit(lambda x: wg.cond(x[0] > 0, f, f, x))(X),
    "solve_ivp": lambda f: integrate.solve_ivp(lambda t, y: f(y, t), (0.0, 1.0), X),
    "odeint": lambda f: integrate.odeint(f, X, X),
    "root": lambda f: wg.grad(lambda x: optimize.root(lambda y: f(y) - x, X).x[0])(X),
}


@together("mode", LEFT_OUT)
@together("function", [counted, failing])
def test_no_traced_value_stays_behind_a_function_that_failed(function, mode):
    CALLS.clear()
    with contextlib.suppress(GraphError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        LEFT_OUT[mode](function)
    assert all("traced" not in repr(x) for x in CALLS)


SOLVERS = {
    "least_squares": lambda f: optimize.least_squares(lambda x: f(x) - 1.0, [0.0]).x,
    "curve_fit": lambda f: optimize.curve_fit(lambda x, a: f(x) * a, np.arange(4.0), np.arange(4.0))[0],
    "minimize": lambda f: optimize.minimize(lambda x: np.sum((f(x) - 1.0) ** 2), [0.0]).x,
    "root": lambda f: optimize.root(lambda x: f(x) - 1.0, [0.0]).x,
    "brentq": lambda f: optimize.brentq(lambda x: f(x) - 1.0, 0.0, 3.0),
    "odeint": lambda f: integrate.odeint(lambda y, t: -f(y), [1.0], np.array([0.0, 1.0]))[-1] * np.e,
    "solve_ivp": lambda f: integrate.solve_ivp(lambda t, y: -f(y), (0.0, 1.0), [1.0], rtol=1e-8).y[:, -1] * np.e,
    "quad": lambda f: integrate.quad(lambda x: f(x) * 2.0, 0.0, 1.0)[0],
}


def test_solvers_call_functions_that_keep_lists_of_their_calls():
    """What others left there, whose time is over, is no value that they capture."""
    CALLS.clear()
    for solver in (*SOLVERS.values(), *SOLVERS.values()):
        count = len(CALLS)
        np.testing.assert_allclose(solver(counted), 1.0, rtol=1e-6)
        assert len(CALLS) > count
