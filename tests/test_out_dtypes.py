"""Reductions and accumulations calculate in the dtype of `out=`, as NumPy's do."""

import itertools

import numpy as np
import pytest

import wengert as wg
from tests.cases import together

CALLS = {
    "sum": lambda x, out: np.sum(x, axis=0, out=out),
    "prod": lambda x, out: np.prod(x, axis=0, out=out),
    "mean": lambda x, out: np.mean(x, axis=0, out=out),
    "add.reduce": lambda x, out: np.add.reduce(x, out=out),
    "einsum": lambda x, out: np.einsum("ij,ij->j", x, x, out=out),
    "logaddexp.reduce": lambda x, out: np.logaddexp.reduce(x, out=out),
}
RUNNING = {
    "cumsum": lambda x, out: np.cumsum(x, axis=0, out=out),
    "cumprod": lambda x, out: np.cumprod(x, axis=0, out=out),
    "cumulative_sum": lambda x, out: np.cumulative_sum(x, axis=0, out=out),
    "multiply.accumulate": lambda x, out: np.multiply.accumulate(x, out=out),
}


KINDS = [("f4", "f8"), ("f8", "f4"), ("i4", "f8"), ("f2", "f8"), ("f4", "c16")]
UNLIKE = [("mean", ("f2", "f8"))]
"""NumPy adds in single precision and divides in that of the target, which no dtype of ours asks for."""


@pytest.mark.parametrize(
    ("name", "kinds"), [x for x in itertools.product([*CALLS, *RUNNING], KINDS) if x not in UNLIKE]
)
def test_results_have_the_bits_of_numpy(name, kinds):
    call = (CALLS | RUNNING)[name]
    x = (np.random.default_rng(0).normal(size=(50, 3)) * 4 + 5).astype(kinds[0])
    shape = (3,) if name in CALLS else (50, 3)
    target = np.zeros(shape, kinds[1])
    try:
        call(x, target)
    except TypeError:
        pytest.skip("NumPy has no such loop")
    for given in (wg.tensor(x), x):
        out = wg.tensor(np.zeros(shape, kinds[1]))
        call(given, out)
        np.testing.assert_array_equal(out.numpy(), target)


REFUSING = {
    "dot": lambda x, out: np.dot(x, x[0], out=out),
    "dot, by method": lambda x, out: x.dot(x[0], out=out),
    "multi_dot": lambda x, out: np.linalg.multi_dot([x, x[0]], out=out),
    "outer": lambda x, out: np.outer(x[0], x[0], out=out),
    "einsum": lambda x, out: np.einsum("ij,ij->j", x, x, out=out),
    "einsum of one": lambda x, out: np.einsum("ij->j", x, out=out),
    "einsum, casting": lambda x, out: np.einsum("ij->j", x, out=out, casting="same_kind"),
    "einsum by steps": lambda x, out: np.einsum("ij,jk->k", x, x, out=out, optimize=True),
    "take": lambda x, out: np.take(x, [2, 0], axis=0, out=out),
    "take, clipped": lambda x, out: x.take([2, 9], axis=0, out=out, mode="clip"),
    "compress": lambda x, out: np.compress([True, False, True], x, axis=0, out=out),
    "choose": lambda x, out: np.choose([2, 0, 1], x, out=out),
    "argmax": lambda x, out: np.argmax(x, axis=0, out=out),
    "nanargmin": lambda x, out: np.nanargmin(x, axis=0, out=out),
    "quantile": lambda x, out: np.quantile(x, 0.3, axis=0, out=out),
    **{
        f"quantile, {method}": lambda x, out, method=method: np.quantile(x, 0.3, axis=0, out=out, method=method)
        for method in ("lower", "nearest", "inverted_cdf", "closest_observation", "averaged_inverted_cdf", "weibull")
    },
    "nanquantile": lambda x, out: np.nanquantile(x, 0.3, axis=0, out=out, method="lower"),
    "matvec": lambda x, out: np.matvec(x, x[0], out=out),
    "clip": lambda x, out: np.clip(x, 1, 2, out=out),
    "max": lambda x, out: np.max(x, axis=0, out=out),
    "concatenate": lambda x, out: np.concatenate([x, x], out=out),
    "diagonal sum": lambda x, out: np.trace(x[None] + x[:, None], out=out),
}


