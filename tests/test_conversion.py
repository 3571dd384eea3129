"""Python control flow under `jit`: each form of statement, with traced and with plain values, against plain Python."""

# ruff: noqa: RET503, RET504, SIM108, B007, C417, F842 - the programs use each form of statement on purpose

import ast
import collections
import functools
import gc
import traceback
import weakref

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import some_of, together
from wengert.control.side_effects import Reach
from wengert.conversion import branch_statements, staged_loop, traced_regions
from wengert.conversion.operations import convert
from wengert.conversion.syntax_nodes import half_assigned
from wengert.core.containers.tree_leaves import flatten
from wengert.errors import GraphError, ShapeError, TracedTruthError, UsageError
from wengert.passes import pipeline
from wengert.passes.equations import everywhere
from wengert.transforms import tracing
from wengert.transforms.jit import jit

PROGRAMS = []


def case(*examples):
    """Enter a function as a program, with example arguments."""

    def enter(function):
        PROGRAMS.extend((function, args) for args in examples)
        return function

    return enter


def fresh(args):
    return [np.copy(x) if isinstance(x, np.ndarray) else x for x in args]


def assert_alike(found, wanted):
    one, one_structure = flatten(found)
    other, other_structure = flatten(wanted)
    assert one_structure == other_structure
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-14)


# Programs


class Spring:
    def __init__(self, length):
        self.length = length
        self.parts = [0.0]

    @property
    def force(self):
        if self.length > 1:
            return 2.0 * self.length
        return self.__slack

    @property
    def __slack(self):
        return -self.length if self.length > 0 else 0.0

    @functools.cached_property
    def energy(self):
        found = 0.0
        while found < self.length:
            found = found + 0.5
        return found * self.force


class Stiff(Spring):
    @property
    def force(self):
        return 3.0 * super().force

    @property
    def missing(self):
        if self.length > 0:
            self.length = self.length + 1.0
        raise AttributeError("missing")

    def __getattr__(self, name):
        return 1.0 if name == "missing" else object.__getattribute__(self, name)


class Limits:
    LOW = -1.0


@case((1.5,), (0.5,), (-1.0,), (2.0,), (-4.0,))
def cases_with_guards(x):
    total, pair = 0.0, (x, 3)
    match x:
        case 2 | Limits.LOW:
            total = 5 * x
        case v if v > 1:
            total = x - v**2
        case _:
            total += x
    for k in range(6):
        match pair:
            case y, 0:
                return y
            case y, n if y < -3:
                return total * n
            case [z, *rest] if total > 4:
                total = total - z * rest[0]
                continue
            case _ if k == 5:
                break
        total = total + k
    match "text":
        case "other":
            return 0.0
        case str() if total > 0:
            total = -total
    return total


@case((1.5,), (0.5,), (-1.0,), (2.0,))
def cases_with_names_and_truths(x):
    level = 3.0
    match x:
        case 2 | Limits.LOW as level:
            x = x * level + 1.0
    match bool(x > 1):
        case True:
            x = x * level
        case False | None:
            x = x - level
    small = not x > 2
    if small is not True:
        x = x * 3
    return x if (x > 5) is True or small is False else x * x


@case((1.5,), (0.5,), (-1.0,), (3.25,))
def classes_of_whole_numbers_and_truths(x):
    whole, truth = int(x), bool(x > 1)
    match whole:
        case bool():
            x = x * 7
        case str() | int(7):
            x = x * 11
        case int(n) if n > 2:
            x = x * n
        case 1 as n if n > x:
            x = x * 13
        case float() | int():
            x = x + n if whole else x - 2
    if isinstance(truth, bool) and type(whole) is int and not isinstance(whole, bool | str):
        x = x * x
    return x


@case((1.5,), (0.5,), (-1.0,))
def properties_that_are_read(x):
    spring, stiff = Spring(x), Stiff(2.0 + x * x)
    spring.parts.append(spring.force)
    found = spring.energy + getattr(spring, "ener" + "gy") + stiff.missing * stiff.energy.real
    return found + spring.parts[-1] + [spring.force][0]


class Pair(collections.namedtuple("Pair", "one other")):
    @property
    def larger(self):
        return self.one if self.one > self.other else self.other


@case((2.0,), (0.5,))
def properties_of_named_tuples_and_asked_for(x):
    return Pair(x, 1.0).larger * (1 + hasattr(Spring(x), "force") + hasattr(Spring(x), "mass"))


class Hidden:
    __slots__ = ("__length",)

    def __init__(self, length):
        self.__length = length

    def read(self):
        return self.__length

    def set(self, length):
        self.__length = length


@case((2.0,), (0.5,), (-1.0,))
def private_slots_that_branches_and_loops_set(x):
    hidden = Hidden(x)
    if x > 1:
        hidden.set(x * 7)
    while hidden.read() < 3:
        hidden.set(hidden.read() + 0.75)
    return hidden.read()


@case((2.0,), (0.5,))
def properties_that_are_read_in_a_loop(x):
    spring = Spring(0.0)
    while spring.force < 8 * x:
        spring.length += 0.25
        spring.parts[0] = spring.parts[0] + spring.force
    return spring.parts[0] * spring.length


@case((1.0,), (5.0,), (-3.0,))
def simple_if(x):
    if x > 3:
        y = x * 2
    elif x > 0:
        y = x + 1
    else:
        y = -x
    return y


@case((1.0,), (5.0,), (-3.0,))
def early(x):
    if x > 3:
        return x * 2
    if x > 0:
        return x + 1
    return -x


