"""Tests of `custom_rule`: every subset of rules in every mode, containers, and what is said about wrong rules."""

from __future__ import annotations

import itertools
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of, together
from tests.samples.base import normal
from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.graph import subgraphs
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.testing import check_grads
from wengert.traces.rules.calls import InGraph

SUBSETS = [subset for n in range(4) for subset in itertools.combinations(("vjp", "jvp", "batch"), n)]
X, Y = np.array([0.5, -1.5]), np.array([2.0, 0.3])


def plain(x: Any, y: Any) -> Any:
    """Return two results in a dict, of two arguments."""
    return {"product": np.sin(x) * y, "sum": np.sum(x * x)}


def scaled(subset: tuple[str, ...], calls: list[str]) -> Any:
    """Return `plain` with some rules, which note their calls."""

    @wg.custom_rule
    def f(x: Any, y: Any) -> Any:
        return plain(x, y)

    def forward(x: Any, y: Any) -> Any:
        calls.append("vjp")
        return plain(x, y), (x, y)

    def backward(residuals: Any, ct: Any) -> Any:
        x, y = residuals
        return ct["product"] * np.cos(x) * y + 2 * x * ct["sum"], ct["product"] * np.sin(x)

    def push(primals: Any, tangents: Any) -> Any:
        calls.append("jvp")
        (x, y), (t_x, t_y) = primals, tangents
        return plain(x, y), {"product": np.cos(x) * y * t_x + np.sin(x) * t_y, "sum": np.sum(2 * x * t_x)}

    def batch(size: int, batched: Any, x: Any, y: Any) -> Any:
        calls.append("batch")
        out = {"product": np.sin(x) * y, "sum": np.sum(x * x, axis=-1)}
        return out, {"product": any(batched), "sum": batched[0]}

    if "vjp" in subset:
        f.defvjp(forward, backward)
    if "jvp" in subset:
        assert f.defjvp(push) is push
    if "batch" in subset:
        assert f.defbatch(batch) is batch
    return f


def total(f: Any) -> Any:
    """Return a scalar function of one array made from the function of two."""

    def g(x: Any) -> Any:
        out = f(x, Y * x)
        return np.sum(out["product"]) * out["sum"]

    return g


@pytest.fixture(autouse=True)
def _loops_are_allowed() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: .* has no batch rule")
        yield


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_first_derivatives(subset: tuple[str, ...]) -> None:
    calls: list[str] = []
    f = scaled(subset, calls)
    assert wg.grad(total(f))(X) == pytest.approx(wg.grad(total(plain))(X))
    assert wg.jvp(total(f), (X,), (Y,)) == pytest.approx(wg.jvp(total(plain), (X,), (Y,)))
    assert set(calls) == set(subset) - {"batch"}
    check_grads(f, (X, Y), order=2)


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_higher_derivatives(subset: tuple[str, ...]) -> None:
    f, g = total(scaled(subset, [])), total(plain)
    np.testing.assert_allclose(wg.hessian(f)(X), wg.hessian(g)(X))
    np.testing.assert_allclose(wg.jacrev(wg.grad(f))(X), wg.hessian(g)(X))
    np.testing.assert_allclose(wg.hvp(f, (X,), (Y,)), wg.hvp(g, (X,), (Y,)))
    for outer, inner in itertools.product((wg.jacfwd, wg.jacrev), repeat=2):
        np.testing.assert_allclose(outer(inner(wg.grad(f)))(X), wg.jacfwd(wg.hessian(g))(X))
    np.testing.assert_allclose(wg.taylor(f, (X,), (Y,), 4), wg.taylor(g, (X,), (Y,), 4))


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_vmap(subset: tuple[str, ...]) -> None:
    calls: list[str] = []
    f, lanes = scaled(subset, calls), normal(3, 2)
    for axes, args in (((0, None), (lanes, Y)), ((None, 0), (X, lanes)), ((0, 0), (lanes, lanes[::-1]))):
        found, wanted = wg.vmap(f, axes)(*args), wg.vmap(plain, axes)(*args)
        np.testing.assert_allclose(found["product"], wanted["product"])
        np.testing.assert_allclose(found["sum"], wanted["sum"])
    assert set(calls) == set(subset) & {"batch"}
    square = np.stack([lanes, lanes + 1])
    np.testing.assert_allclose(
        wg.vmap(wg.vmap(f, (0, None)), (0, None))(square, Y)["product"], plain(square, Y)["product"]
    )


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_derivatives_of_vmap_use_the_rules_too(subset: tuple[str, ...]) -> None:
    calls: list[str] = []
    f, lanes = scaled(subset, calls), normal(3, 2)

    def shared(f: Any) -> Any:
        return lambda x, y: np.sum(wg.vmap(f, (0, None))(x, y)["product"] ** 2)

    for argnum in (0, 1):
        np.testing.assert_allclose(wg.grad(shared(f), argnum)(lanes, Y), wg.grad(shared(plain), argnum)(lanes, Y))
        np.testing.assert_allclose(
            wg.hessian(shared(f), argnum)(lanes, Y), wg.hessian(shared(plain), argnum)(lanes, Y), atol=1e-14
        )
    assert wg.jvp(shared(f), (lanes, Y), (lanes, Y)) == pytest.approx(wg.jvp(shared(plain), (lanes, Y), (lanes, Y)))
    assert set(calls) >= set(subset)
    np.testing.assert_allclose(wg.vmap(wg.grad(total(f)))(lanes), wg.vmap(wg.grad(total(plain)))(lanes))


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_the_tape(subset: tuple[str, ...]) -> None:
    f, x = total(scaled(subset, [])), wg.tensor(X, requires_grad=True)
    (slope,) = wg.autograd.grad(f(x), x, create_graph=True)
    (slope * slope).sum().backward()
    gradient, hessian = wg.grad(total(plain))(X), wg.hessian(total(plain))(X)
    np.testing.assert_allclose(slope.detach(), gradient)
    np.testing.assert_allclose(x.grad, 2 * hessian @ gradient)


def test_the_given_rule_is_used_even_if_it_is_not_the_derivative() -> None:
    @wg.custom_rule
    def clipped(x: Any) -> Any:
        return x * 1.0

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    assert wg.grad(lambda x: 100 * clipped(x))(2.0) == 1.0
    assert wg.vmap(wg.grad(lambda x: 100 * clipped(x)))(X).tolist() == [1.0, 1.0]
    x = wg.tensor(2.0, requires_grad=True)
    (100 * clipped(x)).backward()
    assert x.grad.item() == 1.0


