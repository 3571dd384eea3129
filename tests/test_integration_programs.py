"""Programs of `solve_ivp`: which are kept, what they see, what functions may do besides."""

import dataclasses
import types
import weakref

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import wengert as wg
from wengert import optim
from wengert.conversion.operations import convert
from wengert.errors import GraphError
from wengert.scipy.integrate import _programs, solve_ivp
from wengert.transforms.outer_values import OuterValues

SCALE = 2.0


def test_programs_are_kept_and_see_what_changes(monkeypatch):
    """Functions made anew share a program; captured and global floats are its arguments, other values are compared."""
    monkeypatch.setattr(_programs, "PROGRAMS", _programs.FunctionCache(8))

    def end(k, power, table):
        model = lambda y: table["rate"] * k * y**power
        return solve_ivp(lambda t, y: -SCALE * model(y), (0.0, 1.0), [1.0], rtol=1e-6).y[0, -1]

    found = [end(k, 1, {"rate": np.float64(0.5)}) for k in (1.0, 2.0)]
    np.testing.assert_allclose(found, np.exp([-1.0, -2.0]), rtol=1e-5)
    monkeypatch.setattr(f"{__name__}.SCALE", 4.0)
    np.testing.assert_allclose(end(1.0, 1, {"rate": np.float64(0.5)}), np.exp(-2.0), rtol=1e-5)
    program = next(iter(_programs.PROGRAMS.known.values())).made
    assert len(_programs.PROGRAMS.known) == 1
    assert program.from_start.trace_count == 1
    np.testing.assert_allclose(end(1.0, 2, {"rate": np.float64(0.5)}), 1 / 3, rtol=1e-5)

    def bounce(kept):
        event = lambda t, y: y[0]
        event.direction, event.reset = -1, lambda t, y: [y[0], -kept * y[1]]
        return solve_ivp(lambda t, y: [y[1], -1.0], (0.0, 2.0), [0.5, 0.0], events=event, t_eval=[2.0]).y[1, 0]

    known = len(_programs.PROGRAMS.known)
    np.testing.assert_allclose([bounce(kept) for kept in (0.5, 0.6)], [-0.5, -0.4], rtol=1e-9)
    assert len(_programs.PROGRAMS.known) == known + 1  # what changes states is an attribute

    class Model:
        def __init__(self):
            self.rate, self.seen = 1.0, []

        def slope(self, t, y):
            return -self.rate * y

        def watch(self, t, y):
            self.seen.append(t)
            return -y

    model = Model()
    for rate in (1.0, 3.0):
        model.rate = rate
        np.testing.assert_allclose(solve_ivp(model.slope, (0, 1), [1.0], rtol=1e-6).y[0, -1], np.exp(-rate), rtol=1e-4)
    with pytest.raises(GraphError, match="seen"):
        wg.grad(lambda y: solve_ivp(model.watch, (0, 1), y).y[0, -1])(np.ones(1))


STATE = {"rate": 1.0}


class Answering:
    def __getattr__(self, name):
        return STATE[name]


class Base:
    rate = 1.0


class Derived(Base):
    def __mul__(self, y):
        return Base.rate * y


def with_attribute(t, y):
    return with_attribute.rate * y


def in_module(module):
    return lambda t, y: module.rate * y


def twice(rate):
    """Return a slope that reads a function by a variable and by a default, and what sets the number that it holds."""

    def half(y):
        return rate * y / 2

    def set_rate(value):
        nonlocal rate
        rate = value

    return lambda t, y, other=half: half(y) + other(y), set_rate


@dataclasses.dataclass
class Rates:
    rate: float
    name: str = "decay"
    further: tuple[float, ...] = (1.0,)


RATES = Rates(1.0)
ANSWERING, DERIVED, BUFFER = Answering(), Derived(), bytearray([1])
MODULE, (TWICE, SET_RATE) = types.ModuleType("rates"), twice(1.0)
MASKED = np.ma.array([1.0, 0.0], mask=[False, True])
VIEW, REFERENCE, PROXY = memoryview(BUFFER), weakref.ref(Derived), types.MappingProxyType(STATE)


@pytest.mark.parametrize(
    "slope",
    [
        with_attribute,
        wg.checkpoint(with_attribute),
        lambda t, y: ANSWERING.rate * y,
        lambda t, y: DERIVED * y,
        lambda t, y: REFERENCE().rate * y,
        lambda t, y: float(VIEW[0]) * y,
        lambda t, y: PROXY["rate"] * y,
        in_module(MODULE),
        lambda t, y, modules=[MODULE]: modules[0].rate * y,
        TWICE,
        lambda t, y: MASKED.sum() * y,
        lambda t, y: RATES.rate * RATES.further[0] * y,
    ],
)
def test_no_program_outlives_what_it_read(slope):
    for rate in (1.0, 2.0, 2.0, 3.0):  # what stays the same is not taken apart again
        with_attribute.rate = Base.rate = STATE["rate"] = rate
        BUFFER[0], MASKED[0], MODULE.rate = int(rate), rate, rate
        RATES.rate = rate
        SET_RATE(rate)
        found = solve_ivp(slope, (0.0, 0.1), [1.0], rtol=1e-3).y[0, -1]
        np.testing.assert_allclose(found, np.exp(0.1 * rate), rtol=1e-3)