@case((1.0, 7), (5.0, 0), (-3.0, 3))
def loop(x, n):
    i = 0
    while i < n:
        if x > 3:
            x = x - 1
        else:
            x = x * 2
        i += 1
    return x


@case((1.0, 7), (5.0, 0), (-3.0, 3))
def frange(x, n):
    total = 0.0
    for i in range(n):
        total += x * i
    return total


@case((1.0, 7), (5.0, 0), (-3.0, 3), (2.0, 20))
def frange_break(x, n):
    total = 0.0
    for i in range(n):
        if i == 1:
            continue
        if total > 10:
            break
        total += x * i
    else:
        return total + 100.0
    return total


@case((np.arange(5.0), 3.0), (np.arange(5.0), 100.0))
def over_array(xs, lim):
    s = 0.0
    for v in xs:
        if s > lim:
            break
        s = s + v * v
    return s


@case((np.arange(5.0), 3.0))
def over_array2(xs, lim):
    s = 0.0
    for v in xs:
        s = s + v * v if v < lim else s
    if s > lim:
        s = s + 1
    return s


@case((np.arange(5.0), 3.0), (np.arange(5.0), -1.0), (np.arange(5.0), 1000.0))
def ret_in_loop(xs, lim):
    s = 0.0
    for k in range(5):
        s = s + xs[k]
        if s > lim:
            return s, k
    return -s, 0


@case((4.0,), (0.5,))
def andor(x):
    if (x > 1 and x < 5) or not x > 0:
        return x
    return 2 * x if 0 < x < 1 else x


@case(
    (10.0,),
)
def newton(a):
    x = a
    while True:
        n = (x + a / x) / 2
        if abs(n - x) < 1e-12:
            break
        x = n
    return x


@case((np.arange(6.0).reshape(2, 3), 4.0))
def inplace(a, t):
    b = a * 1
    if t > 3:
        b[0] = t
        b += 1
    else:
        b[1, 1] = 7.0
    for i in range(2):
        if t > i:
            b[i] *= 2
    return b


@case((3,), (0,))
def while_else(n):
    while n > 0:
        n = n - 1
        if n == 100:
            break
    else:
        n = n + 50
    return n


def helper(x):
    if x > 0:
        return x
    return x * x


@case((3.0,), (-3.0,))
def calls(x):
    f = lambda v: helper(v) if v < 2 else helper(v) + 1

    def inner(v):
        if v > 1:
            v = v * 3
        return v

    return f(x) + inner(x) + max(x, 1.0)


@case((3.0,), (-3.0,))
def plain_list(x):
    out = []
    for k in [1.0, 2.0, 3.0]:
        if x > 0:
            out.append(x * k)
        else:
            out.append(k * 1.0)
    return out


@case((3, 5.0), (0, 5.0))
def nested(n, x):
    s = 0.0
    for i in range(n):
        for j in range(i):
            if x > j:
                s = s + x * j
            else:
                s -= 1.0
    return s


@case((np.array([3.0, 1.0, 2.0]),))
def bubble(a):
    a = a.copy()
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                t = a[j] * 1
                a[j] = a[j + 1]
                a[j + 1] = t
    return a


@case(
    (27,),
)
def collatz(n):
    c = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        c += 1
    return c


@case((3.0,), (-3.0,))
def withtry(x):
    try:
        if x > 0:
            return x
        y = x * 2
    except ValueError:
        y = 3.0
    else:
        y = y + 1
    finally:
        pass
    return y


@case((3.0,), (-3.0,))
def matching(x, k=2):
    match k:
        case 1:
            return x
        case 2 if True:
            if x > 0:
                return x * 3
            z = x
        case _:
            z = 1.0
    return z


def dec(f):
    @functools.wraps(f)
    def wrapper(*a, **k):
        return f(*a, **k) + 1

    return wrapper


@case((3.0,), (-3.0,))
@dec
def decorated(x, *, y=2.0):
    if x > y:
        return x
    return y * x


@case((np.arange(6.0).reshape(2, 3),))
def twodim(a):
    s = 0.0
    for row in a:
        for v in row:
            if v > 2:
                continue
            s += v
            if s > 3:
                break
    return s


@case((3.0,), (-3.0,))
def annotated(x):
    if x > 0:
        y: float = x * 2
    else:
        y: float = x
    z: int
    return y


@case((3.0, 5), (-3.0, 0))
def tuples(x, n):
    a, b = 0.0, 1.0
    for _ in range(n):
        a, b = b, a + b * x
    (p, q), *r = (a, b), 1.0, 2.0
    return {"a": a, "pq": (p, q), "r": r}


@case((3.0, 5), (-3.0, 0))
def dictstate(x, n):
    st = {"s": 0.0, "k": x}
    for i in range(n):
        st["s"] = st["s"] + st["k"] * i
        if st["s"] > 5:
            st = {"s": 1.0, "k": st["k"]}
    return st


@case((1, 10), (10, 1), (3, 3))
def stepped(n, m):
    s = 0
    for i in range(n, m, 3):
        s = s * 2 + i
    for i in range(m, n, -2):
        s = s * 2 + i
    return s


@case((1.0,), (6.0,))
def walrus(x):
    while (y := x * 2) < 10:
        x = y + 1
    if (z := x) > 11 and y > 3:
        return z
    return y


@case((1.0, 10), (6.0, 0), (49.0, 10), (49.5, 100))
def bothstaged(x, n):
    for i in range(n):
        if x > 50:
            return x, i
        if i == 3:
            continue
        while x < i:
            x = x + 2
            if x > 20:
                break
        else:
            x = x + 1
    return x, -1