# Arguments and results


def test_containers_and_arguments_that_are_no_arrays() -> None:
    @wg.custom_rule
    def f(tree: Any, name: str, power: int, table: Any) -> Any:
        assert name == "name"
        return [tree["a"][0] ** power * tree["b"], {"n": tree["b"] * table[1]}]

    def backward(residuals: Any, ct: Any) -> Any:
        (a,), b, power, table = residuals
        return (
            {"a": [np.sum(ct[0] * power * a ** (power - 1) * b)], "b": ct[0] * a**power + ct[1]["n"] * table[1]},
            None,
            None,
            None,
        )

    def push(primals: Any, tangents: Any) -> Any:
        tree, _, power, table = primals
        t, t_name, t_power, _ = tangents
        assert (t_name, np.shape(t_power)) == (None, ())
        (a,), b = tree["a"], tree["b"]
        moved = power * a ** (power - 1) * b * t["a"][0] + a**power * t["b"]
        return f(*primals), [moved, {"n": t["b"] * table[1]}]

    g = lambda tree: f(tree, "name", 3, np.array([1, 5]))
    tree = {"a": [np.float64(2.0)], "b": np.ones(2)}
    for rules in (0, 1, 2, 3):
        f.forward = f.backward = f.pushforward = None
        if rules & 1:
            f.defvjp(
                lambda tree, _, power, table: (f(tree, "name", power, table), (tree["a"], tree["b"], power, table)),
                backward,
            )
        if rules & 2:
            f.defjvp(push)
        check_grads(g, (tree,), order=2)
        _, pullback = wg.vjp(g, tree)
        (ct,) = pullback([np.ones(2), {"n": np.zeros(2)}])
        assert ct["a"][0] == 24.0
        np.testing.assert_array_equal(ct["b"], [8.0, 8.0])
        lanes = {"a": [np.array([1.0, 2.0])], "b": np.ones((2, 2))}
        np.testing.assert_allclose(wg.vmap(g)(lanes)[0], [[1, 1], [8, 8]])


@pytest.mark.parametrize("tree", [(2.0, 3.0), [2.0, 3.0], ([2.0], (3.0, ())), (np.full(2, 2.0), [np.full(2, 3.0)])])
def test_cotangents_of_tuples_and_lists(tree: Any) -> None:
    @wg.custom_rule
    def f(tree: Any) -> Any:
        a, b = wg.tree.leaves(tree)
        return np.sum(a * b)

    def forward(tree: Any) -> Any:
        return f(tree), tree

    def backward(tree: Any, ct: Any) -> Any:
        a, b = wg.tree.leaves(tree)
        return (wg.tree.structure(tree).unflatten([10 * ct * b, 10 * ct * a]),)

    f.defvjp(forward, backward)
    for gradient in (wg.grad(f), wg.jit(wg.grad(f))):
        found = gradient(tree)
        assert wg.tree.structure(found) == wg.tree.structure(tree)
        assert [np.max(x) for x in wg.tree.leaves(found)] == [30.0, 20.0]
    f.defvjp(forward, lambda tree, ct: ({"a": ct, "b": ct},))
    with pytest.raises(UsageError, match=r"a cotangent of structure \{'a': \*, 'b': \*\}; that of its argument, [(\[]"):
        wg.grad(f)(tree)


def test_none_for_arguments_without_a_cotangent() -> None:
    @wg.custom_rule
    def f(x: Any, tree: Any) -> Any:
        return x * tree["a"] + tree["b"]

    f.defvjp(lambda x, tree: (f(x, tree), tree), lambda tree, ct: (ct * tree["a"], {"a": None, "b": ct}))
    tree = {"a": 3.0, "b": 1.0}
    assert wg.grad(f, (0, 1))(2.0, tree) == (3.0, {"a": 0.0, "b": 1.0})
    f.defvjp(lambda x, tree: (f(x, tree), tree), lambda tree, ct: (None, None))
    assert wg.grad(f, (0, 1))(2.0, tree) == (0.0, {"a": 0.0, "b": 0.0})
    assert wg.jvp(f, (2.0, tree), (1.0, tree))[1] == 0.0


def test_arguments_by_keyword() -> None:
    @wg.custom_rule
    def f(x: Any, factor: float = 2.0) -> Any:
        return x * factor

    f.defvjp(lambda x, factor: (x * factor, factor), lambda factor, ct: (ct * factor * 10, None))
    assert wg.grad(lambda x: f(x=x))(1.0) == 20.0
    assert wg.grad(lambda x: f(x, factor=3.0))(1.0) == 30.0
    only = wg.custom_rule(lambda x, *, factor: x * factor)
    text = (
        "<lambda>: the keyword-only argument factor; a function with rules of its own has positional arguments, of "
        "which its rules speak. Fix others in a lambda or functools.partial around the function."
    )
    with pytest.raises(UsageError, match=re.escape(text)):
        only(1.0, factor=2.0)


def test_plain_arguments_call_the_function_itself() -> None:
    f = wg.custom_rule(lambda x: x * 2)
    assert type(f(1.0)) is float
    assert type(f(np.ones(1))) is np.ndarray
    assert f(wg.tensor(2.0)).item() == 4.0


def test_the_name_and_docstring_are_kept() -> None:
    f = wg.custom_rule(total)
    assert (f.__name__, f.__doc__) == (total.__name__, total.__doc__)


def test_integer_outputs() -> None:
    f = wg.custom_rule(lambda x: (np.sort(x), np.argsort(x)))
    f.defvjp(lambda x: (f(x), np.argsort(np.argsort(x))), lambda back, ct: (ct[0][back],))
    x = np.array([3.0, 1.0, 2.0])
    g = lambda x: np.sum(f(x)[0] * np.array([1.0, 10.0, 100.0]) + f(x)[1])
    np.testing.assert_array_equal(wg.grad(g)(x), [100.0, 1.0, 10.0])
    assert wg.jvp(g, (x,), (np.array([1.0, 0.0, 0.0]),))[1] == 100.0


def test_results_do_not_share_memory_with_arguments() -> None:
    f = wg.custom_rule(lambda x: x[1:])
    f.defvjp(lambda x: (x[1:], None), lambda _, ct: (np.concatenate([np.zeros(1), ct]),))

    def g(x: Any) -> Any:
        y = x * 1.0
        z = f(y)
        z *= 5.0
        return np.sum(y) + np.sum(z)

    assert g(wg.tensor([1.0, 2.0])).item() == 13.0
    np.testing.assert_array_equal(wg.grad(g)(np.array([1.0, 2.0])), [1.0, 6.0])


