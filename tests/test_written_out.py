"""Loops of many rounds that nothing traced decides about: one equation where rounds are the same program."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.conversion import known_numbers, tabulated_calls
from wengert.core.graph.graph import evaluate
from wengert.errors import GraphError

ROUNDS = 32
MATRIX = np.array([[0.4, -0.3], [0.2, 0.5]])
ROUNDS_RUN, ITEMS = 0, iter(())
TABLE = np.linspace(-1, 1, ROUNDS).tolist()


def rows_and_states(x, zs):
    means, pairs = [x], []
    for z in zs:
        x = np.tanh(MATRIX @ x + z)
        means.append(x)
        pairs.append((x * z[0], x.sum()))
    return (np.stack(means) ** 2).sum() + pairs[-1][0][1] * pairs[3][1] + len(means) + x[0]


def numbers_and_rows(x, zs):
    total, steps = 0, 0
    for i, (a, b) in enumerate(zip(zs[1:], reversed(zs[:-1]), strict=True), 3):
        total = total + a * b * x / i + i % 3 * 0.9**i
        steps += 1
    return (total**2).sum() * steps * i


def indices_and_writes(x, zs):
    u, v = wnp.zeros(ROUNDS + 2), zs * 1
    for i in range(ROUNDS, 0, -1):
        if i % 7 == 0:
            continue
        u[i] = u[i + 1] * 0.5 + zs[i] @ x
        v[i] += v[i - 1] * TABLE[i - 1]
    return (u**2).sum() + (v * x).sum() + np.ones(i).sum()


def early_end(x, zs):
    best = previous = x * 0
    for c, z in zip(TABLE, zs, strict=False):
        previous, best = best, best + z * x * c
        if best[0] > 1.5:
            break
    else:
        best = best * 2
    return (best * previous).sum()


def rows_read_again(x, zs):
    levels, level = [], x
    for z in zs:
        level = 0.8 * level + 0.2 * z
        levels.append(level)
    total = levels[-1]
    for level in reversed(levels):
        total = 0.5 * total + level**2
    return (sum(levels) * total).sum()


def nested(x, zs):
    table = []
    for i in range(ROUNDS):
        row = []
        for j in range(3):
            row.append(zs[i, 0] * x[1] * zs[j, 1] + i - j)
        table.append(np.stack(row))
    return (np.stack(table) ** 2).sum()


def a_number_is_a_shape(x, zs):
    steps, total = 0, 0.0
    for z in zs:
        steps, total = steps + 1, total + z @ x
    return (np.ones(steps) * total).sum()


class Counter:
    def __init__(self):
        self.rounds = 0


def numbers_are_looked_at_afterwards(x, zs):
    global ROUNDS_RUN
    steps, share, flag, total, places, last, previous = 0, 0.5, False, 0.0, [], 0, 0
    counter, ROUNDS_RUN, same = Counter(), 0, 0
    for i, z in enumerate(zs):
        steps, share, flag = steps + 2, share * 0.75, not flag
        ROUNDS_RUN += 1
        counter.rounds += i
        previous, last, same = last, i, True
        half, rest = divmod(i, 2)
        places.append(half)
        total = total * 0.9 + z @ x
    known = {"66": 2.0, 528: 3.0, True: 5.0, 16: 7.0}
    kinds = [type(v) for v in (steps, share, flag, rest, ROUNDS_RUN, places[-1], same)]
    assert kinds == [int, float, bool, int, int, int, bool], kinds
    assert (previous, last) == (i - 1, i)
    return total * known.get(f"{steps}", 1.0) * known.get(counter.rounds, 1.0) * known[flag] * known[places[-1]] * share


MATRICES = np.random.default_rng(5).normal(size=(4, 3, 2)) * 0.4


def matrices_take_turns(x, zs):
    for i, z in enumerate(zs):
        part = MATRICES[i % 4, 1:]
        x = part @ x + z
    return x.sum() + part[0, 1] * x[0]


def numbers_are_given_to_python(x, zs):
    step, total = 0.1, x * 0
    for i, z in enumerate(zs[1:], 2):
        window, share = math.sin(i * step) ** 2, float(i // 3)
        for k in range(2, 2 * ROUNDS + 2, 2):
            total = total + math.gcd(k, 12) * 1e-3 * x
        total = total + window * z * x + share
    return (total * window).sum() * {float: 1.0, int: 2.0}[type(share)]


def carried_numbers_are_given_to_python(x, zs):
    time, phase, last = 0.0, 0.25, [0.5]
    for z in zs:
        phase += math.sin(time) * 0.1
        for _ in range(2 * ROUNDS):
            time += 1e-3
            x = x * 0.99 + math.cos(time) * z * 1e-2
        last[0], time = math.log(2 + phase), time + 0.1
        x = 0.5 * x * last[0] + math.floor(time)
    return x.sum() * float(f"{time + phase:.3f}")


def damped(x, z):
    return np.tanh(x) + 0.1 * z


def last_items_are_read(x, zs):
    times, states, pairs = [0.0], [x, 0.5 * x], [(x[0], x[1])]
    for z in zs:
        states.append(0.5 * states[-1] - 0.1 * states[-2] + z * np.cos(times[-1]))
        pairs.append((0.9 * pairs[-1][1], states[-1][0]))
        times.append(times[-1] + 0.1)
    return (np.stack(states).sum(0) * sum(states)) @ x + pairs[-1][0] * times[-1] + pairs[3][1]


class Recorder:
    scale = 0.5

    def __init__(self, x):
        self.states, self.state, self.rounds, self.scale = [x], x, 0, 0.25

    def run(self, zs):
        for z in zs:
            self.state = self.scale * self.state + 0.1 * self.states[-1] + z
            self.states.append(self.state)
            self.rounds += 1

    def last(self):
        return self.states[-1] * len(self.states)

    def run_by_a_method(self, zs):
        for z in zs:
            self.states.append(0.01 * self.last() + z)


def an_attribute_is_appended_to(x, zs):
    recorder = Recorder(x)
    recorder.run(zs)
    return np.stack(recorder.states).sum(0) @ recorder.state * recorder.rounds


def few_rounds_of_stages(x, zs):
    for z in zs[:16]:
        x = x + 0.1 * damped(damped(damped(x, z), z), z)
    return x @ x


@pytest.mark.parametrize(
    ("program", "loops"),
    [
        (few_rounds_of_stages, 1),
        (rows_and_states, 1),
        (numbers_and_rows, 1),
        (indices_and_writes, 1),
        (early_end, 1),
        (rows_read_again, 3),
        (nested, 1),
        (a_number_is_a_shape, 1),
        (numbers_are_looked_at_afterwards, 1),
        (numbers_are_given_to_python, 1),
        (carried_numbers_are_given_to_python, 1),
        (matrices_take_turns, 1),
        (last_items_are_read, 2),
        (an_attribute_is_appended_to, 1),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_many_rounds_are_one_equation(program, loops):
    x, zs = np.array([0.3, -0.7]), np.random.default_rng(3).normal(size=(ROUNDS + 1, 2))
    graph = wg.graph.trace(program)(x, zs)
    assert sum(e.primitive.name in ("scan", "while_loop") for e in graph.equations) == loops
    assert len(graph.equations) < 40
    value, slopes = wg.value_and_grad(program, argnums=(0, 1))(x, zs)
    found = wg.jit(wg.value_and_grad(program, argnums=(0, 1)))(x, zs)
    np.testing.assert_allclose(found[0], value, rtol=1e-12)
    for one, other in zip(found[1], slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def counter_alone(x):
    i = 5
    for i in range(1000):
        x = x * 0.5 + i
    return x * i


def test_numbers_that_nobody_carries_are_those_of_the_last_round(monkeypatch):
    rounds = []
    monkeypatch.setattr(known_numbers, "evaluate", lambda *given: rounds.append(1) or evaluate(*given))
    assert wg.graph.trace(counter_alone)(1.0)(1.0)[0] == counter_alone(1.0)
    assert len(rounds) == 1


def test_calls_in_rounds_evaluate_what_no_call_before_did(monkeypatch):
    def evaluated(calls):
        def called_again_and_again(x, zs):
            time = 0.0
            for z in zs:
                for _ in iter(range(calls)):  # an iterator, so that it is written out
                    time += 0.1
                    x = x * 0.5 + math.cos(time) * z
            return x.sum()

        equations = []
        monkeypatch.setattr(
            tabulated_calls, "evaluate", lambda graph, args: equations.extend(graph.equations) or evaluate(graph, args)
        )
        wg.graph.trace(called_again_and_again)(np.ones(2), np.ones((ROUNDS + 1, 2)))
        return len(equations)

    assert 0 < evaluated(16) < 3 * evaluated(8)


def a_function_reads_a_list(x, zs):
    out, state = [], x

    def count():
        return 0.01 * len(out)

    for z in zs:
        state = 0.5 * state + z + count()
        out.append(state)
    return np.stack(out).sum(0) @ x


def an_item_before_the_last_is_written_to(x, zs):
    out = [x * 1.0, x * 2.0]
    for z in zs:
        out.append(0.5 * out[-1] + z)
        out[-2][0] = 0.25
    return np.stack(out).sum(0) @ x


def a_list_has_another_name(x, zs):
    out = []
    other = (out,)
    for z in zs:
        out.append(z * x * len(other[0]))
    return np.stack(out).sum()


def lists_take_turns(x, zs):
    lists = [], []
    for i, z in enumerate(zs):
        lists[i % 2].append(z @ x)
    return sum(lists[0]) * len(lists[1])


def an_appended_array_is_written_to(x, zs):
    x, out = x * 1, []
    for z in zs:
        x *= 0.9
        x = x + z
        out.append(x)
    return (np.stack(out) ** 2).sum()


def an_appended_row_of_an_array_is_written_to(x, zs):
    out, products = [x], zs * x
    for i, z in enumerate(zs):
        out.append(products[i])
        x = 0.5 * out[-2] + z
    products[3] = 1.0
    return np.stack(out).sum(0) @ x


def an_appended_container_has_another_name(x, zs):
    out = [[x]]
    for z in zs:
        last = [0.5 * out[-1][0] + z]
        out.append(last)
    last.append(3.0)
    return sum(items[0] @ x for items in out) * sum(map(len, out))


def the_container_that_was_last_has_another_name(x, zs):
    out = [{"state": x, "weight": 1.0}]
    for z in zs:
        last = out[-1]
        out.append({"state": 0.5 * last["state"] + z, "weight": 1.0})
    last["weight"] = 5.0
    return sum(item["state"] * item["weight"] for item in out) @ x


def a_container_of_outside_is_appended(x, zs):
    out, pair = [], [x]
    for z in zs:
        x = 0.9 * x + z
        out.append(pair)
    pair.append(3.0)
    return sum(map(len, out)) * x.sum()


def a_method_reads_a_list(x, zs):
    recorder = Recorder(x)
    recorder.run_by_a_method(zs)
    return np.stack(recorder.states).sum(0) @ x


def an_object_with_a_list_has_another_name(x, zs):
    recorder = other = Recorder(x)
    for z in zs:
        recorder.states.append(0.01 * len(other.states) * x + z)
    return np.stack(recorder.states).sum(0) @ x


def a_row_is_written_to(x, zs):
    zs, total = zs * 1, 0.0
    for z in zs:
        z[0] = x[0]
        total = total + z @ x
    return total + zs.sum()


def numbers_grow(x, _zs):
    product, total = 1, 0.0
    for i in range(1, ROUNDS + 1):
        product = product * i
        total = total + x.sum() ** 2 / product + 2**i * x[0] / 2**ROUNDS
    return total


def types_are_asked(x, zs):
    total, names = 0.0, {f"k{i}": float(i) for i in range(ROUNDS)}
    for i in range(ROUNDS):
        total = total + zs[i] @ x * (names.get(f"k{i}", 0.5) if isinstance(i, int) else 2)
    return total


def random_numbers_are_drawn(x, zs):
    numbers, total = random.Random(3), 0.0
    for z in zs:
        total = total + z @ x * numbers.random()
    return total


def an_index_may_fail(x, zs):
    total = 0.0
    for i in range(ROUNDS):
        try:
            total = total * 0.9 + zs[i + 2] @ x
        except IndexError:
            total = total * 2
    return total


def a_matrix_that_took_turns_is_written_to(x, zs):
    matrices = MATRICES[:, 1:] * 1.0
    for i, z in enumerate(zs):
        part = matrices[i % 4]
        x = part @ x + z
    matrices[(len(zs) - 1) % 4] += 1.0
    return (part @ x).sum()


def a_view_of_a_matrix_is_written_to(x, zs):
    matrices = MATRICES[:, 1:] * 1.0
    for i, z in enumerate(zs):
        part = matrices[i % 4]
        row = part[0]
        row *= 0.9
        x = part @ x + z
    return x.sum() + matrices[1, 0, 0]


def a_result_of_python_is_carried_to_its_call(x, zs):
    time = 0.0
    for z in zs:
        time, x = time + math.exp(-time), x * math.exp(-time) + z
    return x.sum()


def shapes_grow(x, zs):
    for z in zs:
        x = np.concatenate([x, z[:1] * x[:1]])
    return x.sum()


@pytest.mark.parametrize(
    "program",
    [
        a_function_reads_a_list,
        an_item_before_the_last_is_written_to,
        a_list_has_another_name,
        lists_take_turns,
        an_appended_array_is_written_to,
        an_appended_row_of_an_array_is_written_to,
        an_appended_container_has_another_name,
        the_container_that_was_last_has_another_name,
        a_container_of_outside_is_appended,
        a_method_reads_a_list,
        an_object_with_a_list_has_another_name,
        a_row_is_written_to,
        numbers_grow,
        types_are_asked,
        random_numbers_are_drawn,
        an_index_may_fail,
        shapes_grow,
        a_result_of_python_is_carried_to_its_call,
        a_matrix_that_took_turns_is_written_to,
        a_view_of_a_matrix_is_written_to,
    ],
    ids=lambda x: x.__name__,
)
def test_rounds_that_are_not_the_same_are_written_out(program):
    x, zs = np.array([0.3, -0.7]), np.random.default_rng(3).normal(size=(ROUNDS + 1, 2))
    graph = wg.graph.trace(program)(x, zs)
    assert len(graph.equations) > ROUNDS
    np.testing.assert_allclose(graph(x, zs)[0], program(x, zs), rtol=1e-12)


def test_patterns_are_those_of_the_loop_written_out():
    def steps(x):
        out = wnp.zeros(ROUNDS + 8)
        for i in range(1, ROUNDS + 7):
            out[i] = x[i - 1] * x[i] + x[i + 1]
        return out

    assert wg.sparse.jacobian_pattern(steps, np.ones(ROUNDS + 8)).nnz == 3 * (ROUNDS + 6)


DRAWS = {
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": lambda: np.random.rand(),
    "items": lambda: next(ITEMS),
}


@pytest.mark.parametrize(("name", "begins"), [(name, begins) for name in DRAWS for begins in (False, True)])
def test_what_is_drawn_is_drawn_once(name, begins):
    draw = DRAWS[name]

    def drawing(x):
        total = draw()
        if begins and x[0] > 0:
            total = total + 1
        for v in x:
            total = total * 0.9 + v * draw()
        return total

    def afresh(function):
        global ITEMS
        random.seed(3)
        np.random.seed(3)
        ITEMS = iter(range(5, 100))
        return function(np.ones(ROUNDS + 8))

    assert afresh(wg.jit(drawing)) == pytest.approx(afresh(drawing), rel=1e-13)


@pytest.mark.parametrize("name", ["random", "gauss", "numpy"])
def test_how_many_numbers_are_drawn_is_not_up_to_traced_values(name):
    draw = DRAWS[name]

    def choosing(x):
        if x[0] > 0:
            x = x + draw()
        return x

    with pytest.raises(GraphError, match="random numbers drawn where a traced value decides"):
        wg.jit(choosing)(np.ones(2))


def test_what_is_printed_is_printed_in_each_round(capsys):
    @wg.jit
    def told(x):
        for i in range(ROUNDS):
            x = x * 0.9
            print(i)
        return x

    told(1.0)
    assert capsys.readouterr().out.split() == [str(i) for i in range(ROUNDS)]


def test_an_index_out_of_bounds_is_an_error():
    def beyond(x):
        total = 0.0
        for i in range(ROUNDS):
            total = total + x[i + 1] * 2
        return total

    with pytest.raises(IndexError):
        wg.jit(beyond)(np.ones(ROUNDS))