@case((np.array([1.0, 5.0, 2.0]),))
def enum(xs):
    best, where = xs[0], 0
    for i, v in enumerate(xs):
        if v > best:
            best, where = v, i
    return best, where


@case((np.array([1.0, 5.0, 2.0]),))
def argbest(xs):
    best = None
    for v in xs:
        if best is None or v > best:
            best = v
    return best


def rec(n):
    if n <= 1:
        return 1
    return n * rec(n - 1)


@case((1.0,), (-1.0,))
def inner_rec(x):
    return rec(5) * x if x > 0 else x


@case((np.ones(3, np.float32),))
def f32(x):
    s = 0.0
    for i in range(3):
        if x.sum() > s:
            s = s + x.sum()
    while s < 100:
        s = s * 2
    return s


@case((3.0, 5), (-3.0, 0))
def lam(x, n):
    fs = [lambda v: v if v > 0 else -v, lambda v: v * 2 if v > 0 else v]
    return sum([f(x) for f in fs]) + sum(map(lambda q: q if q > x else x, [x, 2.0, x * 3]))


@case((3.0,), (-3.0,))
def glob(x):
    global GG
    if x > 0:
        GG = x
    else:
        GG = 2.0
    return GG * x


@case((np.arange(6.0).reshape(2, 3), 2.0), (np.arange(6.0).reshape(2, 3), -2.0))
def view_mut(a, t):
    b = a * 1
    row = b[0]
    if t > 0:
        row += t
    else:
        b[1] = 0.0
    for i in range(3):
        if t > i:
            row[i] = -1.0
    return b, row


@case((np.arange(3.0), 5))
def mutarg(a, n):
    b = a.copy()
    for i in range(n):
        b[i % 3] += i
    return b


@case((1.0, 2.0), (3.0, 2.0), (1.0, 20.0), (-1.0, 2.0))
def chained(x, y):
    return (0 < x < y < 10) or not (x > 0 and y > 0)


@case((1.0,), (-1.0,))
def withdel(x):
    if x > 0:
        t = x
        del t
    y = x
    return y


@case((1.0, 2.0, 0.5), (3.0, 2.0))
def starargs(x, *args, k=1.0, **kw):
    for a in args:
        if a > x:
            x = a
    return x * k + kw.get("z", 0.0)


@case((np.arange(3.0),))
def dots(x):
    z = wnp.where(x > 0, x, 0.0)
    if wnp.any(x > 0):
        z = z + 1
    return wnp.sum(z)


@case((1.5, 3.0))
def minmax(x, y):
    return min(x, y, 2.0), max([x, y]), int(x), bool(y)


ROWS = [(np.array(x),) for x in ([0.5, -0.6, 2.0], [-0.5, 2.0, 2.0], [np.nan, 3.0, 1.0], [1.0, np.nan, 5.0], [1.0] * 3)]


@case(*ROWS)
def best_of_items(x):
    return max(x), min(x), max([x[0], x[1]], key=lambda v: -v if v > 1 else v), min(abs(v) for v in x), max(0.25, *x)


@case(*ROWS)
def best_of_pairs(x):
    place, value = max(enumerate(x), key=lambda pair: pair[1])
    return place * 10.0 + value, max([], default=x[0])


@case(*ROWS)
def any_and_all(x):
    some = any(x > 1.5)
    checks = [v > -1.0 for v in x]
    if all(checks) and not any(()):
        return x * 2.0, some
    return x, all((some, x[0]))


@case(*ROWS)
def numbered_return(x):
    for i, v in enumerate(x):
        if v > 1.5:
            return x * i
    return -x


@case(*ROWS)
def paired_break(x):
    total = 0.0
    for i, (v, w) in enumerate(zip(x, reversed(x), strict=True), 1):
        if v < 0.0:
            break
        total = total + v * w * i
    else:
        total = -total
    return total


@case((5.0,), (1000.0,), (-1.0,))
def rngstop(x):
    s = 0.0
    for i in range(10):
        if s > x:
            break
        s += i
    return s, i


@case((5.0,), (1000.0,), (-1.0,))
def liststop(x):
    s = 0.0
    for i in [1.0, 2.0, 3.0]:
        s += i
        if s > x:
            return s
    return -s


class Counter:
    def __init__(self):
        self.count = 0.0
        self.__hidden = 2.0
        self.items = [1.0, 2.0]
        self.d = {"a": 1.0}

    def step(self, x):
        if x > 0:
            self.count += x
            self.__hidden = x
            self.items[0] = x
            self.d["b"] = x
            self.d["a"] = x
        else:
            self.count = 7.0
            self.d["b"] = 5.0
        return self.count + self.__hidden + self.items[0] + self.d["b"] + self.d["a"]

    def __call__(self, x):
        while x < 10:
            x = x * 2
            self.count += 1
        return x, self.count


def make_bump():
    total = 1.0

    def bump(x):
        nonlocal total
        if x > 0:
            total = total + x
        else:
            total = total - 1.0
        return total

    return bump


@case((1.5,), (7.0,))
def endless(x):
    while True:
        x = x + 1
        if x > 5:
            return x


@case((10,), (2,))
def return_in_for(n):
    for i in range(n):
        if i * i > 10:
            return i
    return -1


@case((-1.0,), (1.0,), (3.0,), (5.0,), (200.0,))
def nested_exits(x):
    for i in range(3):
        for j in range(3):
            if x < i * j:
                return i * 10 + j
            if x > 100:
                break
        else:
            continue
        break
    return 99