# Errors


def one(x: Any) -> Any:
    return x * np.ones((2, 2))


def with_backward(backward: Any, forward: Any = lambda x: (one(x), None)) -> Any:
    f = wg.custom_rule(one)
    f.defvjp(forward, backward)
    return lambda x: np.sum(f(x))


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (
            with_backward(lambda _, ct: ct),
            UsageError,
            "one (vjp rule): a Tensor; a tuple of 1 is needed, one for each argument. Return None for arguments "
            "without a cotangent.",
        ),
        (
            with_backward(lambda _, ct: (ct, ct)),
            UsageError,
            "one (vjp rule): 2 cotangents; a tuple of 1 is needed, one for each argument. Return None for arguments",
        ),
        (
            with_backward(lambda _, ct: (ct[0],)),
            ShapeError,
            "one (vjp rule): a cotangent of shape (2,) for leaf 0 of the arguments; its shape () is needed. Sum over "
            "what the function broadcast.",
        ),
        (
            with_backward(lambda _, ct: (np.sum(ct),), one),
            UsageError,
            "one (vjp rule): a Tensor; a pair (output, residuals) is needed. Return a tuple of two.",
        ),
        (
            with_backward(lambda _, ct: (np.sum(ct),), lambda x: ([one(x), one(x)], None)),
            UsageError,
            "one (vjp rule): an output of 2 arrays; the 1 of the function are needed. Return the function's output.",
        ),
    ],
)
def test_wrong_vjp_rules(f: Any, error: Any, text: str) -> None:
    for derivative in (wg.grad(f), lambda x: wg.jvp(f, (x,), (1.0,))):
        with pytest.raises(error, match=re.escape(text)):
            derivative(2.0)


def test_a_cotangent_in_other_containers_than_its_argument() -> None:
    f = wg.custom_rule(lambda tree: tree["a"] * tree["b"])
    f.defvjp(lambda tree: (f(tree), tree), lambda tree, ct: ([ct * tree["b"], ct * tree["a"]],))
    with pytest.raises(UsageError, match=r"<lambda> \(vjp rule\): a cotangent of structure .*; that of its argument, "):
        wg.grad(f)({"a": 1.0, "b": 2.0})


def with_push(push: Any) -> Any:
    f = wg.custom_rule(one)
    f.defjvp(push)
    return f


@pytest.mark.parametrize(
    ("push", "error", "text"),
    [
        (
            lambda primals, tangents: tangents[0],
            UsageError,
            "one (jvp rule): a Tensor; a pair (output, tangent of the output) is needed. Return a tuple of two.",
        ),
        (
            lambda primals, tangents: (one(primals[0]), (tangents[0], tangents[0])),
            UsageError,
            "one (jvp rule): 2 tangents; 1 are needed, one for each array of the output. Build them like the output.",
        ),
        (
            lambda primals, tangents: (one(primals[0]), tangents[0]),
            ShapeError,
            "one (jvp rule): a tangent of shape () for an output of shape (2, 2); the same shape is needed. Broadcast "
            "it as the function does.",
        ),
    ],
)
def test_wrong_jvp_rules(push: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        wg.jvp(with_push(push), (2.0,), (1.0,))


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        (
            lambda size, batched, x: x,
            UsageError,
            "one (batch rule): a Tensor; a pair (output, whether it has lanes) is needed. Return a tuple of two.",
        ),
        (
            lambda size, batched, x: (x, [True, True]),
            UsageError,
            "one (batch rule): 2 flags for 1 arrays; one for each is needed. Build them like the output, or return one "
            "bool.",
        ),
        (
            lambda size, batched, x: (one(x[0]), True),
            ShapeError,
            "one (batch rule): an output of shape (2, 2) for 3 lanes; the axis that counts lanes is needed in front. "
            "Move it there, or return False if the output is the same for all lanes.",
        ),
    ],
)
def test_wrong_batch_rules(batch: Any, error: Any, text: str) -> None:
    f = wg.custom_rule(one)
    f.defbatch(batch)
    with pytest.raises(error, match=re.escape(text)):
        wg.vmap(f)(np.ones(3))


def test_captured_values_that_are_being_differentiated() -> None:
    def program(w: Any) -> Any:
        f = wg.custom_rule(lambda x: x * w)
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * w,))
        return f(wg.tensor(2.0))

    def held(w: Any) -> Any:
        holder = SimpleNamespace(w=w)
        return wg.custom_rule(lambda x: x * holder.w)(wg.tensor(2.0))

    for run, x, condition in (
        (wg.grad(program), 3.0, "is being differentiated"),
        (lambda w: wg.jvp(program, (w,), (1.0,)), 3.0, "is being differentiated"),
        (program, wg.tensor(3.0, requires_grad=True), "is being differentiated"),
        (wg.grad(wg.jit(program)), 3.0, "is being differentiated"),
        (lambda w: wg.jvp(wg.jit(program), (w,), (1.0,)), 3.0, "is being differentiated"),
        (wg.vmap(wg.grad(wg.jit(program))), np.ones(3), "is being differentiated"),
        (wg.vmap(held), np.ones(3), "differs from lane to lane"),
        (wg.jit(held), 3.0, "is being traced"),
    ):
        text = (
            "<locals>.<lambda>: a captured value "
            f"that {condition}; a function with rules of its own must take such values as arguments. Add it to the "
            "arguments."
        )
        with pytest.raises(GraphError, match=re.escape(text)):
            run(x)


def test_a_function_that_returns_nothing() -> None:
    f = wg.custom_rule(lambda x: None)
    with pytest.raises(
        UsageError, match=r"<lambda>: a function that returned no array; at least one is needed. Return"
    ):
        f(wg.tensor(1.0))


def counted(subset: str, calls: list[str]) -> Any:
    """Return a function of an array and a scalar with these rules, which note their calls."""

    def plain(x: Any, y: Any) -> Any:
        return np.sin(x) * y + np.sum(x)

    @wg.custom_rule
    def f(x: Any, y: Any) -> Any:
        calls.append("f")
        return plain(x, y)

    def backward(residuals: Any, ct: Any) -> Any:
        calls.append("vjp")
        x, y = residuals
        return np.cos(x) * y * ct + np.sum(ct), np.sum(np.sin(x) * ct)

    def push(primals: Any, tangents: Any) -> Any:
        calls.append("jvp")
        (x, y), (t_x, t_y) = primals, tangents
        return plain(x, y), np.cos(x) * y * t_x + np.sin(x) * t_y + np.sum(t_x)

    if "v" in subset:
        f.defvjp(lambda x, y: (plain(x, y), (x, y)), backward)
    if "j" in subset:
        f.defjvp(push)
    return f


