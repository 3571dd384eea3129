"""Reductions and accumulations calculate in the dtype of `out=`, as NumPy's do."""

import itertools

import numpy as np
import pytest

import wengert as wg

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


def test_elements_are_read_when_it_is_their_turn():
    def program(x):
        for element in x:
            x[2] += element
        return x[2]

    x = np.array([1.0, 2.0, 3.0])
    assert program(x.copy()) == 12.0
    assert wg.jit(program)(x) == program(wg.tensor(x)) == 12.0
    np.testing.assert_array_equal(wg.grad(program)(x), [2.0, 2.0, 2.0])