@case((np.array([3.0, -3.0, 0.0, 2.0]), 4), (np.array([3.0, -3.0, 1.0]), 3))
def first_zero(xs, n):
    i = 0
    while i < n and xs[i] != 0:
        i += 1
    return i


@case((5, 0), (-7, -2), (9, 3))
def guarded(n, m):
    while m > 0 and n // m < 3:
        m = m - 1
    chosen = [0, 1][m != 0 and n % m == 0]
    return chosen, m, n <= 0 or m == 0 or n / m > 0, 0 < m < n // m, m >= 0 and 1 << m > 4, m >= 0 and 3**m > n


@case((1.5,), (20.0,))
def recursion(x):
    def go(v, depth):
        if depth == 0:
            return v
        if v > 10:
            return v
        return go(v * 2, depth - 1)

    return go(x, 6)


@case((-2.0,), (2.0,))
def nested_class(x):
    class Local:
        def absolute(self, v):
            if v > 0:
                return v
            return -v

    return Local().absolute(x)


# Tests of the programs


@together("function, args", PROGRAMS)
def test_converted_functions_do_what_python_does(function, args):
    np.testing.assert_equal(convert(function)(*fresh(args)), function(*fresh(args)))


@together("function, args", PROGRAMS)
def test_traced_control_flow_agrees_with_python(function, args):
    assert_alike(jit(convert(function))(*fresh(args)), function(*fresh(args)))


@together("function, args", some_of(PROGRAMS, "by itself"))
def test_jit_converts_by_itself(function, args):
    assert_alike(jit(function)(*fresh(args)), function(*fresh(args)))


def test_one_trace_serves_all_values():
    compiled = jit(collatz)
    assert [compiled(n) for n in (1, 6, 27)] == [0, 8, 111]
    assert compiled.trace_count == 1


@pytest.mark.parametrize("x", [3.0, -3.0])
def test_attributes_are_variables(x):
    wanted, found = Counter(), Counter()
    assert_alike(jit(convert(found.step))(x), wanted.step(x))


def test_objects_with_a_call_method():
    assert convert(Counter())(3.0) == Counter()(3.0)


class Branching:
    width = 2.0

    def __call__(self, x):
        if x > 0:
            return x * self.width
        return -x

    def step(self, carried, x):
        return self(carried + x), x


def test_transformations_of_objects_are_converted():
    model, xs = Branching(), np.array([3.0, -3.0])
    assert np.array_equal(jit(wg.vmap(model))(xs), [6.0, 3.0])
    assert [jit(wg.grad(model))(x) for x in xs] == [2.0, -1.0]
    assert [jit(lambda x: wg.grad(model)(x))(x) for x in xs] == [2.0, -1.0]
    assert [jit(functools.partial(model))(x) for x in xs] == [6.0, 3.0]
    assert jit(lambda xs: wg.scan(model.step, 0.0, xs)[0])(xs) == 6.0
    assert [jit(lambda x: wg.value_and_grad(fun=model)(x))(x) for x in xs] == [(6.0, 2.0), (3.0, -1.0)]


def test_objects_that_are_data_stay_themselves():
    model = Branching()
    loss = wg.grad(lambda model, x: model(x) * model.width, argnums=1)
    assert jit(lambda x: loss(model, x))(3.0) == 4.0
    assert jit(functools.partial(loss, model))(-3.0) == -2.0


@pytest.mark.parametrize("x", [3.0, -3.0])
def test_nonlocal_variables(x):
    assert_alike(jit(convert(make_bump()))(x), make_bump()(x))
    bump = make_bump()
    assert convert(bump)(3.0) == 4.0
    assert bump(3.0) == 7.0  # the cell is shared


def test_dtypes_are_those_of_python():
    x = np.ones(3, np.float32)
    assert jit(f32)(x).dtype == f32(x).dtype == np.float32


# Derivatives


def powers(x):
    s = 0.0
    while s < 10:
        s = s + x * x
    if s > 11:
        s = s * x
    return s


def test_gradients_of_a_data_dependent_loop():
    compiled = jit(powers)
    assert wg.grad(compiled)(2.0) == wg.grad(powers)(2.0) == 36.0
    assert wg.grad(wg.grad(compiled))(2.0) == 36.0
    assert jit(wg.grad(powers))(2.0) == 36.0


def branch_around_a_loop(x):
    if np.sum(x) > 0.5:
        while np.sum(x) > 0.4:
            x = x - x * x
    return np.sum(x**2)


def counted_by_what_is_traced(x):
    w = x * 1.0
    for i in range((np.sum(x) * 4).astype(int)):
        w = w - w * x * (i + 1) * 0.1
    return np.sum(w**2)


@pytest.mark.parametrize("function", [branch_around_a_loop, counted_by_what_is_traced])
def test_gradients_of_loops_in_lanes_of_lanes(function):
    lanes = np.array([[[0.1, 0.5], [0.9, 0.2]], [[0.3, 0.3], [0.1, 0.2]], [[0.8, 0.7], [0.0, 0.1]]])
    slopes = [[wg.grad(function)(x) for x in row] for row in lanes]
    for inner in (jit(wg.grad(function)), wg.grad(jit(function))):
        np.testing.assert_allclose(wg.vmap(wg.vmap(inner))(lanes), slopes)
        np.testing.assert_allclose(jit(wg.vmap(wg.vmap(inner)))(lanes), slopes)


def test_vmap_of_converted_functions():
    xs = np.array([1.0, 2.0, 3.0])
    wanted = [powers(x) for x in xs]
    assert_alike(wg.vmap(jit(powers))(xs), np.array(wanted))
    assert_alike(jit(wg.vmap(powers))(xs), np.array(wanted))