LANES_X, LANES_Y = normal(5, 3), normal(5)


@pytest.mark.parametrize("subset", ["", "v", "j", "vj"])
def test_lanes_without_a_batch_rule_are_computed_together(subset: str) -> None:
    calls: list[str] = []
    f = counted(subset, calls)

    def total(x: Any, y: Any) -> Any:
        return np.sum(f(x, y) ** 2)

    def both(x: Any, y: Any) -> Any:
        return wg.grad(total, (0, 1))(x, y), wg.jvp(total, (x, y), (x * x, y))

    def all_lanes(x: Any, y: Any) -> Any:
        return np.sum(wg.vmap(f)(x, y) ** 2)

    def agree(found: Any, function: Any, *lanes: Any) -> None:
        wanted = [flatten(function(*lane))[0] for lane in zip(*lanes, strict=True)]
        for part, items in zip(flatten(found)[0], zip(*wanted, strict=True), strict=True):
            np.testing.assert_allclose(part, np.stack(items))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = wg.vmap(f)(LANES_X, LANES_Y)
        assert calls == ["f"]
        agree(found, f, LANES_X, LANES_Y)
        agree(wg.vmap(f, (0, None))(LANES_X, 2.0), lambda x: f(x, 2.0), LANES_X)
        agree(wg.vmap(f, (None, 0))(LANES_X[0], LANES_Y), lambda y: f(LANES_X[0], y), LANES_Y)
        grid = wg.vmap(wg.vmap(f, (None, 0)), (0, None))(LANES_X, LANES_Y)
        agree(grid, lambda x: np.stack([f(x, y) for y in LANES_Y]), LANES_X)
        agree(wg.vmap(both)(LANES_X, LANES_Y), both, LANES_X, LANES_Y)
        agree(wg.jit(wg.vmap(both))(LANES_X, LANES_Y), both, LANES_X, LANES_Y)
        agree(wg.vmap(wg.jit(both))(LANES_X, LANES_Y), both, LANES_X, LANES_Y)
        agree(wg.vmap(wg.hessian(total))(LANES_X, LANES_Y), wg.hessian(total), LANES_X, LANES_Y)
        agree(wg.grad(all_lanes, (0, 1))(LANES_X, LANES_Y), wg.grad(total, (0, 1)), LANES_X, LANES_Y)
        tangent = wg.jvp(all_lanes, (LANES_X, LANES_Y), (LANES_X, LANES_Y))[1]
        lanes = zip(LANES_X, LANES_Y, strict=True)
        assert tangent == pytest.approx(sum(wg.jvp(total, lane, lane)[1] for lane in lanes))
        calls.clear()
        shared = wg.grad(lambda y: np.sum(wg.vmap(f, (0, None))(LANES_X, y) ** 2))(2.0)
        assert len(calls) < len(LANES_X)
        assert shared == pytest.approx(sum(wg.grad(total, 1)(x, 2.0) for x in LANES_X))


@pytest.mark.parametrize("where", ["function", "vjp", "jvp"])
@pytest.mark.parametrize("look", [lambda x: x > 0, lambda x: float(x) > 0, lambda x: np.full(1, 0.0).__setitem__(0, x)])
def test_only_what_looks_at_elements_runs_lane_by_lane(where: str, look: Any) -> None:
    calls: list[str] = []

    def seen(rule: str, x: Any) -> Any:
        calls.append(rule)
        return x * 1.0 if rule == where and look(x) else x

    @wg.custom_rule
    def f(x: Any) -> Any:
        return seen("function", x) ** 2

    if where == "jvp":
        f.defjvp(lambda p, t: (p[0] ** 2, 2 * p[0] * seen("jvp", t[0])))
    else:
        f.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * x * seen("vjp", ct),))
    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(wg.vmap(f)(x), x**2)
    assert (calls.count("function") < len(x)) == (where != "function")
    if where == "jvp":
        np.testing.assert_array_equal(wg.jvp(wg.vmap(f), (x,), (x,))[1], 2 * x * x)
    else:
        np.testing.assert_array_equal(wg.grad(lambda x: np.sum(wg.vmap(f)(x)))(x), 2 * x)


def test_functions_capture_what_is_traced_or_differs_from_lane_to_lane() -> None:
    def by_vjp(x: Any, options: Any) -> Any:
        def scaled(x: Any) -> Any:
            return np.sin(x) * options["scale"] + shift

        rule = wg.custom_rule(lambda x: scaled(x))
        rule.defvjp(lambda x: (rule(x), x), lambda x, ct: (3.0 * np.cos(x) * options["scale"] * ct,))
        shift = options["shift"][0]
        found = rule(x).sum()
        options, shift = None, None  # set to something else before a graph runs
        return found

    def by_jvp(x: Any, options: Any) -> Any:
        rule = wg.custom_rule(lambda x: np.sin(x) * options["scale"] + options["shift"][0])
        rule.defjvp(lambda xs, ts: (rule(*xs), 3.0 * np.cos(xs[0]) * options["scale"] * ts[0]))
        return rule(x).sum()

    x, options = np.arange(3.0), {"scale": 2.0, "shift": [np.full(3, 5.0)]}
    lanes = np.stack([x, x + 1]), {"scale": np.array([2.0, 3.0]), "shift": [np.full((2, 3), 5.0)]}
    pairs = [(lanes[0][i], {"scale": lanes[1]["scale"][i], "shift": [np.full(3, 5.0)]}) for i in range(2)]
    for program in (by_jvp, by_vjp):
        value, slope = program(wg.tensor(x), options).item(), 6.0 * np.cos(x)
        np.testing.assert_allclose(wg.jit(program)(x, options), value)
        for gradient in (wg.jit(wg.grad(by_jvp)), wg.grad(wg.jit(program)), wg.grad(wg.jit(wg.jit(program)))):
            np.testing.assert_allclose(gradient(x, options), slope)
        np.testing.assert_allclose(wg.jvp(lambda x: wg.jit(program)(x, options), (x,), (x,))[1], slope @ x)  # noqa: B023
        each = [program(wg.tensor(a), b).item() for a, b in pairs]
        for run in (wg.vmap(program), wg.jit(wg.vmap(program)), wg.vmap(wg.jit(program))):
            np.testing.assert_allclose(run(*lanes), each)
        slopes = 3.0 * np.cos(lanes[0]) * lanes[1]["scale"][:, None]
        for run in (wg.vmap(wg.grad(wg.jit(program))), wg.jit(wg.vmap(wg.grad(by_jvp)))):
            np.testing.assert_allclose(run(*lanes), slopes)