@pytest.mark.parametrize("call", REFUSING.values(), ids=REFUSING)
def test_dtypes_that_numpy_refuses_are_refused(call):
    """And those that are written have NumPy's elements; what NumPy casts to another kind is refused as well."""
    for given, target in itertools.product(("f8", "f4", "i4", "i8", "c16", "?"), ("f8", "f4", "i4", "i8", "c16", "u1")):
        x = np.arange(9).reshape(3, 3).astype(given)
        try:
            shape = call(wg.tensor(x), None).shape
        except (TypeError, ValueError):
            continue
        wanted = np.zeros(shape, target)
        try:
            call(x, wanted)
        except (TypeError, ValueError, np.exceptions.ComplexWarning):
            wanted = None
        for out in (np.zeros(shape, target), wg.tensor(np.zeros(shape, target))):
            try:
                call(wg.tensor(x), out)
            except (TypeError, ValueError):
                assert not np.asarray(out).any()
            else:
                assert wanted is not None, f"{given} into {target}"
                np.testing.assert_array_equal(np.asarray(out), wanted)


def test_products_are_written_to_arrays_in_c_order_alone():
    for out in (
        np.zeros((2, 2), order="F"),
        np.zeros((2, 4))[:, ::2],
        wg.tensor(A).T,
        wg.tensor(np.ones((2, 4)))[:, ::2],
    ):
        with pytest.raises(ValueError, match="C order"):
            np.dot(wg.tensor(A), A, out=out)


def test_elements_are_read_when_it_is_their_turn():
    def program(x):
        for element in x:
            x[2] += element
        return x[2]

    x = np.array([1.0, 2.0, 3.0])
    assert program(x.copy()) == 12.0
    assert wg.jit(program)(x) == program(wg.tensor(x)) == 12.0
    np.testing.assert_array_equal(wg.grad(program)(x), [2.0, 2.0, 2.0])


A = np.array([[0.3, 0.7], [0.2, 0.9]])
WRITING = {
    "sin": (A,),
    "add": (A, A),
    "matmul": (A, A),
    "less": (A, A),
    "divmod": (A, A / 4),
    "modf": (A,),
    "cumsum": (A,),
    "median": (A,),
    "clip": (A, 0.25, 0.5),
    "take": (A, [1, 0], 0),
    "einsum": ("ij,jk->ik", A, A),
}
"""Functions of `wengert.numpy`, with arguments."""


def blank(name):
    found = getattr(np, name)(*WRITING[name])
    return tuple(np.full_like(x, 7) for x in found) if isinstance(found, tuple) else np.full_like(found, 7)


@pytest.mark.parametrize("name", WRITING)
def test_ndarrays_given_as_out_are_written_and_returned(name):
    for wrap in (lambda x: x, lambda x: wg.tensor(x) if isinstance(x, np.ndarray) else x):
        out = blank(name)
        found = getattr(wg.numpy, name)(*map(wrap, WRITING[name]), out=out)
        wanted = getattr(np, name)(*WRITING[name])
        several = isinstance(out, tuple)
        for x, y, z in zip(*((found, out, wanted) if several else ((found,), (out,), (wanted,))), strict=True):
            assert x is y
            np.testing.assert_array_equal(y, z)


@together("name", [name for name in WRITING if name != "less"])
@together("transform", [wg.grad, wg.jit, wg.vmap])
def test_nothing_is_written_where_an_ndarray_is_refused(name, transform):
    out = blank(name)

    def f(x):
        getattr(wg.numpy, name)(*(x if given is A else given for given in WRITING[name]), out=out)
        return np.sum(x)

    with pytest.raises(wg.errors.DtypeError, match="to be written"):
        transform(f)(A[None] if transform is wg.vmap else A)
    for x in out if isinstance(out, tuple) else (out,):
        assert (x == 7).all()


def test_all_outs_are_looked_at_before_one_is_written():
    for wrong, kind in ((np.zeros(3), "of shape (3,)"), (np.zeros((2, 2), int), "of dtype int64")):
        outs = np.full((2, 2), 7.0), wrong
        for target in (outs, (wg.tensor(outs[0]), wrong)):
            with pytest.raises(wg.errors.WengertError) as error:
                wg.numpy.modf(A, out=target)
            assert f"for an ndarray {kind}" in str(error.value)
            assert (np.asarray(target[0]) == 7).all()
    filled = np.zeros((3, 2, 2))
    wg.numpy.sin(A, out=filled)
    np.testing.assert_array_equal(filled, np.broadcast_to(np.sin(A), (3, 2, 2)))