def test_captured_tensors_get_gradients():
    t = wg.tensor(3.0, requires_grad=True)

    def scaled(x):
        s = x * 0
        for i in range(3):
            if x > i:
                s = s + t * x
        return s

    jit(scaled)(2.0).backward()
    assert t.grad.item() == 4.0


def test_the_branch_not_taken_sends_nothing():
    def program(x):
        if x != 0:
            y = 1 / x
        else:
            y = x
        return y

    assert wg.grad(jit(program))(0.0) == 1.0
    assert wg.grad(jit(program))(2.0) == -0.25


def test_a_loop_that_does_not_run_sends_nothing():
    def program(x, w):
        while x < 0:
            x = x + 1 / w
        return x

    with np.errstate(all="ignore"):
        assert wg.grad(jit(program), (0, 1))(1.0, 0.0) == (1.0, 0.0)
        assert jit(wg.grad(program, (0, 1)))(1.0, 0.0) == (1.0, 0.0)


def test_what_a_loop_reads_gets_gradients():
    def program(w, n):
        s = 0.0
        for i in range(n):
            s = s + (w * i).sum()
        return s

    np.testing.assert_array_equal(wg.grad(jit(program))(np.ones(2), 4), [6.0, 6.0])


# Short circuit


def test_operands_that_do_not_count_are_not_evaluated():
    def bounded(xs, i):
        if i < 3 and xs[i] > 1.0:
            return xs[i]
        return 0.0

    compiled = jit(bounded)
    xs = np.array([1.0, 2.0, 3.0])
    assert [compiled(xs, i) for i in (0, 1, 2, 7)] == [0.0, 2.0, 3.0, 0.0]


def test_plain_operands_are_evaluated_as_python_does():
    seen = []

    def noted(x):
        seen.append(x)
        return x

    def program(a, b, c):
        return ((noted(a) and noted(b)) or noted(c), noted(a) < noted(b) < noted(c))

    assert convert(program)(0, 1, 2) == (2, True)
    assert seen == [0, 2, 0, 1, 2]


# Identity of functions


def test_the_converted_function_keeps_what_the_original_is():
    def documented(x, y=2.0, *, z=3.0):
        """Say something."""
        return x if x > y else z

    found = convert(documented)
    assert found is not documented
    assert (found.__name__, found.__doc__, found.__defaults__) == ("documented", "Say something.", (2.0,))
    assert found.__kwdefaults__ == {"z": 3.0}
    assert found.__qualname__ == documented.__qualname__
    assert convert(found) is found


def test_conversions_do_not_keep_functions_alive():
    def make():
        def short(x):
            return x if x > 0 else -x

        return short

    function = make()
    convert(function)
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None


def test_lambdas_on_one_line_are_told_apart():
    pair = (lambda x: x + 1 if x > 0 else x, lambda x: x + 2 if x > 0 else x)
    assert jit(pair[1])(1.0) == 3.0
    assert jit(pair[0])(1.0) == 2.0


def test_tracebacks_show_the_lines_of_the_user():
    def failing(x):
        for i in range(3):
            if i == 2:
                x = x / 0
        return x

    with pytest.raises(ZeroDivisionError) as caught:
        convert(failing)(1)
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    assert [f.line for f in frames[1:]] == ["for i in range(3):", "if i == 2:", "x = x / 0"]
    assert {f.name for f in frames[1:]} == {"failing"}


def test_equations_know_the_lines_of_the_user():
    from wengert.transforms.tracing import trace

    graph = trace(convert(powers))(2.0)
    text = [e.position.text for e in graph.equations]
    assert "while s < 10:" in text


# Errors


def line_of(function, text):
    """The line as errors show it, from the text of the line."""
    import inspect

    lines, start = inspect.getsourcelines(function)
    number = next(i for i, line in enumerate(lines) if line.strip() == text)
    return f'\n  File "{__file__}", line {start + number}, in {function.__qualname__}: {text}'


def error_of(function, *args, kind=GraphError):
    with pytest.raises(kind) as caught:
        jit(function)(*args)
    return str(caught.value)


X = np.arange(4.0)


def test_branches_of_different_shapes():
    def program(x):
        if x.sum() > 0:
            y = x[:2]
        else:
            y = x[:3]
        return y * 2

    assert error_of(program, X) == (
        "if: y is float64[2] where the condition holds, and float64[3] where it does not; both branches of a traced "
        "condition must give the same containers, shapes and dtypes. Make them alike."
        + line_of(program, "y = x[:2]")
        + line_of(program, "y = x[:3]")
    )


def test_returns_of_different_shapes():
    def program(x):
        if x.sum() > 0:
            return x
        return x[:2]

    assert error_of(program, X) == (
        "if: the returned value is float64[4] where the condition holds, and float64[2] where it does not; both "
        "branches of a traced condition must give the same containers, shapes and dtypes. Make them alike."
        + line_of(program, "return x")
        + line_of(program, "return x[:2]")
    )


def test_a_return_on_one_path_only():
    def program(x):
        if x.sum() > 0:
            return x

    assert "the returned value is float64[4] where the condition holds, and None where" in error_of(program, X)


def test_a_variable_of_one_branch():
    def program(x):
        if x.sum() > 0:
            z = x
        try:
            return z
        except UnboundLocalError:
            return x

    assert error_of(program, X) == (
        "if: z gets a value only where the condition holds; both branches of a traced condition must give a value to "
        "a variable that is used after them. Set it before the `if`, or in the other branch."
        + line_of(program, "z = x")
    )