def test_vmap_without_a_batch_rule_warns_once_and_names_the_function() -> None:
    @wg.custom_rule
    def without_batch_rule(x: Any) -> Any:
        return x * 2 if x > 0 else x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wg.vmap(without_batch_rule)(np.ones(3))
        wg.vmap(without_batch_rule)(np.ones(3))
    assert [str(w.message) for w in caught] == [
        "vmap: test_vmap_without_a_batch_rule_warns_once_and_names_the_function.<locals>.without_batch_rule has no "
        "batch rule and runs lane by lane; declare one for speed"
    ]
    assert caught[0].filename == __file__


# Forward mode needs a rule that is linear


def with_rule(backward):
    """Return sin with a reverse rule."""
    rule = wg.custom_rule(np.sin)
    rule.defvjp(lambda x: (rule(x), x), lambda x, ct: (backward(x, ct),))
    return rule


def thresholded(x, ct):
    return ct * 0.0 if float(wg.stop_gradient(np.sum(ct))) > 3.0 else ct * np.cos(x)


NONLINEAR = {
    "clipped": lambda x, ct: np.clip(ct, -1e6, 1e6) * np.cos(x),
    "sign": lambda x, ct: np.sign(ct) * np.cos(x),
    "masked by the cotangent": lambda x, ct: np.where(np.abs(ct) > 1e6, 0.0, ct) * np.cos(x),
    "squared": lambda x, ct: ct * ct * np.cos(x),
    "divided by itself": lambda x, ct: np.cos(x) / ct,
    "a constant added": lambda x, ct: ct * np.cos(x) + 1.0,
    "constant": lambda x, ct: np.cos(x),
    "normed": lambda x, ct: ct / np.linalg.norm(ct) * np.cos(x),
    "sorted": lambda x, ct: np.sort(ct) * np.cos(x),
    "decided in Python": thresholded,
}
LINEAR = {
    "plain": lambda x, ct: ct * np.cos(x),
    "sums": lambda x, ct: (np.concatenate([ct, np.zeros(2)])[:2] - -ct) / 2 * np.cos(x),
    "selected": lambda x, ct: np.where(x > 1e9, 0.0, ct * np.cos(x)),
    "products": lambda x, ct: np.einsum("ij,j->i", np.diag(np.cos(x)), ct),
    "solved": lambda x, ct: np.linalg.solve(np.diag(1 / np.cos(x)), ct),
    "in place": lambda x, ct: written(np.zeros_like(ct), ct * np.cos(x)),
}


def written(target, value):
    target[:] = value
    return target


@pytest.mark.parametrize("backward", NONLINEAR.values(), ids=NONLINEAR.keys())
def test_a_rule_that_is_not_linear_gives_no_forward_mode(backward):
    function, x = with_rule(backward), np.array([0.5, 0.6])
    for run in (lambda: wg.jvp(function, (x,), (x,)), lambda: wg.jacfwd(function)(x)):
        with pytest.raises(
            GraphError, match=r"^sin \(vjp rule\): a rule that is not linear in the cotangent .* a jvp rule is"
        ):
            run()
    assert wg.vjp(function, x)[1](x)[0].shape == (2,)


UNDECIDED = {
    "a norm": lambda x, ct: ct * np.cos(x) / (1 + np.linalg.norm(ct)),
    "sorted": lambda x, ct: np.sort(ct) * np.cos(x),
    "a loop": lambda x, ct: wg.fori_loop(0, 2, lambda _, c: c * np.tanh(c), ct) * np.cos(x),
    "as often as it says": lambda x, ct: wg.while_loop(lambda c: np.sum(c) > 0.1, lambda c: c * 0.5, ct) * np.cos(x),
    "a constant in a loop": lambda x, ct: wg.fori_loop(0, 2, lambda _, c: c + 1.0, ct) * np.cos(x),
    "a branch": lambda x, ct: wg.cond(np.sum(ct) > 0.1, lambda c: c, lambda c: c * 0.5, ct) * np.cos(x),
    "a constant in a branch": lambda x, ct: wg.cond(x[0] > 9.0, lambda c: c, lambda c: x * 1.0, ct) * np.cos(x),
    "looked at": lambda x, ct: ct * np.cos(x) if np.max(abs(ct)) < 1 else np.cos(x),
}
WITHOUT_NUMBERS = {
    "vmap(jvp)": lambda f, x: wg.vmap(lambda v: wg.jvp(f, (v,), (v,))[1])(np.stack([x, x]))[0],
    "jit(jvp)": lambda f, x: wg.jit(lambda v: wg.jvp(f, (v,), (v,))[1])(x),
    "jit(vmap(jvp))": lambda f, x: wg.jit(wg.vmap(lambda v: wg.jvp(f, (v,), (v,))[1]))(np.stack([x, x]))[0],
    "jit(linearize)": lambda f, x: wg.jit(lambda v: wg.linearize(f, v)[1](v))(x),
}


@together("run", WITHOUT_NUMBERS.values())
@together("backward", UNDECIDED.values())
def test_rules_are_tried_where_what_they_keep_is_traced_or_differs_between_lanes(backward, run):
    with pytest.raises(GraphError, match="a rule that is not linear in the cotangent"):
        run(with_rule(backward), np.array([0.5, 0.6]))


@together("run", WITHOUT_NUMBERS.values())
@together(
    "backward",
    [
        lambda x, ct: wg.fori_loop(0, 2, lambda _, c: c * 1.0, ct) * np.cos(x),
        lambda x, ct: wg.while_loop(lambda c: c[1] < x[0], lambda c: (c[0] * x, c[1] + 1), (ct, 0))[0] * np.cos(x) / x,
        lambda x, ct: wg.cond(x[0] < 1, lambda c: c * np.cos(x), lambda c: c * 0.0, ct),
        lambda x, ct: np.linalg.solve(np.diag(x), np.cumsum(ct * x) - (np.cumsum(ct * x) - ct * x)) * np.cos(x),
    ],
)
def test_linear_rules_pass_there(backward, run):
    x = np.array([0.5, 0.6])
    np.testing.assert_allclose(run(with_rule(backward), x), x * np.cos(x))


