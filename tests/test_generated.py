"""Tests of every primitive, generated from the registry and its samples."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy
from tests.cases import together
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import (
    Call,
    call_of,
    float_leaves,
    leaves_of,
    nodes_of,
    precision,
    random_like,
    same_bits,
    same_values,
)
from tests.samples.running import over
from wengert.core.forms.contraction import Contraction
from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitives.opaque_kinds import Constant, Opaque
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply
from wengert.testing import check_grads
from wengert.traces.nodes import RESULT, Node

ORDINARY = (Elementwise, Linear, Multilinear, Opaque, Constant)  # the others run graphs: see test_control
NAMES = sorted(n for n, p in PRIMITIVES.items() if type(p) in ORDINARY)  # before any test declares another

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1.0, -1.0, 0.5, -2.5)
FINITE = (-0.0, 0.0, 1.0, -1.0, 0.5, -2.5)


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def having(condition: Callable[[Call], bool]) -> list[Sample]:
    """Return the samples with differentiated arrays that meet a condition."""
    return [s for s in SAMPLES if call_of(s).leaves and condition(call_of(s))]


DIFFERENTIATED = having(lambda call: True)


# Completeness


def test_every_primitive_has_a_sample() -> None:
    assert set(NAMES) - {s.primitive for s in SAMPLES} == set()


def test_every_sample_names_a_primitive() -> None:
    assert {s.primitive for s in SAMPLES} - set(NAMES) == set()


def recorded_nodes(sample: Sample) -> list[Node]:
    """Return the nodes that a sample records."""
    call = call_of(sample)
    return nodes_of(call(*[wg.tensor(leaf, requires_grad=True) for leaf in call.leaves]))


@together("name", [n for n in NAMES if PRIMITIVES[n].kind != "constant"])
def test_samples_differentiate_every_operand_that_has_a_rule(name: str) -> None:
    primitive = PRIMITIVES[name]
    nodes = [n for s in SAMPLES if s.primitive == name for n in recorded_nodes(s) if n.primitive is primitive]
    assert nodes, "no sample records this primitive"
    seen = {i for node in nodes for i, parent in enumerate(node.inputs) if parent is not None}
    assert ruled_operands(primitive) <= seen


def ruled_operands(primitive: Primitive) -> set[int]:
    """Return the positions of the operands that a primitive declares a rule for."""
    if isinstance(primitive, Elementwise) or (isinstance(primitive, Opaque) and primitive.rules):
        return {i for i, rule in enumerate(primitive.rules) if rule is not None and not hasattr(rule, "refuses")}
    if isinstance(primitive, Linear):
        return set(range(len(primitive.transposes)))
    if isinstance(primitive, Multilinear):
        return {0, 1}
    return {0}


# Values


@over(SAMPLES)
def test_values_are_those_of_numpy(sample: Sample) -> None:
    call = call_of(sample)
    before = call.copies()
    want = call(*call.copies())
    plain = call(*map(wg.asarray, call.leaves))
    recorded = call(*[wg.tensor(leaf, requires_grad=True) for leaf in call.leaves])
    if call.leaves:
        assert same_values(plain, want)
        assert same_values(detached(recorded), want)
    assert all(map(same_bits, call.leaves, before)), "the call wrote into its arguments"


def detached(result: Any) -> Any:
    """Return results without their graph."""
    if isinstance(result, list | tuple):
        items = [detached(item) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result.detach() if isinstance(result, wg.Tensor) else result


@over(DIFFERENTIATED)
def test_results_share_memory_with_arguments_only_where_numpys_do(sample: Sample) -> None:
    call = call_of(sample)
    leaves = call.copies()
    want = leaves_of(call(*leaves))
    found = leaves_of(call(*map(wg.asarray, leaves)))
    for result, numpys in zip(found, want, strict=True):
        if isinstance(result, wg.Tensor):
            assert shares(result.numpy(), leaves) <= shares(numpys, leaves)


def shares(result: Any, leaves: list[Any]) -> bool:
    """Tell whether a result shares memory with any of some arrays."""
    return isinstance(result, np.ndarray) and any(np.shares_memory(result, leaf) for leaf in leaves)


# Derivatives


@over([s for s in DIFFERENTIATED if s.order >= 1], third=True)
def test_derivatives_are_those_of_differences(sample: Sample) -> None:
    check_derivatives(sample, order=min(sample.order, 2))


def check_derivatives(sample: Sample, order: int) -> None:
    """Check the derivatives of a sample in reverse mode."""
    call = call_of(sample)
    outs = float_leaves(call(*call.copies()))
    if outs:  # integers and truth values have no derivatives
        rtol = 1e-8 if precision(*call.leaves, *outs) < 1e-15 else None
        check_grads(call, tuple(call.leaves), order=order, rtol=rtol)


@over([s for s in DIFFERENTIATED if PRIMITIVES[s.primitive].kind == "linear"])
def test_transposes_pass_the_dot_product_test(sample: Sample) -> None:
    call = call_of(sample)
    ts = [random_like(leaf) for leaf in call.leaves]
    outs, cts = call.vjp(ts)
    doubled, _ = call.vjp([2 * t for t in ts])
    if not all(np.array_equal(2 * out, twice) for out, twice in zip(outs, doubled, strict=True)):
        return  # this sample calls the primitive inside of something that is not linear
    left = [random_like(out) * out for out in outs]
    right = [ct * t for ct, t in zip(cts, ts, strict=True)]
    magnitude = sum(np.sum(np.abs(terms)) for terms in (*left, *right))
    difference = sum(np.sum(terms.real) for terms in left) - sum(np.sum(terms.real) for terms in right)
    assert abs(difference) <= 50 * precision(*ts, *outs) * magnitude


# Precision, layout, size


@over(having(lambda call: all(leaf.dtype in (np.float64, np.complex128) for leaf in call.leaves)), few=True)
def test_single_precision_stays_single(sample: Sample) -> None:
    call = call_of(sample)
    narrow = [leaf.astype(np.complex64 if leaf.dtype.kind == "c" else np.float32) for leaf in call.leaves]
    want = call(*[leaf.copy() for leaf in narrow])
    assert same_values(call(*map(wg.asarray, narrow)), want)
    wide_outs, wide_cts = call.vjp(call.leaves)
    _, cts = call.vjp(narrow)
    assert [ct.dtype for ct in cts] == [leaf.dtype for leaf in narrow]
    if len(wide_outs) == len(float_leaves(want)):
        for ct, wide in zip(cts, wide_cts, strict=True):
            np.testing.assert_allclose(ct, wide, rtol=1e-2, atol=1e-3 * max(1.0, np.max(np.abs(wide), initial=0.0)))


def backwards(array: Any) -> Any:
    """Return the same numbers with a negative stride on every axis."""
    flip = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[flip])[flip] if array.ndim else array


def gapped(array: Any) -> Any:
    """Return the same numbers in every other place of a larger buffer that is NaN elsewhere."""
    buffer = np.full([2 * n for n in array.shape], np.nan, array.dtype)
    window = buffer[(slice(None, None, 2),) * array.ndim]
    window[...] = array
    return window


LAYOUTS = {"backwards": backwards, "fortran": np.asfortranarray, "gapped": gapped}


@over(having(lambda call: any(leaf.ndim and leaf.size > 1 for leaf in call.leaves)), few=True)
def test_memory_layout_does_not_matter(sample: Sample) -> None:
    call = call_of(sample)
    outs, want = call.vjp(call.leaves)
    cts = [random_like(out) for out in outs]
    for layout in LAYOUTS.values():
        leaves = [layout(leaf) if leaf.ndim else leaf for leaf in call.leaves]
        laid_out = [layout(ct) if ct.ndim else ct for ct in cts]
        numpys = call(*leaves)
        assert same_values(call(*map(wg.asarray, leaves)), numpys)
        if not all(np.allclose(x, y, equal_nan=True) for x, y in zip(float_leaves(numpys), outs, strict=True)):
            continue  # the meaning of this call depends on the layout, by order="A" or order="K"
        _, found = call.vjp(leaves, laid_out)
        for ct, other in zip(found, want, strict=True):
            np.testing.assert_allclose(ct, other, rtol=1e-11, atol=1e-13)


@over(having(lambda call: any(leaf.ndim for leaf in call.leaves)))
def test_empty_arguments_do_as_numpy_does(sample: Sample) -> None:
    if sample.function.__name__ == "<lambda>" and not hasattr(np, sample.primitive):
        return  # it passes the primitive a shape of its own
    call = call_of(sample)
    leaves = [leaf[:0] if leaf.ndim else leaf for leaf in call.leaves]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's mean of an empty slice
        try:
            want = call(*leaves)
        except (ValueError, IndexError, TypeError, ZeroDivisionError):
            return  # this call needs elements, in NumPy too
        if sample.primitive == "einsum_one" and sample.args[0] == "ii->i":
            return  # refused: NumPy's result is memory that belongs to somebody else
        assert same_values(call(*map(wg.asarray, leaves)), want)
        _, cts = call.vjp(leaves)
    assert [(ct.shape, ct.dtype) for ct in cts] == [(leaf.shape, leaf.dtype) for leaf in leaves]


# The promises of a primitive to the sweep


@over(DIFFERENTIATED)
def test_fresh_cotangents_share_memory_with_nothing(sample: Sample) -> None:
    for node in recorded_nodes(sample):
        if node.primitive in (None, RESULT) or not node.primitive.fresh:
            continue
        out, operands = node.residuals()
        outs = out if type(out) is tuple else (np.empty(node.shape, node.dtype),)
        cts = [np.array(np.random.default_rng(1).normal(size=x.shape), dtype=x.dtype) for x in outs]
        ct = cts if type(out) is tuple else cts[0]
        avals = [None if p is None else Aval(p.shape, p.dtype) for p in node.inputs]
        for found in node.primitive.vjp(ct, out, operands, avals, node.params):
            if found is None or (found is ct and node.primitive.kind == "elementwise"):
                continue
            array = found.numpy() if isinstance(found, wg.Tensor) else found
            others = [*cts, *outs, out, *operands]
            assert not shares(array, [other for other in others if isinstance(other, np.ndarray)])
            assert not isinstance(array, np.ndarray) or array.flags.writeable


# Elementwise primitives: broadcasting and special values


ENDLESS = {"hyp1f1"}
"""Ufuncs of SciPy 1.17 whose loops do not end for some infinities."""


def ufuncs(*kinds: str) -> list[str]:
    """Return the names of primitives of some kinds that evaluate a ufunc on floats."""
    found = [n for n in NAMES if PRIMITIVES[n].kind in kinds and isinstance(PRIMITIVES[n].evaluate, np.ufunc)]
    found = [n for n in found if n not in ENDLESS]
    return [n for n in found if any(kind.startswith("d") for kind in PRIMITIVES[n].evaluate.types)]  # type: ignore[attr-defined]


def operands_of(primitive: Primitive, values: tuple[float, ...]) -> list[Any]:
    """Return arrays that together hold every combination of some values; integers where the ufunc needs them."""
    ufunc: Any = primitive.evaluate
    signature = next(kind for kind in ufunc.types if set("d") <= set(kind.partition("-")[0]) <= set("dliD"))
    integers = np.array([-3, 0, 1, 4])
    grids = np.meshgrid(*[np.array(values) if kind == "d" else integers for kind in signature[: ufunc.nin]])
    return [np.ascontiguousarray(grid.ravel()) for grid in grids]


@together("name", ufuncs("elementwise", "constant", "opaque"))
def test_special_values_are_those_of_numpy(name: str) -> None:
    primitive = PRIMITIVES[name]
    operands = operands_of(primitive, SPECIAL)
    want = primitive.evaluate(*operands)
    assert same_values(primitive.evaluate(*map(wg.asarray, operands)), want)
    recorded = [wg.tensor(x, requires_grad=x.dtype.kind == "f") for x in operands]
    assert same_values(detached(primitive.evaluate(*recorded)), want)


@together("name", ufuncs("constant"))
def test_results_of_constant_primitives_are_structural_zeros(name: str) -> None:
    primitive = PRIMITIVES[name]
    operands = [wg.tensor(x, requires_grad=x.dtype.kind == "f") for x in operands_of(primitive, SPECIAL)]
    assert not primitive.evaluate(*operands).requires_grad


@together("name", ufuncs("elementwise"))
def test_a_zero_cotangent_gives_a_zero_gradient(name: str) -> None:
    check_zero_cotangent(name)


def check_zero_cotangent(name: str) -> None:
    """Check that the rules of a primitive turn zeros into zeros."""
    primitive = PRIMITIVES[name]
    assert isinstance(primitive, Elementwise)
    operands = operands_of(primitive, SPECIAL if primitive.singular else FINITE)
    out = primitive.evaluate(*operands)
    avals = [Aval(x.shape, x.dtype) if i in ruled_operands(primitive) else None for i, x in enumerate(operands)]
    cts = primitive.vjp(np.zeros(out.shape, out.dtype), out, operands, avals, {})
    relevant = np.ones(out.shape, bool) if primitive.singular else np.isfinite(out)
    assert all(np.all(ct[relevant] == 0) for ct in cts if ct is not None)


@together("name", [n for n in ufuncs("elementwise") if ruled_operands(PRIMITIVES[n]) == {0, 1}])
def test_operands_broadcast(name: str) -> None:
    primitive = PRIMITIVES[name]
    calls = [call_of(s) for s in SAMPLES if s.primitive == name and s.function is primitive.evaluate]
    pairs = [call.leaves for call in calls if len(call.leaves) == 2 and all(leaf.size for leaf in call.leaves)]
    assert pairs, f"no sample calls {name} with two arrays"
    for left, right in itertools.permutations([(2, 1), (3,), (1, 1, 3), ()], 2):
        x, y = np.resize(pairs[0][0], left), np.resize(pairs[0][1], right)
        check_grads(functools.partial(apply, primitive), (x, y), order=1)


# These tests can fail


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("sin", lambda t, _out, x: t * np.cos(x) * (1 + 1e-6)),
        ("exp", lambda t, out, _x: t * wg.stop_gradient(out)),
    ],
    ids=["wrong first derivative", "wrong second derivative"],
)
def test_a_wrong_rule_is_found(name: str, rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PRIMITIVES[name], "rules", (rule,))
    with pytest.raises(AssertionError, match="is needed by differences"):
        check_grads(getattr(np, name), (np.array([0.3, 1.2]),), rtol=1e-8)


def test_a_wrong_transpose_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PRIMITIVES["sum"], "transposes", (lambda ct, aval, **_: np.full(aval.shape, 0.5 * ct),))
    with pytest.raises(AssertionError, match="is needed by differences"):
        check_grads(np.sum, (np.ones(3),))


def scaled(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose results are slightly too large."""

    def times(found: Any) -> Any:
        if isinstance(found, list | tuple):
            return type(found)(map(times, found))
        return None if found is None else found * (1 + 1e-5)

    return lambda *args, **params: times(rule(*args, **params))