def half(x):
    if x > 1.0:
        y, place = x * x, {"slope": 3.0}
    if x <= 1.0:
        if x > 0.0:
            y = 2.0 * x
        place = {"slope": -x}
    if x < -1.0:
        y = -x
    y += 1.0
    return (lambda t: t * y)(x) + place["slope"]


def test_variables_that_several_branches_set_are_pythons():
    traced = jit(half), jit(wg.grad(half)), lambda x: wg.vmap(jit(half))(np.array([x, x]))[0]
    for function, plain in zip(traced, (half, wg.grad(half), half), strict=True):
        for x in (2.5, 0.5, -3.0):
            assert float(function(x)) == pytest.approx(float(plain(x)))
        with pytest.raises(UnboundLocalError, match="local variable 'y' where it is not associated") as caught:
            function(-0.5)
        assert any("y += 1.0" in note for note in caught.value.__notes__)


def test_variables_that_one_branch_sets_and_reads_are_none_of_the_others():
    text = "if c:\n    t = x\n    y = t\nelse:\n    y = x\nif c:\n    z = t = y\n    t += 1\nprint(y, z)"
    assert half_assigned(ast.parse(text).body, {"c", "x"}) == {"z"}


def test_a_variable_of_one_branch_that_is_not_used():
    def program(x):
        if x.sum() > 0:
            z = x
            x = x + z
        return x

    assert_alike(jit(program)(X), 2 * X)


def test_a_variable_that_is_not_there_before_a_loop():
    def program(n):
        while n > 0:
            if n < 3:
                last = n * 2
            n = n - 1
        return last

    assert error_of(program, 5) == (
        "loop: last has no value before a loop that a traced value decides about; each iteration has to set it before "
        "it is read, to arrays and numbers alone. Set it before the loop, to a value of the shape and dtype that it "
        "has after." + line_of(program, "last = n * 2")
    )


def last_number(x, n):
    for j in range(n):
        x = x * 1.1
    return x, j


def last_values(x, n):
    k = 0
    while k < n:
        y = {"product": x * k, "pair": [k, x]}
        k += 1
    return y


def before_the_end(x, n):
    for j in range(n):
        y = x * j
        if y > 2.0:
            break
    else:
        j = j + 10
    return y, j


def of_two_loops(x, n):
    for j in range(n):
        x = x + 1.0
    for j in range(n - 1):
        x = x * 2.0
    return x * j


def of_loops_in_a_branch(x, n):
    if x > 1.0:
        for j in range(n):
            y = x * j
    if n > 1:
        return y * j
    return x


@together("program", [last_number, last_values, before_the_end, of_two_loops, of_loops_in_a_branch])
def test_variables_that_loops_set_are_pythons(program):
    traced = jit(program)
    for n in (1, 2, 4):
        assert_alike(traced(1.5, n), program(1.5, n))
        assert list(map(type, flatten(traced(1.5, n))[0])) == list(map(type, flatten(program(1.5, n))[0]))
    if program is of_loops_in_a_branch:
        assert traced(1.5, 0) == 1.5
    else:
        with pytest.raises(UnboundLocalError, match="where it is not associated with a value"):
            traced(1.5, 0)


def test_variables_that_loops_set_are_differentiated():
    for f in (of_two_loops, lambda x, n: last_values(x, n)["product"], lambda x, n: before_the_end(x, n)[0]):
        wanted = wg.grad(f)(1.5, 4)
        moved = lambda x, n, f=f: wg.jvp(lambda x: f(x, n), (x,), (1.0,))[1]
        lanes = jit(wg.vmap(wg.grad(f), in_axes=(0, None)))(np.array([1.5]), 4)[0]
        found = jit(wg.grad(f))(1.5, 4), jit(moved)(1.5, 4), wg.grad(jit(f))(1.5, 4), lanes
        assert_alike(found, (wanted,) * 4)


def test_a_shape_that_grows_in_a_loop():
    def program(x):
        y = x[:1]
        while y.sum() < 100:
            y = wnp.concatenate([y, y])
        return y

    assert error_of(program, X) == (
        "loop: y is float64[1] before an iteration and float64[2] after it; a loop that a traced value decides about "
        "must keep containers, shapes and dtypes. Give it the shape and dtype before the loop that it has after."
        + line_of(program, "y = wnp.concatenate([y, y])")
    )