@pytest.mark.parametrize("backward", LINEAR.values(), ids=LINEAR.keys())
def test_a_linear_rule_gives_forward_mode(backward):
    function, x = with_rule(backward), np.array([0.5, 0.6])
    for run in (wg.jvp, lambda f, *args: wg.jit(lambda x: wg.jvp(f, (x,), (x,)))(x)):
        np.testing.assert_allclose(run(function, (x,), (x,))[1], x * np.cos(x))


FORWARD_IN = {
    "itself": lambda f: f,
    "jit": lambda f: wg.jit(lambda x: f(x) * 2),
    "scan": lambda f: lambda x: wg.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "cond": lambda f: lambda x: wg.cond(x[0] > 0, f, lambda x: x, x),
    "checkpoint": lambda f: wg.checkpoint(lambda x: f(x) * 2),
    "vmap": lambda f: wg.vmap(f),
}


@pytest.mark.parametrize("where", FORWARD_IN)
def test_linearize_refuses_rules_that_are_not_linear_and_heeds_forward_rules(where: str) -> None:
    clipped = wg.custom_rule(lambda x: x**2)
    clipped.defvjp(lambda x: (x**2, x), lambda x, ct: (np.clip(2 * x * ct, -1, 1),))
    x, t = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])
    with pytest.raises(GraphError, match="a rule that is not linear in the cotangent"):
        wg.linearize(FORWARD_IN[where](clipped), x)
    clipped.defjvp(lambda p, t: (p[0] ** 2, 2 * p[0] * t[0]))
    wanted = wg.jvp(FORWARD_IN[where](lambda x: x**2), (x,), (t,))[1]
    np.testing.assert_allclose(wg.linearize(FORWARD_IN[where](clipped), x)[1](t), wanted)


def with_forward_rule(rule, function=np.sin):
    found = wg.custom_rule(function)
    found.defjvp(rule)
    return found


REVERSE = {
    "grad": lambda f: wg.grad(f)(1.0),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f))(np.ones(2)),
    "grad of vmap": lambda f: wg.grad(lambda x: np.sum(wg.vmap(f)(x)))(np.ones(2)),
    "jit of grad": lambda f: wg.jit(wg.grad(f))(1.0),
    "grad of jit": lambda f: wg.grad(wg.jit(f))(1.0),
    "linearize": lambda f: wg.linearize(f, 1.0),
    "linearize of vmap": lambda f: wg.linearize(wg.vmap(f), np.ones(2)),
    "linearize of jit": lambda f: wg.linearize(wg.jit(f), 1.0),
    "jacrev": lambda f: wg.jacrev(f)(np.ones(2)),
    "tape": lambda f: np.sum(f(wg.tensor([1.0, 2.0], requires_grad=True))).backward(),
}


@together("mode", REVERSE)
@together(
    "tangent", [lambda t: np.clip(5 * t, -1, 1), lambda t: np.where(t > 0, t, 0 * t), lambda t: t * t, lambda t: t + 1]
)
def test_a_forward_rule_that_is_not_linear_gives_no_reverse_mode(mode, tangent):
    function = with_forward_rule(lambda p, t: (np.sin(p[0]), tangent(t[0])))
    with pytest.raises(
        GraphError, match=r"^sin \(jvp rule\): a rule that is not linear in the tangents .* a vjp rule is needed"
    ):
        REVERSE[mode](function)


def test_a_forward_rule_that_looks_at_tangents_gives_no_reverse_mode():
    function = with_forward_rule(lambda p, t: (np.abs(p[0]), t[0] if t[0] > 0 else -t[0]), np.abs)
    with pytest.raises(GraphError, match="not linear in the tangents"):
        wg.grad(function)(-1.0)


def test_a_linear_forward_rule_gives_reverse_mode_at_every_level():
    product = with_forward_rule(lambda p, t: (p[0] * p[1], p[1] * t[0] + p[0] * t[1]), lambda x, y: x * y)
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert wg.vmap(wg.grad(product))(x, y).tolist() == [3.0, 4.0]
    assert wg.vmap(wg.grad(lambda x: product(x, 2.0)))(x).tolist() == [2.0, 2.0]
    assert wg.hessian(lambda z: product(z[0], z[1]))(x).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    sized = with_forward_rule(lambda p, t: (np.abs(p[0]), t[0] if p[0] > 0 else -t[0]), np.abs)
    assert wg.grad(sized)(-2.0) == -1.0
    looped = with_forward_rule(
        lambda p, t: (p[0] * 2.25, wg.fori_loop(0, 2, lambda i, v: v * 1.5, t[0])), lambda x: x * 2.25
    )
    assert wg.vmap(wg.grad(looped))(x).tolist() == [2.25, 2.25]


def test_results_are_never_the_memory_of_arguments() -> None:
    same = wg.custom_rule(lambda x: (x, x[:1]))

    def f(x: Any) -> Any:
        whole, part = same(x)
        whole += 1.0
        part += 5.0
        return x * 1.0

    for call in (f, lambda x: wg.vjp(f, x)[0], wg.jit(f), lambda x: wg.vmap(f)(x[None])[0], lambda x: f(wg.tensor(x))):
        np.testing.assert_array_equal(call(np.array([1.0, 2.0])), [1.0, 2.0])


@pytest.mark.parametrize(
    "part",
    [lambda x: x[0], lambda x: x[0, 1], lambda x: x[:1], lambda x: x[1:, ::-1], lambda x: x[[0, 0]], lambda x: x.T],
)
def test_a_rule_may_give_a_constant_to_what_differentiates_further(part):
    double = wg.custom_rule(lambda x: x * 2)
    double.defvjp(lambda x: (double(x), np.shape(x)), lambda shape, ct: (np.full(shape, 2.0)[()],))
    x = wg.tensor(np.ones((2, 3)), requires_grad=True)
    (found,) = wg.autograd.grad((np.sin(part(x)) + double(part(x))).sum(), x, create_graph=True)
    (wanted,) = wg.autograd.grad((np.sin(part(x)) + 2 * part(x)).sum(), x, create_graph=True)
    np.testing.assert_array_equal(found.detach(), wanted.detach())
    (second,) = wg.autograd.grad(found.sum(), x)
    np.testing.assert_array_equal(second, wg.autograd.grad(wanted.sum(), x)[0])


