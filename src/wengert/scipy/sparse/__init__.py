"""Sparse arrays with SciPy's names: `wengert.scipy.sparse`.

Functions take matrices of `scipy.sparse` as arguments of whatever is differentiated, batched or jitted, and are given
`SparseTensor`s, which have their methods and operators. The functions here make sparse arrays of stored elements that
are Tensors, and put sparse arrays together.

>>> import numpy as np
>>> import wengert as wg
>>> def energy(stiffness, x):
...     springs = csr_array((stiffness, ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
...     return x @ springs @ x
>>> wg.grad(energy)(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0]))
array([  1.,  10., 100.])
"""

from typing import TYPE_CHECKING

from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.scipy.sparse._construction import (
    block_array,
    block_diag,
    bsr_array,
    coo_array,
    csc_array,
    csr_array,
    dia_array,
    diags_array,
    eye_array,
    hstack,
    issparse,
    kron,
    tril,
    triu,
    vstack,
)
from wengert.support.hints import names_on_demand

if TYPE_CHECKING:
    from wengert.scipy.sparse import linalg as linalg

__all__ = [
    "SparseTensor",
    "block_array",
    "block_diag",
    "bsr_array",
    "coo_array",
    "csc_array",
    "csr_array",
    "dia_array",
    "diags_array",
    "eye_array",
    "hstack",
    "issparse",
    "kron",
    "linalg",
    "tril",
    "triu",
    "vstack",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.sparse", ("linalg",))