def test_exceptions_that_are_handled_cannot_depend_on_traced_values():
    def program(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
        except ValueError:
            x = -x
        return x

    assert error_of(program, X) == (
        "if: ValueError (negative) was raised while both branches of a traced decision were traced; what depends on "
        "traced values can raise by a `raise` or `assert` in one of its branches, outside of `try` and `with`, because "
        "it is traced whether it will run or not. Check the values outside of the function, or choose with "
        "wengert.numpy.where." + line_of(program, "if x.sum() < 0:")
    )


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def test_a_recursion_that_a_traced_value_would_end_says_how_it_ends():
    with pytest.raises(GraphError, match=r"Pass what ends it in static_argnums, or write it as a loop\.\n  File"):
        jit(factorial)(5)
    assert jit(factorial, static_argnums=0)(5) == 120


def test_errors_of_the_library_keep_their_kind():
    def program(x):
        while x.sum() < 10:
            x = x + np.ones(3)
        return x

    with pytest.raises(ShapeError) as caught:
        jit(program)(X)
    (note,) = caught.value.__notes__
    assert note.startswith("This was raised while iterations of a traced decision were traced: File ")
    assert note.endswith("while x.sum() < 10:")


def test_a_traced_range_outside_of_for():
    def program(n):
        return sum(range(n))

    said = error_of(program, 5, kind=TracedTruthError)
    assert said.startswith("range: a traced number of items, iterated over outside of a `for` statement (File ")
    assert said.endswith(
        "in test_a_traced_range_outside_of_for.<locals>.program: return sum(range(n))); a number that is known while "
        "the function is traced is needed. Write a `for` statement, use wengert.fori_loop or wengert.scan, or pass "
        "the number in static_argnums."
    )


def test_an_endless_iterator():
    def program(x):
        import itertools

        for _ in itertools.count():
            if x > 5:
                break
            x = x + 1
        return x

    text, line = error_of(program, 1.0, kind=UsageError).split("\n")
    assert text == (
        "for: an iterator of type count, which a traced condition ends early; something with a length is needed. "
        "Iterate over a range, a list or an array, or write a `while`."
    )
    assert line.endswith("for _ in itertools.count():")


USE = "Use wengert.cond, wengert.while_loop, wengert.fori_loop or wengert.numpy.where for the decision."


def typed_function():
    code = compile("def typed(x):\n    return x if x > 0 else -x\n", "<typed>", "exec")
    inner = next(c for c in code.co_consts if hasattr(c, "co_code"))
    return type(fresh)(inner, {"__name__": "typed"})


def test_source_that_is_not_available():
    assert error_of(typed_function(), 1.0, kind=UsageError) == (
        "jit: typed decides by a traced value, and its source is not available; a function in a file is needed to "
        f"convert it, or Python 3.13, which keeps what is typed at the prompt. {USE}"
    )


def test_source_that_is_not_available_of_a_function_that_is_differentiated():
    with pytest.raises(TracedTruthError, match=r"Define the function in a file or notebook, because its source"):
        jit(wg.grad(typed_function()))(1.0)


def test_functions_that_are_not_pythons():
    with pytest.raises(UsageError) as caught:
        convert(len)
    assert str(caught.value) == (
        "jit: len decides by a traced value, and it is a builtin_function_or_method, whose source is not available; "
        f"a Python function is needed to convert it. {USE}"
    )


def test_prints_are_left_alone(capsys):
    def program(x):
        if x > 0:
            print("positive")
        else:
            print("not positive")
        return x

    assert jit(program)(1.0) == 1.0
    assert capsys.readouterr().out == "positive\nnot positive\n"


def test_what_a_called_function_keeps_is_carried():
    def program(x):
        box = {}

        def put(v):
            box["v"] = v * 2

        if x > 0:
            put(x)
        else:
            put(-x)
        return box["v"]

    function = wg.jit(program)
    assert function(1.0) == function(-1.0) == 2.0


def long_chain(x):
    if x > 18:
        return x * 1
    if x > 17:
        return x * 2
    if x > 16:
        return x * 3
    if x > 15:
        return x * 4
    if x > 14:
        return x * 5
    if x > 13:
        return x * 6
    if x > 12:
        return x * 7
    if x > 11:
        return x * 8
    if x > 10:
        return x * 9
    if x > 9:
        return x * 10
    if x > 8:
        return x * 11
    if x > 7:
        return x * 12
    if x > 6:
        return x * 13
    if x > 5:
        return x * 14
    if x > 4:
        return x * 15
    if x > 3:
        return x * 16
    if x > 2:
        return x * 17
    if x > 1:
        return x * 18
    return x


@pytest.mark.parametrize("x", [5.5, 25.5, -1.0])
def test_long_chains_take_no_exponential_time(x):
    assert_alike(jit(long_chain)(x), long_chain(x))


def chain_of_parts(x):
    inside = x[0] < 1.0 and x[1] < 2.0 and x[2] < 3.0 and x[3] < 4.0 and x[4] < 5.0 and x[5] < 6.0
    return inside or x[0] > 9.0 or x[1] > 9.0 or x[2] > 9.0 or x[3] > 9.0 or x[4] > 9.0 or x[5] > 9.0


def chain_of_comparisons(x):
    return x[0] < x[1] < x[2] < x[3] < x[4] < x[5] < np.sum(x)


def chain_of_values(x):
    s = np.sum(x)
    return s - 21.0 or s - 22.0 or s - 23.0 or s - 24.0 or s - 25.0 or s - 26.0 or s


@pytest.mark.parametrize("x", [np.arange(6.0), np.arange(1.0, 7.0), np.arange(6.0, 0.0, -1.0), np.full(6, 9.5)])
@pytest.mark.parametrize("program", [chain_of_parts, chain_of_comparisons, chain_of_values])
def test_each_operand_of_a_chain_is_traced_once(program, x, monkeypatch):
    count = 0

    def counted(*args, **options):
        nonlocal count
        count += 1
        return traced_regions.trace_region(*args, **options)

    monkeypatch.setattr(branch_statements, "trace_region", counted)
    assert_alike(jit(program)(x), program(x))
    assert count <= 2 * 12  # what follows an operand, and the operand itself


def test_what_a_function_reaches_is_gone_through_once(monkeypatch):
    calls = []

    def f(x):
        calls.append(len(calls))
        y = x * 2.0 if x.sum() > 0 else x * 3.0
        for _ in range(40):
            y = y * 1.01
        return y

    searches = []
    monkeypatch.setattr(tracing, "Reach", lambda *args: searches.append(args) or Reach(*args))
    assert_alike(jit(f)(np.ones(3)), np.ones(3) * 2.0 * 1.01**40)
    assert (len(searches), calls) == (1, [0])  # what the form did that could not be traced is undone


def test_graphs_are_traced_of_python_control_flow() -> None:
    def f(x):
        y = x * 2.0 if x.sum() > 0 else x * 3.0
        while np.sum(y) < 100.0:
            y = y * 2.0
        return np.sum(y)

    graph = wg.graph.trace(wg.grad(f))(np.ones(2))
    for x in (np.ones(2), np.array([-1.0, 2.5])):
        np.testing.assert_array_equal(graph(x)[0], wg.grad(f)(x))


def nested_whiles(x):
    t, k = x * 0.0, 0
    while t[0] < 4.0:
        while t[1] < 3.0:
            while t[0] < 2.0:
                while t[1] < 1.0:
                    t, k = t + x, k + 1
                    if t[0] > 7.0:
                        break
                t = t + 0.5
                if t[0] > 5.0:
                    break
            t = t + 0.5
        t = t + k
    return t


@pytest.mark.parametrize("x", [np.array([2.5, 0.25]), np.array([0.25, 2.5])])
def test_nested_loops_are_traced_few_times(x, monkeypatch):
    count = 0
    iteration = staged_loop.StagedLoop.iteration

    def counted(self):
        nonlocal count
        count += 1
        return iteration(self)

    monkeypatch.setattr(staged_loop.StagedLoop, "iteration", counted)
    assert_alike(jit(nested_whiles)(x), nested_whiles(x))
    assert count <= 4 * 6  # twice at each depth would be 30


def grows_by_parts(x, change):
    total, k = 0.0, 1
    while total < 4.0:
        total = total + x[1]
        if change:
            k = k + 1
        else:
            total = total + np.sum(x[:k])  # a part of which length, if k were traced?
    return total + k


def test_a_number_that_a_loop_changed_may_be_a_constant_the_next_time():
    x = np.array([1.5, 0.25])
    for change in (True, False):
        assert_alike(jit(grows_by_parts, static_argnums=1)(x, change), grows_by_parts(x, change))


def test_graphs_inside_of_chains_go_through_the_passes_once(monkeypatch):
    count = 0

    def counted(graph):
        nonlocal count
        count += 1
        return graph

    def chain(x):
        if x < 0.0:
            return x
        if x < 1.0:
            return x * 2.0
        if x < 2.0:
            return x * 3.0
        if x < 3.0:
            return x * 4.0
        if x < 4.0:
            return x * 5.0
        return x * 6.0

    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE, everywhere(counted)))
    graph = wg.graph.trace(chain)(2.5)
    assert graph(2.5)[0] == 10.0
    assert count <= 3 * 11  # the graph, and five choices of two