def test_products_of_nothing_have_derivatives_of_every_order():
    x = wg.tensor(np.ones((2, 0)), requires_grad=True)
    assert wg.autograd.grad(np.prod(x[0]), x, create_graph=True)[0].shape == (2, 0)


class Model:
    factor = 3.0

    @wg.custom_rule
    def times(self, x: Any) -> Any:
        return x * self.factor


Model.times.defvjp(lambda model, x: (x * model.factor, model), lambda model, ct: (None, 10 * ct * model.factor))


def test_methods_may_have_rules() -> None:
    assert Model().times(2.0) == 6.0
    assert wg.grad(Model().times)(2.0) == 30.0
    assert wg.jit(wg.grad(Model().times))(2.0) == 30.0


def rule_of_a_variable(x: Any) -> Any:
    factor = 2.0

    @wg.custom_rule
    def scaled(t: Any) -> Any:
        return t * factor

    scaled.defvjp(lambda t: (scaled(t), None), lambda _, ct: (ct * factor,))
    y = scaled(x)
    factor = 100.0
    return y


def function_of_a_variable(x: Any) -> Any:
    total = 0.0
    for factor in (1.0, 2.0):

        class Scaled(wg.autograd.Function):
            @staticmethod
            def forward(_ctx: Any, t: Any) -> Any:
                return t * factor  # noqa: B023 - it is read late, which is what is tested

            @staticmethod
            def backward(_ctx: Any, ct: Any) -> Any:
                return ct * factor  # noqa: B023

        total = total + Scaled.apply(x)
    return total


@pytest.mark.parametrize("mode", [wg.jit, lambda f: wg.jit(wg.grad(f)), lambda f: wg.grad(wg.jit(f))])
@pytest.mark.parametrize("program", [rule_of_a_variable, function_of_a_variable])
def test_a_variable_that_a_rule_captures_stays_what_it_is_while_its_call_is_traced(program: Any, mode: Any) -> None:
    assert program(wg.tensor(3.0)) == (6.0 if program is rule_of_a_variable else 9.0)
    with pytest.raises(
        GraphError, match=r"(?s)a variable that a function .* set after the call.*\n  File .*in \w+_of_a"
    ):
        mode(program)(3.0)
    with pytest.raises(GraphError, match="set after the call"):
        wg.jit(wg.vmap(program))(np.array([3.0, 4.0]))


# Decisions in rules


def bent(x):
    return np.where(x > 0, x * x, 3 * x)


def chooses_back(x, ct):
    if x > 0:
        return (2 * x * ct,)
    return (3 * ct,)


def chooses_along(primals, tangents):
    (x,), (dx,) = primals, tangents
    if x > 0:
        return bent(x), 2 * x * dx
    return bent(x), 3 * dx


def repeats_back(x, ct):
    slope, steps = 0.0 * x, 0
    while x > 0 and steps < 2:
        slope, steps = slope + x, steps + 1
    for i in range(3):
        if x > 0 or i > 0:
            break
        slope = slope + 3.0
    return (slope * ct,)


def keeps_what_it_chose(x):
    if x > 0:
        return bent(x), 2 * x
    return bent(x), 3.0 + 0 * x


def calls_what_chooses(x, ct):
    return (ct * slope_of_bent(x),)


def slope_of_bent(x):
    return 2 * x if x > 0 else 3.0


def fills_an_array_back(x, ct):
    slope = np.zeros(2)
    slope[1] = 2 * x if x > 0 else 3.0
    return (ct * slope[1],)


def fills_an_array_along(primals, tangents):
    (x,), moved = primals, np.empty(2)
    moved[0] = tangents[0]
    moved[0] *= np.where(x > 0, 2 * x, 3)
    return bent(x), moved[0]


def ruled(function, vjp=None, jvp=None):
    """Return a function with rules."""
    rule = wg.custom_rule(function)
    if vjp is not None:
        rule.defvjp(*vjp)
    if jvp is not None:
        rule.defjvp(jvp)
    return rule


