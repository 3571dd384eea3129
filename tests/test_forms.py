"""Forms: what primitives say of how they run over their elements, and that it is so."""

from __future__ import annotations

import collections
import inspect
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests.samples  # noqa: F401 - its functions declare primitives when they are first asked for
import wengert as wg
from tests.cases import together
from wengert.core.forms.abstract_evaluation import avals_and_strides
from wengert.core.forms.form import Form, Reduction, Scan, form_of
from wengert.core.forms.label_products import for_blas
from wengert.core.forms.labels import Labels, labelled
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import Selection
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import Aval
from wengert.errors import GraphError, RegistrationError, ShapeError, UsageError
from wengert.extend import Contraction, Like, apply, constant, linear, multilinear
from wengert.graph import load, save, trace
from wengert.support.records import NamedTuple
from wengert.testing import check_rule

WITHOUT = frozenset(("array_equal", "array_equiv", "unravel_index"))
"""Primitives of no form: of several axes at once, or of several operands with axes of their own."""

OWN_BATCH = {
    "laid_as": "of the second operand only its memory order matters",
    "reduceat": "the segments are rows of no lane",
    "norm": "the norm of a whole lane is one of its elements as a vector",
    "scipy_norm": "as in norm",
    "raised": "an error of one lane is one of all",
    "number": "numbers that differ from lane to lane are an array",
    "softmax_product": "axes are counted from the end, so that lanes change nothing",
    "log_softmax_product": "as in softmax_product",
    "log_softmax_transposed": "as in softmax_product",
    "quantile": "the axes of q stand in front of all others",
    "quantile_collect": "as in quantile",
    "quantile_distribute": "as in quantile",
    "iterative_solve": "each lane takes steps of its own",
    "bordered_solve": "as in iterative_solve",
    "sparse_eigh": "as in iterative_solve",
    "sparse_eigvalsh": "as in iterative_solve",
    "exponential_elements": "as in iterative_solve",
    "exponential_product": "as in iterative_solve",
    "normal_solve": "as in iterative_solve",
    "sparse_lsmr": "as in iterative_solve",
    "sparse_lsqr": "as in iterative_solve",
    "sparse_solve": "as in sparse_product",
    "sampled_product": "matrices of lanes stand along the diagonal of one",
    "sparse_product": "lanes are further columns of the other factor, or matrices along a diagonal",
    "solve": "a vector on the right is one only without lanes",
    "linear_solution": "right-hand sides of lanes that share a matrix are columns of one system",
    "factored_solution": "as in linear_solution",
    "substituted_factors": "as in linear_solution",
    "band_solution": "as in linear_solution",
    "front_solution": "as in linear_solution",
    "unravel_index": "the rows of the result stand in front of all lanes",
}
"""Primitives with a rule of their own for lanes, and why their form does not give it."""

X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3, 4))


def declared(kind: type[Form]) -> list[Primitive]:
    """Return the primitives of a form."""
    return [p for p in PRIMITIVES.values() if isinstance(form_of(p), kind) and p.name.isidentifier()]


def test_every_form_is_a_hashable_record() -> None:
    for primitive in PRIMITIVES.values():
        form = form_of(primitive)
        assert hash(form) == hash(form)
        assert form == form_of(primitive)


@together("primitive", declared(Reduction))
def test_a_reduction_combines_by_its_ufunc(primitive: Primitive) -> None:
    form: Any = form_of(primitive)
    if form.combine is None or "initial" in form.operands:
        return
    ufunc = np.multiply if form.combine == "ufunc" else form.combine
    params = {"ufunc": ufunc} if form.combine == "ufunc" else {}
    for axis, keepdims in (((1,), False), ((0, 2), True), ((0, 1, 2), False)):
        found = primitive.evaluate(X, axis=axis, keepdims=keepdims, **params)
        np.testing.assert_allclose(found, ufunc.reduce(X, axis=axis, keepdims=keepdims), rtol=1e-14)


@pytest.mark.parametrize("primitive", declared(Scan), ids=lambda p: p.name)
def test_a_scan_accumulates_by_its_ufunc(primitive: Primitive) -> None:
    form: Any = form_of(primitive)
    ufunc = np.multiply if form.combine == "ufunc" else form.combine
    params = {"ufunc": ufunc} if form.combine == "ufunc" else {"reverse": False}
    for axis in range(3):
        np.testing.assert_array_equal(primitive.evaluate(X, axis=axis, **params), ufunc.accumulate(X, axis))


