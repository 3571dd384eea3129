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

SCIPY_SPECIAL: Mapping[str, str] = {
    **because(
        "it belongs to SciPy's own code",
        "SpecialFunctionError SpecialFunctionWarning add_newdocs basic cython_special errstate geterr "
        "orthogonal seterr sf_error specfun spfun_stats test",
    ),
    **because(
        "its results are SciPy's polynomial objects; use the function eval_ of the same name",
        "chebyc chebys chebyt chebyu gegenbauer genlaguerre hermite hermitenorm jacobi laguerre legendre "
        "sh_chebyt sh_chebyu sh_jacobi sh_legendre",
    ),
    **because(
        "it has numbers for results that nothing is differentiated by; call SciPy's own",
        "ai_zeros bei_zeros beip_zeros ber_zeros bernoulli berp_zeros bi_zeros c_roots cg_roots erf_zeros "
        "euler factorial2 factorialk fresnel_zeros fresnelc_zeros fresnels_zeros h_roots he_roots j_roots "
        "jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros js_roots kei_zeros keip_zeros kelvin_zeros ker_zeros "
        "kerp_zeros l_roots la_roots mathieu_even_coef mathieu_odd_coef obl_cv_seq p_roots perm pro_cv_seq "
        "ps_roots roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre "
        "roots_hermite roots_hermitenorm roots_jacobi roots_laguerre roots_legendre roots_sh_chebyt "
        "roots_sh_chebyu roots_sh_jacobi roots_sh_legendre s_roots stirling2 t_roots ts_roots u_roots "
        "us_roots y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros",
    ),
    **because(
        "use wengert.grad or wengert.jvp of the function itself",
        "h1vp h2vp ivp jvp kvp yvp",
    ),
    **because(
        "no rule is written for it; declare a primitive with wengert.extend",
        "agm airye assoc_laguerre assoc_legendre_p assoc_legendre_p_all bdtr bdtrc bdtri bdtrik bdtrin bei "
        "beip ber berp besselpoly btdtria btdtrib chdtriv chndtr chndtridf chndtrinc chndtrix diric "
        "ellip_harm ellip_harm_2 ellip_normal ellipj elliprc elliprd elliprf elliprg elliprj eval_sh_jacobi "
        "fdtridfd gdtria gdtrib gdtrix hankel1e hankel2e it2i0k0 it2j0y0 it2struve0 itairy iti0k0 itj0y0 "
        "itmodstruve0 itstruve0 kei keip kelvin ker kerp kolmogi kolmogorov legendre_p legendre_p_all lmbda "
        "log_wright_bessel lpmv lqmn lqn mathieu_a mathieu_b mathieu_cem mathieu_modcem1 mathieu_modcem2 "
        "mathieu_modsem1 mathieu_modsem2 mathieu_sem modfresnelm modfresnelp nbdtr nbdtrc nbdtri nbdtrik "
        "nbdtrin ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit nrdtrimn "
        "nrdtrisd obl_ang1 obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv pbdn_seq pbdv "
        "pbdv_seq pbvv pbvv_seq pbwa pdtri pdtrik pro_ang1 pro_ang1_cv pro_cv pro_rad1 pro_rad1_cv pro_rad2 "
        "pro_rad2_cv radian riccati_jn riccati_yn smirnov smirnovi sph_harm_y sph_harm_y_all sph_legendre_p "
        "sph_legendre_p_all stdtridf tklmbda voigt_profile wright_bessel zetac",
    ),
}

SCIPY_INTERPOLATE: Mapping[str, str] = {
    **because(
        "it is an old name of a module of SciPy's", "fitpack fitpack2 interpnd interpolate ndgriddata polyint rbf"
    ),
    **because("it belongs to SciPy's own code", "test"),
    **because("SciPy itself raises when it is called; use RegularGridInterpolator", "interp2d"),
    **because(
        "its knots are chosen by the samples; use make_interp_spline, make_lsq_spline or RectBivariateSpline",
        "BivariateSpline LSQBivariateSpline LSQSphereBivariateSpline LSQUnivariateSpline RectSphereBivariateSpline "
        "SmoothBivariateSpline SmoothSphereBivariateSpline UnivariateSpline bisplev bisplrep generate_knots "
        "make_smoothing_spline make_splprep make_splrep splprep",
    ),
    **because(
        "the triangles of its points change with them; use RegularGridInterpolator",
        "CloughTocher2DInterpolator LinearNDInterpolator NearestNDInterpolator griddata",
    ),
    **because("use wengert.taylor", "approximate_taylor_polynomial"),
    **because("its results are SciPy's polynomial objects; use BarycentricInterpolator", "lagrange pade"),
    **because("its terms are chosen by the samples; use BarycentricInterpolator", "AAA FloaterHormannInterpolator"),
    **because("use PPoly or CubicHermiteSpline", "BPoly"),
    **because("use RegularGridInterpolator", "NdBSpline NdPPoly"),
    **because("use derivative and __call__ of BSpline", "spalde"),
    **because("use wengert.optim.root", "sproot"),
    **because("it makes the same spline of more knots; use BSpline", "insert"),
    **because("use numpy.linalg.solve with the matrix of the kernel", "RBFInterpolator Rbf"),
}

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "numpy": NUMPY,
    "scipy.interpolate": SCIPY_INTERPOLATE,
    "scipy.linalg": SCIPY_LINALG,
    "scipy.special": SCIPY_SPECIAL,
}
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