def stops_early(x):
    pairs = enumerate(x)
    for _, v in pairs:
        if v > 1.0:
            break
    return next(pairs)[1]


def some_of_a_generator(x):
    return any(v > 1.0 for v in x)


def test_iterators_that_others_see_are_not_gone_through() -> None:
    x = np.array([0.5, 2.0, 3.0])
    with pytest.raises(UsageError, match="an iterator of type enumerate, which a traced condition ends early"):
        jit(stops_early)(x)
    assert jit(some_of_a_generator)(x) == some_of_a_generator(x)


def test_items_of_a_loop_are_given_to_nobody_else():
    def f(x):
        s = x * 0.0
        if x > 0.0:
            s = s + 1.0
        for a in next(zip([x, 2.0 * x], [3.0 * x, x], strict=True)):
            s = s + a
        return s

    assert wg.jit(f)(2.0) == f(2.0) == 9.0


def test_a_default_is_for_one_iterable():
    with pytest.raises(TypeError, match="default"):
        wg.jit(lambda x: max(x, 2.0, default=5.0) + (1.0 if x > 0.0 else x))(1.0)


def test_truths_of_whole_arrays_decide_under_jit_and_in_lanes():
    def settled(x, goal):
        steps = 0
        while not np.allclose(x, goal, atol=1e-3):
            x = (x + goal) / 2
            steps += 1
        if np.array_equal(x, goal) or np.array_equiv(x, goal):
            return np.sum(x) * 0
        return np.sum(x) * steps

    x, goal = np.array([4.0, 9.0]), np.array([2.0, 3.0])
    for start in (x, goal):
        assert wg.jit(settled)(start, goal) == settled(start, goal)
        np.testing.assert_allclose(wg.jit(wg.grad(settled))(start, goal), wg.grad(settled)(start, goal))
    lanes = wg.vmap(lambda x: np.allclose(x, goal))(np.stack([x, goal]))
    assert lanes.tolist() == [False, True]
    assert type(np.allclose(wg.tensor(x), goal)) is bool


def test_iterations_that_are_not_reached_raise_nothing() -> None:
    """Also where they would ask what is in no variable."""

    def f(x, k):
        found = 0.0
        for v, place in [(x[0], k), (-x[0], k + 5), (x[1], k)]:
            if v < 0:
                raise ValueError("negative")
            if v > x[place]:
                found = v
                break
        return found

    x = np.array([0.5, 3.0, 0.25])
    for run in (wg.jit(f), wg.jit(wg.grad(f)), lambda x, k: wg.jit(wg.vmap(f, in_axes=(0, None)))(x[None], k)[0]):
        np.testing.assert_array_equal(run(x, 2), [1.0, 0, 0] if run(x, 2).ndim else f(x, 2))
    with pytest.raises(ValueError, match="negative"):
        wg.jit(f)(x, 1)
    with pytest.raises(IndexError):
        wg.jit(f)(x, 5)