def test_results_of_reductions_take_no_time_to_find() -> None:
    huge = Aval((10**6, 10**6), np.dtype(float))
    for name in ("sum", "max", "prod"):
        (aval,), order = avals_and_strides(PRIMITIVES[name], [huge], {"axis": (0,), "keepdims": True})
        assert (aval, order) == (Aval((1, 10**6), np.dtype(float)), None)


def test_results_of_routines_on_large_stacks_take_no_time_to_find() -> None:
    matrices, rows = Aval((10**9, 3, 3), np.dtype(float)), Aval((10**9, 4), np.dtype(np.float32))
    along: dict[str, Any] = {"axis": 1, "kind": None, "order": None}
    for name, operand, params, shapes in (
        ("inv", matrices, {}, [matrices.shape]),
        ("slogdet", matrices, {}, [(10**9,), (10**9,)]),
        ("trace", matrices, {"offset": 0, "axis1": 1, "axis2": 2}, [(10**9,)]),
        ("sort", rows, along, [rows.shape]),
        ("argmax", rows, {"axis": -1, "keepdims": True}, [(10**9, 1)]),
        ("argmin", rows, {"axis": 1}, [(10**9,)]),
        ("difference", rows, {"axis": 1}, [(10**9, 3)]),
    ):
        avals, order = avals_and_strides(PRIMITIVES[name], [operand], params)
        assert ([aval.shape for aval in avals], order) == (shapes, None), name
    assert avals_and_strides(PRIMITIVES["argmax"], [rows], {"axis": 1})[0][0].dtype == np.intp


def test_selections_ask_where_the_elements_are_known_and_refuse_where_not() -> None:
    (aval,), _ = avals_and_strides(PRIMITIVES["nonzero"], [np.array([0.0, 2.0, 3.0])], {})
    assert aval.shape == (1, 2)
    for primitive in declared(Selection):
        form: Any = form_of(primitive)
        unknown = [Aval((3,), np.dtype(int))] * (form.decides + 1)
        with pytest.raises(GraphError, match="whose elements are unknown while tracing"):
            avals_and_strides(primitive, unknown, {"bins": "auto", "range": None} if form.unless else {})


def test_a_routine_of_a_user_takes_stacks_of_lanes() -> None:
    reverse = linear(
        "test_forms.reverse",
        lambda x, axis: np.flip(x, axis),
        transpose=lambda ct, _aval, axis: apply(reverse, ct, axis=axis),
        form=Routine("(n)->(n)", "axis"),
    )
    for axis in (0, 1, -1):
        found = wg.vmap(lambda x, axis=axis: apply(reverse, x, axis=axis))(X)
        np.testing.assert_array_equal(found, np.stack([np.flip(x, axis) for x in X]))


# Products by labels


def test_a_solver_that_made_up_elements_make_singular_says_what_its_result_is_like() -> None:
    def centred(x: Any) -> Any:
        if np.ptp(x) == 0:
            raise ValueError("all elements are alike")
        return x - np.mean(x)

    def transposed(ct: Any, _aval: Any) -> Any:
        return ct - np.mean(ct)

    x = np.array([1.0, 2.0, 6.0])
    unsaid = linear("test_forms.centred_unsaid", centred, transpose=transposed)
    with pytest.raises(ValueError, match="all elements are alike") as caught:
        wg.jit(lambda x: apply(unsaid, x))(x)
    assert "say what the result is like by wengert.extend.Like: form=Like" in "".join(caught.value.__notes__)
    said = linear("test_forms.centred_said", centred, transpose=transposed, form=Like(lambda x: x))
    for dtype in (np.float64, np.float32):
        out = wg.jit(lambda x: apply(said, x))(x.astype(dtype))
        assert (out.tolist(), out.dtype) == ([-2.0, -1.0, 3.0], dtype)
    square = wg.grad(lambda x: np.sum(apply(said, x) ** 2))
    assert wg.jit(square)(x).tolist() == square(x).tolist() == [-4.0, -2.0, 6.0]
    with pytest.warns(UserWarning, match="runs lane by lane"):
        assert wg.jit(wg.vmap(square))(np.stack([x, 2 * x])).tolist() == [[-4.0, -2.0, 6.0], [-8.0, -4.0, 12.0]]
    check_rule(said, x)


