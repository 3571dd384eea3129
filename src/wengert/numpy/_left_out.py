"""What the namespaces of NumPy and SciPy have and these do not, with the reason: `docs/left-out.md` lists it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["LEFT_OUT", "NUMPYS_OWN", "named_on_demand"]


def because(reason: str, names: str) -> dict[str, str]:
    """Return a reason for each of some names."""
    return dict.fromkeys(names.split(), reason)


NUMPY: Mapping[str, str] = {
    **because(
        "its elements are no numbers",
        "bytes_ character str_ char strings object_ void flexible rec recarray record frompyfunc",
    ),
    **because(
        "dates and times are no numbers",
        "datetime64 timedelta64 datetime_as_string datetime_data is_busday busday_count busday_offset busdaycalendar "
        "isnat",
    ),
    **because("use arrays with two axes", "matrix asmatrix bmat"),
    **because("it is the old name of vstack", "row_stack"),
    **because("masks are forgotten by its arithmetic; use numpy.where, or where= of reductions", "ma"),
    **because("use the functions poly, polyadd, polyder, polyfit, polyint, polyval and roots", "poly1d polynomial"),
    **because("whether results are complex depends on elements; convert with astype(complex)", "emath"),
    **because("iterate over indices, with numpy.ndindex or numpy.ndenumerate", "nditer nested_iters flatiter"),
    **because("what is written to memory of files is not seen; use load and save", "memmap"),
    **because("it belongs to NumPy's own C code and build", "ctypeslib f2py core get_include show_config test ufunc"),
    **because("it belongs to NumPy's documentation and type checking", "info show_runtime typing"),
}

SCIPY_LINALG: Mapping[str, str] = {
    **because("it belongs to SciPy's own calls of BLAS and LAPACK", "blas lapack cython_blas cython_lapack"),
    **because(
        "it belongs to SciPy's own calls of BLAS and LAPACK", "find_best_blas_type get_blas_funcs get_lapack_funcs"
    ),
    **because(
        "it is an old name of a module of SciPy's",
        "basic decomp decomp_cholesky decomp_lu decomp_qr decomp_schur decomp_svd matfuncs misc special_matrices",
    ),
    **because("whether a matrix has a structure is no number", "bandwidth ishermitian issymmetric"),
    **because(
        "its factors turn among themselves where eigenvalues are close; use eig, eigh, svd or qr",
        "schur rsf2csf cdf2rdf hessenberg qz ordqz cossin ldl rq matrix_balance",
    ),
    **because(
        "use solve_banded, or numpy.linalg.eigh of the whole matrix", "cholesky_banded cho_solve_banded solveh_banded"
    ),
    **because(
        "use solve_banded, or numpy.linalg.eigh of the whole matrix",
        "eig_banded eigvals_banded eigh_tridiagonal eigvalsh_tridiagonal",
    ),
    **because("its shape depends on the rank; use svd", "null_space orth"),
    **because("use svdvals, or pinv of numpy.linalg with hermitian=True", "subspace_angles pinvh"),
    **because("use wengert.jvp of expm", "expm_frechet expm_cond"),
    **because("use expm, logm, sqrtm or fractional_matrix_power", "funm signm"),
    **because("use qr of the new matrix", "qr_delete qr_insert qr_multiply qr_update"),
    **because("use solve with toeplitz, circulant or numpy.diag", "solve_circulant matmul_toeplitz diagsvd"),
    **because(
        "write it with numpy.concatenate and numpy.diag",
        "companion convolution_matrix fiedler fiedler_companion leslie",
    ),
    **because("use solve_continuous_lyapunov in Newton's iteration", "solve_continuous_are solve_discrete_are"),
    **because("it draws random numbers; use wengert.random", "clarkson_woodruff_transform"),
}

LEFT_OUT: Mapping[str, Mapping[str, str]] = {"numpy": NUMPY, "scipy.linalg": SCIPY_LINALG}
"""For each namespace the names that are not in it, with the reason."""

NUMPYS_OWN = ("dtypes", "exceptions", "random", "testing")
"""The modules of NumPy that stand in `wengert.numpy` as they are. What `random` draws is drawn when Python runs, so
once under `jit`: `wengert.random` has what traces and batches."""


def named_on_demand(module: str, modules: Sequence[str] = (), later: Sequence[str] = ()) -> Callable[[str], Any]:
    """Return the `__getattr__` of a namespace: it imports modules, and says why names are left out.

    Args:
        module: the namespace in NumPy or SciPy.
        modules: those of its modules that stand in it as they are.
        later: modules of the namespace itself that are imported when they are first asked for.
    """

    def getattribute(name: str) -> Any:
        if name in later:
            return importlib.import_module(f"wengert.{module}.{name}")
        if name in modules:
            return importlib.import_module(f"{module}.{name}")
        reason = LEFT_OUT[module].get(name)
        if reason is not None:
            raise AttributeError(f"{module}.{name} has no derivative in Wengert; {reason}.")
        raise AttributeError(f"module 'wengert.{module}' has no attribute {name!r}")

    return getattribute