BY_DEFINITION = {"gamma_path", "overwritten", "turn_of_clusters", "null_vectors", "share_of_pairs"}
"""Primitives whose rule is not the derivative of their value, or refuses all but zeros."""
RULES = [
    (name, attribute, i)
    for name in NAMES
    if name not in BY_DEFINITION
    for attribute in ("rules", "transposes", "rule")
    for i in sorted(ruled_operands(PRIMITIVES[name]))
    if hasattr(PRIMITIVES[name], attribute)
    and (PRIMITIVES[name].kind != "opaque" or getattr(PRIMITIVES[name], attribute))
]


@pytest.mark.long
@together("name, attribute, i", RULES)
def test_samples_would_notice_a_wrong_factor(name: str, attribute: str, i: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_wrong(PRIMITIVES[name], attribute, i, monkeypatch)
        assert any(notices(s) for s in DIFFERENTIATED if s.primitive == name and s.order)


def set_wrong(primitive: Any, attribute: str, i: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a primitive states about an operand be wrong by a factor."""
    right = getattr(primitive, attribute)
    if right is None:
        by_form = Contraction.transpose
        wrong = lambda self, j, *args: (scaled(by_form) if i == j else by_form)(self, j, *args)
        monkeypatch.setattr(Contraction, "transpose", wrong)
    else:
        wrong = scaled(right) if attribute == "rule" else (*right[:i], scaled(right[i]), *right[i + 1 :])
        monkeypatch.setattr(primitive, attribute, wrong)
        if primitive.kind == "elementwise":  # without the strong zero, too, where it is looked for apart
            monkeypatch.setattr(primitive, "declared", wrong)
    for shortcut in ("accumulate", "consume", "overwrite"):
        if hasattr(primitive, shortcut):
            monkeypatch.setattr(primitive, shortcut, None)
    if primitive.kind == "linear":
        monkeypatch.setattr(primitive, "sweeps_as", "linear")


def notices(sample: Sample) -> bool:
    """Tell whether a sample's derivatives are found to be wrong."""
    try:
        check_derivatives(sample, order=1)
    except AssertionError:
        return True
    return False


def test_a_rule_that_lacks_the_strong_zero_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PRIMITIVES["sqrt"], "rules", (lambda t, out, _x: t / (2 * out),))
    with pytest.raises(AssertionError):
        check_zero_cotangent("sqrt")