@pytest.mark.parametrize(
    ("evaluate", "like", "text"),
    [
        (np.sum, lambda x: x, "gave float64[] (.*); float64[3] is needed by its form, Like"),
        (lambda x: x.astype(int), lambda x: x, "gave int64[3] (.*); float64[3] is needed by its form, Like"),
        (lambda x: x, lambda x: (x, x), "its form Like gave 2 arrays (.*); outputs=1 was declared"),
    ],
)
def test_results_that_are_not_like_what_was_declared(evaluate: Any, like: Any, text: str) -> None:
    PRIMITIVES.pop("test_forms.unlike", None)
    unlike = constant("test_forms.unlike", evaluate, form=Like(like))
    for call in (lambda x: apply(unlike, x), wg.jit(lambda x: apply(unlike, x))):
        with pytest.raises(RegistrationError, match=re.sub(r"([\[\]])", r"\\\1", text)):
            call(np.ones(3))


def test_a_class_in_the_place_of_a_form_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"a form of wengert\.extend is needed"):
        constant("test_forms.of_class", np.sort, form=Like)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="3 in its form, Like; a function of the operands"):
        constant("test_forms.of_number", np.sort, form=Like(3))


@pytest.mark.parametrize("signature", ["n->n", "(n)", "", "(n)->n", "(n)->(n)->(n)", "(n)=>(n)", "(n,)->(n)", 3])
def test_a_signature_that_is_none_is_refused_where_it_is_declared(signature: Any) -> None:
    with pytest.raises(RegistrationError, match=r"^primitive test_forms\.unsigned: the signature .* of its form; core"):
        constant("test_forms.unsigned", np.sort, form=Routine(signature))
    assert "test_forms.unsigned" not in PRIMITIVES


@pytest.mark.parametrize("form", [Reduction(np.maximum), Routine("(n)->()", "axis")])
def test_a_parameter_that_a_form_names_is_asked_for(form: Form) -> None:
    PRIMITIVES.pop("test_forms.parameterless", None)
    found = constant("test_forms.parameterless", lambda x: x.max(), form=form)
    with pytest.raises(RegistrationError, match=r"it was applied without the parameter 'axis' \(.*its form, \w+"):
        apply(found, np.ones(2))


def test_labels_are_closed_under_lanes_and_transposition() -> None:
    labels = labelled(((2, 3), (3, 4)), ("ij", "jk"), "ik")
    assert repr(labels) == "ab,bc->ac"
    assert repr(labels.transpose(0)) == "ac,bc->ab"
    assert repr(labels.transpose(1)) == "ac,ab->bc"
    assert repr(labels.add_lane(5, (True, False))) == "dab,bc->dac"
    assert labels.add_lane(5, (True, False)).shape == (5, 2, 4)
    assert labels == labelled(((2, 3), (3, 4)), ("xy", "yz"), "xz")
    assert labels.transpose(0).transpose(0) == labels