def with_power(rate):
    power = 1

    def slope(t, y):
        return -rate * y**power

    def rebind(value):
        nonlocal power
        power = value

    return slope, rebind


def test_programs_do_not_see_what_is_rebound_in_another_function_of_their_code():
    for solve in (
        lambda slope, size: solve_ivp(slope, (0.0, 1.0), np.ones(size), rtol=1e-6).y[:, -1],
        lambda slope, size: optim.root(lambda x: slope(0.0, x) + 1.0, np.ones(size), method="newton").x,
    ):
        made = [with_power(rate) for rate in (0.5, 2.0)]
        for slope, rebind in made:
            solve(slope, 1)
            rebind(3)
        for size in (1, 2):  # traced anew for the second
            want = np.exp(-1.5) if "solve_ivp" in solve.__code__.co_names else 1 / 1.5
            np.testing.assert_allclose(solve(with_power(1.5)[0], size), want, rtol=1e-5)


def test_programs_are_kept_for_functions_that_have_been_converted():
    outer = OuterValues((convert(with_power(2.0)[0]),))
    assert outer.is_complete
    assert outer.leaves == [2.0]


def test_functions_may_look_at_the_numbers_they_hold_and_branch_on_states():
    def repeated(count):
        return lambda t, y: -sum([y] * int(count))

    for count in (2.0, 3.0):
        found = solve_ivp(repeated(count), (0.0, 1.0), [1.0], rtol=1e-6)
        np.testing.assert_allclose(found.y[0, -1], np.exp(-count), rtol=1e-4)

    def end(start, numbers):  # a transformation sees no refusal of what was tried in vain
        return solve_ivp(lambda t, y: -np.array(numbers) * y, (0.0, 1.0), start * np.ones(1), rtol=1e-6).y[0, -1]

    np.testing.assert_allclose(wg.grad(end)(1.0, [2.0]), np.exp(-2.0), rtol=1e-4)

    def thermostat(t, y, k):
        if y[0] > 0.5:
            return -k * y
        return -2.0 * k * y

    want = scipy.integrate.solve_ivp(thermostat, (0, 2), [1.0], args=(1.0,))
    np.testing.assert_allclose(solve_ivp(thermostat, (0, 2), [1.0], args=(1.0,)).y, want.y, rtol=1e-9)


def appending(log):
    def slope(t, y):
        log.append(t)
        return -y

    return slope


def counting(count):
    def slope(t, y):
        nonlocal count
        count += 1.0
        return -y

    return slope


def writing(array):
    def slope(t, y):
        array[0] += 1.0
        return -y

    return slope


@pytest.mark.parametrize("slope", [appending([]), appending([0.5]), counting(0.0), writing(np.ones(2))])
def test_what_functions_do_besides_is_refused_where_derivatives_are_taken_and_left_to_scipy_elsewhere(slope):
    found = solve_ivp(slope, (0.0, 1.0), [1.0])
    assert np.array_equal(found.y, scipy.integrate.solve_ivp(slope, (0.0, 1.0), [1.0]).y)
    with pytest.raises(GraphError, match=r"not its own|from outside"):
        wg.grad(lambda y: solve_ivp(slope, (0.0, 1.0), y, t_eval=[1.0]).y[0, 0])(np.ones(1))


def test_functions_that_change_what_they_capture_whenever_they_are_traced_are_refused():
    """Where no loop is traced around them, the program that holds them tells."""
    numbers = [0.0]

    def slope(t, y):
        numbers[0] += 1.0
        return -y

    def end(y):
        return solve_ivp(slope, (0.0, 1.0), y, "LSODA", [1.0], events=lambda t, y: y[0] - 0.5).y[0, -1]

    with pytest.raises(GraphError, match=r"solve_ivp: a function that changes numbers\[0\], which is not its own"):
        wg.grad(end)(np.ones(1))


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_what_functions_write_to_their_arguments_is_seen_by_that_call_alone(method):
    def slope(t, y, a):
        y *= a
        a *= 2.0
        return y

    def event(t, y, a):
        y -= a
        return y[0]

    def looking(t, y, a):
        return slope(t, y, a) * (1.0 if float(a[0]) > 0 else 0.0)

    for fun in slope, looking:
        a, y0 = np.array([2.0]), np.ones(1)
        found = solve_ivp(fun, (0.0, 1.0), y0, method, events=event, args=(a,), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.y[0, -1], np.exp(2.0), rtol=1e-6)
        np.testing.assert_allclose(found.t_events[0], [np.log(2.0) / 2.0], rtol=1e-6)
        assert (a[0], y0[0]) == (2.0, 1.0)