class ChoosesBack(wg.autograd.Function):
    """Choose in every method."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x if x > 0 else 3 * x

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        if x > 0:
            return 2 * x * ct
        return 3 * ct


class ChoosesAlong(ChoosesBack):
    """Choose in a forward rule, too."""

    @staticmethod
    def jvp(ctx, dx):
        (x,) = ctx.saved_tensors
        if x > 0:
            return 2 * x * dx
        return 3 * dx


def saving(x):
    return bent(x), x


DECIDING = {
    "backward": ruled(bent, vjp=(saving, chooses_back)),
    "forward": ruled(bent, vjp=(keeps_what_it_chose, lambda slope, ct: (ct * slope,))),
    "jvp": ruled(bent, jvp=chooses_along),
    "loops": ruled(bent, vjp=(saving, repeats_back)),
    "a function that a rule calls": ruled(bent, vjp=(saving, calls_what_chooses)),
    "writes": ruled(bent, vjp=(saving, fills_an_array_back)),
    "writes along": ruled(bent, jvp=fills_an_array_along),
    "no rule": ruled(lambda x: x * x if x > 0 else 3 * x),
    "Function": ChoosesBack.apply,
    "Function with jvp": ChoosesAlong.apply,
}
DECIDED = {
    "jit(grad)": lambda f: wg.jit(wg.grad(f)),
    "grad(jit)": lambda f: wg.grad(wg.jit(f)),
    "jit(jvp)": lambda f: wg.jit(lambda x: wg.jvp(f, (x,), (1.0,))[1]),
    "vmap(jit(grad))": lambda f: lambda x: wg.vmap(wg.jit(wg.grad(f)))(np.stack([x, -x]))[0],
    "jit(grad(vmap))": lambda f: lambda x: wg.jit(wg.grad(lambda x: np.sum(wg.vmap(f)(x))))(np.stack([-x, x]))[1],
}


@together("function, way", some_of(list(itertools.product(DECIDING, DECIDED)), "decided", 3))
def test_rules_decide_under_jit_as_functions_do(function, way):
    run = DECIDED[way](DECIDING[function])
    np.testing.assert_allclose([run(np.float64(x)) for x in (1.5, -2.0)], [3.0, 3.0])
    np.testing.assert_allclose(run(np.float64(4.0)), 8.0)


@together("function", DECIDING)
def test_rules_that_decide_have_second_derivatives(function):
    f = DECIDING[function]
    for run in (wg.jit(wg.grad(wg.grad(f))), wg.grad(wg.jit(wg.grad(f)))):
        np.testing.assert_allclose([run(x) for x in (1.5, -2.0)], [2.0, 0.0])


def test_rules_that_decide_by_what_they_capture_do_so_under_jit():
    def scaled(x, k):
        constant = wg.stop_gradient(k)

        def back(y, ct):
            if constant > 0:
                return (ct * constant,)
            return (ct * 3.0,)

        return ruled(lambda y: y * 1.0, vjp=(lambda y: (y * 1.0, y), back))(x)

    gradient = wg.jit(wg.grad(scaled))
    np.testing.assert_allclose([gradient(1.0, k) for k in (2.0, -2.0)], [2.0, 3.0])


# Native calls


def ruled_power(x, n, way):
    return x**n if way == "power" else x * n


def nested(x):
    return chosen(x) * inner(inner(x))


class Saving(wg.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k, slope = k, np.cos(x * k)
        ctx.save_for_backward(slope)
        ctx.mark_non_differentiable(slope)
        return np.sin(x * k) if np.sum(x) > 0 else np.sin(x * k) * 1.0

    @staticmethod
    def backward(ctx, ct):
        return 2 * ct * ctx.k * ctx.saved_tensors[0], None


def one_or_other(x):
    if np.sum(x) > 0:
        return x * x
    while np.sum(x) < 0:
        x = x + 1.0
    return x


inner = ruled(np.sin, vjp=(lambda x: (inner(x), x), lambda x, ct: (2 * ct * np.cos(x),)))
chosen = ruled(one_or_other, vjp=(lambda x: (one_or_other(x), x), lambda x, ct: (ct * x,)))
lanes_of_its_own = ruled(lambda x: x**3, jvp=lambda p, t: (p[0] ** 3, 5 * t[0]))
lanes_of_its_own.defbatch(lambda _size, batched, x: (x**3 * 1.0, batched[0]))
power = ruled(ruled_power, vjp=(lambda *a: (ruled_power(*a), a), lambda a, ct: (ct * a[0] * a[1], None, None)))
given_back = ruled(lambda x: x, vjp=(lambda x: (x, None), lambda _, ct: (3 * ct,)))
CALLED = {
    "a choice and a loop": chosen,
    "nested": ruled(
        nested, vjp=(lambda x: (nested(x), x), lambda x, ct: (ct * wg.grad(lambda y: np.sum(nested(y)))(x),))
    ),
    "a batch rule": lanes_of_its_own,
    "static arguments": lambda x: power(x, 3, "power") + power(x, 2, "times"),
    "stopped": ruled(lambda x: wg.stop_gradient(x) * x),
    "a Function": lambda x: Saving.apply(x, 2),
    "part": ruled(lambda x: x[::-1], vjp=(lambda x: (x[::-1], None), lambda _, ct: (3 * ct,))),
    "an array without axes": lambda x: x * given_back(np.reshape(x[:1], ())),
}
AROUND = {
    "alone": lambda f: lambda x: np.sum(f(x)),
    "scan": lambda f: lambda x: wg.scan(lambda c, e: (c * 0.5 + np.sum(f(x * e)), None), 0.3, np.array([0.5, 0.9]))[0],
    "while": lambda f: lambda x: wg.while_loop(lambda s: s[1] < 3, lambda s: (f(s[0]) * 0.5, s[1] + 1), (x, 0))[0][1],
    "cond": lambda f: lambda x: wg.cond(x[0] > 0, lambda y: np.sum(f(y)), lambda y: np.sum(y), x),
    "lanes": lambda f: lambda x: np.sum(wg.vmap(f)(np.stack([x, -x]))),
}
TAKEN = {
    "value": lambda f: f,
    "grad": wg.grad,
    "jvp": lambda f: lambda x: wg.jvp(f, (x,), (np.ones_like(x),))[1],
    "grad of grad": lambda f: wg.grad(lambda x: np.sum(wg.grad(f)(x))),
    "vmap of grad": lambda f: lambda x: wg.vmap(wg.grad(f))(np.stack([x, -x])),
}


def calls_left(graph):
    inner_graphs = [g for e in graph.equations for _, g in subgraphs(e.params)]
    own = [e for e in graph.equations if isinstance(e.primitive, InGraph)]
    return len(own) + sum(map(calls_left, inner_graphs))


@together("called", CALLED)
@together("taken", some_of([(a, t) for a in AROUND for t in TAKEN], seed="native rules"))
def test_calls_are_equations_where_derivatives_have_been_taken(called, taken):
    around, transform = taken
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager lanes that decide run one by one
        function = TAKEN[transform](AROUND[around](CALLED[called]))
        jitted, x = wg.jit(function), np.array([0.5, -0.3])
        np.testing.assert_allclose(jitted(x), function(x), rtol=1e-12)
        assert not calls_left(jitted.lower(x).graph)


def test_a_function_that_does_more_than_compute_is_called_each_time() -> None:
    seen = []

    def noting(x: Any) -> Any:
        seen.append(1)
        return x * 2.0

    for rule in map(wg.custom_rule, (noting, lambda x: x * len(x.numpy().shape) + x)):
        run = wg.jit(lambda x, rule=rule: rule(x) * 1.0)
        assert [run(x).tolist() for x in (X, Y)] == [(2.0 * X).tolist(), (2.0 * Y).tolist()]
        assert calls_left(run.lower(X).graph) == 1
    assert len(seen) >= 3


def test_a_function_captures_what_a_jitted_one_does() -> None:
    scale = np.array([2.0, 3.0])
    rule = wg.custom_rule(lambda x: x * scale)
    run = wg.jit(lambda x: rule(x) + x)
    first = run(X)
    scale *= 10.0
    np.testing.assert_array_equal(run(X), first)


def test_a_function_that_has_no_graph_is_soon_no_longer_asked_for_one() -> None:
    seen: list[int] = []
    runs = itertools.count()  # what tracing in vain does to lists is undone

    def noting(x: Any) -> Any:
        seen.append(next(runs))
        return x * 0.5

    rules = (wg.custom_rule(noting), lambda x: wg.custom_rule(lambda y: noting(y) + 0 * x)(x))
    for rule in rules:  # a closure is another function at each call
        first = next(runs)
        run = wg.jit(lambda x, rule=rule: [x := rule(x) for _ in range(40)][-1])
        np.testing.assert_array_equal(run(X), X * 0.5**40)
        assert next(runs) - first <= 2 * 40 + 10