@together("mode", ["full", "same", "valid"])
@together("n, m", [(1, 1), (5, 2), (2, 5), (4, 4), (7, 3)])
@together("name", ["convolve", "correlate"])
def test_convolutions_by_labels_are_numpys(name: str, n: int, m: int, mode: str) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=(2, k)) + 1j * rng.normal(size=(2, k)) for k in (n, m))
    form: Any = form_of(PRIMITIVES[name])
    labels = form.record(((n,), (m,)), {"mode": mode})
    want = np.stack([getattr(np, name)(a, b, mode) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(labels.evaluate(x[0], y[0]), want[0], rtol=1e-13)
    np.testing.assert_allclose(labels.add_lane(2, (True, True)).evaluate(x, y), want, rtol=1e-13, atol=1e-13)
    one = np.stack([getattr(np, name)(x[0], b, mode) for b in y])
    np.testing.assert_allclose(labels.add_lane(2, (False, True)).evaluate(x[0], y), one, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("left", "right", "result", "swapped", "copied"),
    [
        ("lij", "jk", "lik", False, False),  # rows of all lanes
        ("ij", "lj", "li", True, False),  # the lanes' vectors as rows
        ("ij", "ljk", "lik", False, False),  # the matrix meets every lane's
        ("lij", "ljk", "lik", False, False),
        ("ij", "jk", "ki", True, False),
    ],
)
def test_products_of_lanes_copy_nothing(left: str, right: str, result: str, swapped: bool, copied: bool) -> None:
    lengths = {"l": 5, "i": 2, "j": 3, "k": 4}
    shapes = [tuple(lengths[n] for n in own) for own in (left, right)]
    plan = labelled(shapes, (left, right), result).product
    assert plan is not None
    assert (plan.swapped, plan.order is not None) == (swapped, copied)


@pytest.mark.parametrize(
    ("names", "result"),
    [(("ij", "ij"), "ji"), (("ij", "j"), "ji"), (("abij", "bajk"), "abik"), (("ij",), "ij"), (("ij", "jk"), "ki")],
)
def test_contractions_are_in_memory_of_their_own_in_c_order(names: tuple[str, ...], result: str) -> None:
    xs = [np.ones([3] * len(own)) for own in names]
    for arrays in (xs, [x.T for x in xs], [x.swapaxes(0, 1) if x.ndim > 1 else x for x in xs]):
        found = labelled([x.shape for x in arrays], names, result).evaluate(*arrays)
        assert found.flags.c_contiguous
        assert not any(np.shares_memory(found, x) for x in arrays)


def test_products_go_to_blas_in_whichever_way_matrices_lie() -> None:
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(4, 6, 10))
    laid = [wide[:, :, :5], wide[:, ::-1, 9:4:-1], wide[:, :, ::2], np.broadcast_to(2.0, (4, 6, 5)), wide[1:2, :, :5]]
    laid += [np.broadcast_to(wide[0, :, 5:], (4, 6, 5)), wide[:, :, 1::2].astype(np.complex64), wide[:, :, 5:] > 0]
    for x, y in itertools.product(laid, laid):
        for one, other, names, result in ((x, y, ("bij", "bkj"), "bik"), (x[0], y[0, 0], ("ij", "j"), "i")):
            labels = labelled((one.shape, other.shape), names, result)
            want = np.einsum(",".join(names) + "->" + result, one, other)
            np.testing.assert_allclose(labels.evaluate(one, other), want, rtol=1e-5, atol=1e-5)
    assert for_blas(laid[0]) is laid[0], "gaps between rows"
    assert for_blas(laid[2]).flags.c_contiguous


def test_tangents_of_einstein_sums_are_products_of_matrices() -> None:
    x, y = np.ones((2, 3)), np.arange(12.0).reshape(3, 4)

    def moved(t: Any, **options: Any) -> Any:
        return wg.jvp(lambda x: np.einsum("ij,jk->ik", x, y, **options), (x,), (t,))[1]

    assert [e.primitive.name for e in trace(moved)(x).equations] == ["contract"]
    np.testing.assert_array_equal(moved(x), x @ y)
    np.testing.assert_array_equal(moved(x, dtype=np.float64), x @ y)


def test_einsum_of_unequal_axes_is_refused_where_numpy_reads_foreign_memory() -> None:
    for function in (lambda x: np.einsum("ii->i", x), wg.jit(lambda x: np.einsum("ii->i", x))):
        with pytest.raises(ShapeError, match="axes of lengths 0 and 3 for label 'i'"):
            function(wg.asarray(np.zeros((0, 3))))


def test_series_of_products_of_several_operands_convolve() -> None:
    def f(t: Any) -> Any:
        return np.einsum("i,i,i->", t * X[0, 0], t + X[0, 1], t - X[0, 2])

    a, b, c = X[0, :3]
    want = [np.sum(a * b * -c), np.sum(a * (b - c)), np.sum(a), 0.0, 0.0]
    np.testing.assert_allclose(wg.taylor(f, (0.0,), (1.0,), 4), [0.0, *want[:4]], atol=1e-15)


def test_contractions_are_saved_with_their_labels(tmp_path: Path) -> None:
    graph = trace(wg.vmap(lambda x: np.kron(x, x)[:, 0] * np.convolve(x[0], x[1])[0]))(X)
    names = [equation.primitive.name for equation in graph.equations]
    assert names.count("contract") == 2
    save(graph, tmp_path / "g")
    assert load(tmp_path / "g") == graph


@pytest.mark.parametrize(
    "fields",
    [
        ([[0, 1]], [0], [2], [False], None, None),
        ([[0, 1]], [0], [2, 3], [], None, None),
        ([[0, 1]], [0, -1], [2, 3], [False], None, None),
        ([[0, 1]], [0], [2, 3], [False], None, [3]),
    ],
)
def test_labels_that_do_not_fit_together_are_no_record(fields: Any) -> None:
    operands, result, lengths, conjugated, relation, merged = fields
    found = Labels(
        tuple(map(tuple, operands)),
        tuple(result),
        tuple(lengths),
        tuple(conjugated),
        relation,
        None if merged is None else tuple(merged),
    )
    with pytest.raises((ValueError, IndexError)):
        found.check()


def test_rules_that_do_not_follow_from_forms_are_few() -> None:
    ordinary = [p for p in PRIMITIVES.values() if not p.structured and p.name.isidentifier()]
    assert {p.name for p in ordinary if type(form_of(p)) is Form} == WITHOUT
    assert {p.name for p in ordinary if p.batch is not None} == OWN_BATCH.keys()


def test_products_with_several_rows_and_no_columns_can_be_differentiated():
    gradient = wg.grad(lambda c: np.sum(np.einsum("asb,si->sabi", c, np.arange(10.0).reshape(2, 5))))
    np.testing.assert_array_equal(gradient(np.ones((3, 2, 4))), np.full((3, 2, 4), [[10.0], [35.0]]))


def test_records_are_compared_by_content_stay_as_they_are_and_say_which_fields_they_have() -> None:
    assert Reduction(np.add) == Reduction(np.add, ()) != Reduction(np.multiply)
    assert hash(Reduction(np.add)) == hash(Reduction(np.add))
    assert repr(Scan("ufunc")) == "Scan(combine='ufunc')"
    assert Reduction(np.add).replace(operands=("where",)) == Reduction(np.add, ("where",))
    with pytest.raises(AttributeError, match="Scan is a record, which stays as it is"):
        Scan("ufunc").combine = None
    kind: Any = Scan
    for values, named in (((), {}), ((1, 2), {}), ((1,), {"combine": 2}), ((), {"other": 1})):
        with pytest.raises(UsageError, match=r"^Scan: .*; the fields combine are needed. Give each of them once"):
            kind(*values, **named)


def test_named_tuples_are_made_as_those_of_python_are() -> None:
    peer = collections.namedtuple("Row", "first second third", defaults=(3,))

    class Row(NamedTuple):
        first: int
        second: int
        third: int = 3

    def outcome(kind: Callable[..., Any], *values: Any, **named: Any) -> Any:
        try:
            return tuple(kind(*values, **named))
        except TypeError:
            return TypeError

    numbers: list[tuple[int, ...]] = [tuple(range(count)) for count in range(5)]
    names = [names for count in range(4) for names in itertools.combinations(("first", "second", "third", "no"), count)]
    for values, given in itertools.product(numbers, names):
        named = dict.fromkeys(given, 7)
        assert outcome(Row, *values, **named) == outcome(peer, *values, **named)
    for values in numbers:
        assert outcome(Row._make, values) == outcome(peer._make, values)
    assert [*inspect.signature(Row).parameters] == [*inspect.signature(peer).parameters]
    assert inspect.signature(Row).parameters["third"].default == 3


def test_contractions_are_written_as_for_einsum() -> None:
    form = multilinear("tests.form", lambda a, x, b: np.einsum("ij,j,i->i", a, x, b), form=Contraction("ij,j,i->i"))
    a, x, b = np.arange(6.0).reshape(2, 3), np.ones(3), np.array([2.0, 3.0])
    slopes = wg.jacobian(lambda *xs: apply(form, *xs), (0, 1, 2))(a, x, b)
    wanted = wg.jacobian(lambda a, x, b: (a @ x) * b, (0, 1, 2))(a, x, b)
    for found, exact in zip(slopes, wanted, strict=True):
        assert np.array_equal(found, exact)
    lanes = wg.vmap(lambda x: apply(form, a, x, b))(np.eye(3))
    assert np.array_equal(lanes, (a * b[:, None]).T)
