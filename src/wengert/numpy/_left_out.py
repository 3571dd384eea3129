"""What the namespaces of NumPy and SciPy have and these do not, with the reason: `docs/left-out.md` lists it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert._otherwise import OTHERWISE, said_of

__all__ = ["LEFT_OUT", "NUMPYS_OWN", "named_on_demand"]


def because(reason: str, names: str) -> dict[str, str]:
    """Return a reason for each of some names."""
    return dict.fromkeys(names.split(), reason)


OLD = "it is an old name of a module of SciPy's"

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
        OLD,
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
    **because(OLD, "fitpack fitpack2 interpnd interpolate ndgriddata polyint rbf"),
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

SCIPY_STATS: Mapping[str, str] = {
    **because(
        "it belongs to SciPy's own code",
        "BootstrapMethod ConstantInputWarning DegenerateDataWarning FitError MonteCarloMethod NearConstantInputWarning "
        "PermutationMethod test",
    ),
    **because(
        OLD,
        "biasedurn distributions kde morestats mstats_basic mstats_extras mvn stats",
    ),
    **because("masks are forgotten by its arithmetic; use numpy.where, or where= of reductions", "mstats"),
    **because(
        "it makes distributions of functions or samples; write logpdf and cdf with NumPy's functions",
        "Binomial CensoredData Covariance Logistic Mixture Normal Uniform abs exp log make_distribution "
        "order_statistic rv_continuous rv_discrete rv_histogram truncate",
    ),
    **because("write the mean of norm.pdf over the samples with numpy.mean", "gaussian_kde"),
    **because("it is another name of loguniform", "reciprocal"),
    **because("use gamma with that shape", "erlang"),
    **because("use invgauss with mu=1", "wald"),
    **because("use lognorm with s=1", "gibrat"),
    **because(
        "no formulas are written for the distribution; write its logpdf with NumPy's functions",
        "alpha anglit arcsine argus betabinom betanbinom betaprime boltzmann bradford burr burr12 chi cosine "
        "crystalball dgamma dirichlet_multinomial dlaplace dpareto_lognorm dweibull exponnorm exponpow exponweib "
        "fatiguelife fisk foldcauchy foldnorm gausshyper genexpon gengamma genhalflogistic genhyperbolic geninvgauss "
        "genlogistic gennorm gompertz halfgennorm halflogistic hypergeom hypsecant invweibull invwishart irwinhall "
        "jf_skew_t johnsonsb johnsonsu kappa3 kappa4 ksone kstwo kstwobign landau laplace_asymmetric levy levy_l "
        "levy_stable loggamma loglaplace logser lomax matrix_normal matrix_t mielke moyal multivariate_hypergeom "
        "nakagami ncf nchypergeom_fisher nchypergeom_wallenius nct ncx2 nhypergeom normal_inverse_gamma norminvgauss "
        "pearson3 planck poisson_binom powerlaw powerlognorm powernorm randint rdist recipinvgauss rel_breitwigner "
        "rice semicircular skellam skewcauchy studentized_range trapezoid triang truncexpon truncpareto "
        "truncweibull_min tukeylambda vonmises_fisher vonmises_line weibull_max wrapcauchy yulesimon zipf zipfian",
    ),
    **because(
        "it draws random numbers; use wengert.random",
        "ortho_group qmc random_correlation random_table sobol_indices special_ortho_group uniform_direction "
        "unitary_group",
    ),
    **because(
        "its p-value is a table's or a simulation's; call SciPy's own on plain arrays",
        "alexandergovern anderson anderson_ksamp ansari barnard_exact bartlett binomtest boschloo_exact brunnermunzel "
        "bws_test chatterjeexi chi2_contingency chisquare combine_pvalues contingency cramervonmises "
        "cramervonmises_2samp dunnett epps_singleton_2samp f_oneway false_discovery_control fisher_exact fligner "
        "friedmanchisquare goodness_of_fit jarque_bera kruskal ks_1samp ks_2samp kstest kurtosistest levene logrank "
        "mannwhitneyu median_test monte_carlo_test mood multiscale_graphcorr normaltest page_trend_test "
        "permutation_test poisson_means_test power power_divergence quantile_test ranksums shapiro skewtest "
        "ttest_1samp ttest_ind ttest_ind_from_stats ttest_rel tukey_hsd wilcoxon",
    ),
    **because(
        "it counts or ranks, and is constant between jumps; call SciPy's own on plain arrays",
        "binned_statistic binned_statistic_2d binned_statistic_dd cumfreq ecdf estimated_cdf kendalltau mode "
        "percentileofscore rankdata relfreq somersd spearmanr spearmanrho tiecorrect weightedtau",
    ),
    **because(
        "it searches or draws by its samples; use wengert.optim.minimize with the likelihood",
        "bayes_mvs bootstrap boxcox_normmax boxcox_normplot fit mvsdist ppcc_max ppcc_plot probplot yeojohnson "
        "yeojohnson_normmax yeojohnson_normplot",
    ),
    **because("use wengert.scipy.special.boxcox, and write the likelihood with it", "boxcox boxcox_llf yeojohnson_llf"),
    **because("use numpy.corrcoef, or numpy.polyfit with degree 1", "linregress pearsonr pointbiserialr"),
    **because("use numpy.quantile", "iqr median_abs_deviation quantile scoreatpercentile"),
    **because(
        "use numpy.sort, and cut or combine what it gives",
        "differential_entropy energy_distance lmoment siegelslopes sigmaclip theilslopes trim1 trim_mean trimboth "
        "wasserstein_distance wasserstein_distance_nd",
    ),
    **because(
        "write it with numpy.mean, numpy.var, numpy.exp and numpy.log",
        "circmean circstd circvar describe directional_stats expectile gmean gstd gzscore hmean kstat kstatvar "
        "kurtosis moment obrientransform pmean sem skew tmax tmean tmin tsem tstd tvar variation zmap",
    ),
}

SCIPY_INTEGRATE: Mapping[str, str] = {
    **because("it belongs to SciPy's own code", "IntegrationWarning ODEintWarning test"),
    **because(OLD, "dop lsoda odepack quadpack vode"),
    **because(
        "its steps are chosen by the values; write a method with fixed steps (Runge's and Kutta's) in a loop, or with "
        "wengert.scan",
        "BDF DOP853 DenseOutput LSODA OdeSolution OdeSolver RK23 RK45 Radau complex_ode ode odeint solve_bvp solve_ivp",
    ),
    **because(
        "its points are chosen by the values; use fixed_quad, whose nodes are fixed",
        "cubature dblquad nquad quad quad_vec tanhsinh tplquad",
    ),
    **because("its points are random numbers; use wengert.random and numpy.mean", "qmc_quad"),
    **because("its terms are chosen by the values; use numpy.sum", "nsum"),
    **because("it has numbers for results that nothing is differentiated by; call SciPy's own", "lebedev_rule"),
    **because("it has numbers for results that nothing is differentiated by; call SciPy's own", "newton_cotes"),
    **because("use cumulative_trapezoid, or antiderivative of CubicSpline", "cumulative_simpson"),
}

SCIPY_NDIMAGE: Mapping[str, str] = {
    **because("it belongs to SciPy's own code", "test"),
    **because(OLD, "filters fourier interpolation measurements morphology"),
    **because(
        "whether elements belong to a shape is no number; call SciPy's own on plain arrays",
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening "
        "binary_propagation find_objects generate_binary_structure iterate_structure label value_indices watershed_ift",
    ),
    **because(
        "it is constant between jumps; call SciPy's own on plain arrays",
        "distance_transform_bf distance_transform_cdt distance_transform_edt maximum_position minimum_position",
    ),
    **because(
        "write it with numpy.lib.stride_tricks.sliding_window_view of the padded image, and max, min or sort",
        "black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter maximum_filter1d "
        "median_filter minimum_filter minimum_filter1d morphological_gradient morphological_laplace percentile_filter "
        "rank_filter white_tophat",
    ),
    **because(
        "it calls a function for each place; use wengert.vmap of it over numpy.lib.stride_tricks.sliding_window_view",
        "generic_filter generic_filter1d vectorized_filter",
    ),
    **because("call the function on correlate1d of each axis", "generic_gradient_magnitude generic_laplace"),
    **because("use map_coordinates", "geometric_transform"),
    **because(
        "multiply numpy.fft.fftn by the factors",
        "fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform",
    ),
    **because(
        "use numpy.bincount with weights, or the function of NumPy with where=labels == i",
        "center_of_mass extrema histogram labeled_comprehension maximum mean median minimum standard_deviation sum "
        "sum_labels variance",
    ),
}

SCIPY_SIGNAL: Mapping[str, str] = {
    **because("it belongs to SciPy's own code", "BadCoefficients test"),
    **because(
        OLD,
        "bsplines filter_design fir_filter_design lti_conversion ltisys signaltools spectral spline waveforms wavelets",
    ),
    **because(
        "it designs filters or windows from numbers; call SciPy's own, and pass what it gives",
        "band_stop_obj bessel besselap buttap butter buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2 ellip "
        "ellipap ellipord findfreqs firls firwin firwin2 firwin_2d gammatone get_window iircomb iirdesign iirfilter "
        "iirnotch iirpeak kaiser_atten kaiser_beta kaiserord minimum_phase remez windows",
    ),
    **because(
        "it has another form of a filter for a result; call SciPy's own, and pass what it gives",
        "abcd_normalize bilinear bilinear_zpk cont2discrete invres invresz lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp "
        "lp2hp_zpk lp2lp lp2lp_zpk normalize place_poles residue residuez sos2tf sos2zpk ss2tf ss2zpk tf2sos tf2ss "
        "tf2zpk unique_roots zpk2sos zpk2ss zpk2tf",
    ),
    **because("use stft, istft or spectrogram", "ShortTimeFFT closest_STFT_dual_window"),
    **because("whether windows fit is no number; call SciPy's own on plain arrays", "check_COLA check_NOLA"),
    **because("write it with numpy.cos and numpy.sin of the times, and numpy.sum", "lombscargle vectorstrength"),
    **because(
        "write it with wengert.scipy.linalg.solve_banded, or solve, of the penalised differences", "whittaker_henderson"
    ),
    **because("use numpy.fft, or multiply by the powers", "CZT ZoomFFT czt czt_points zoom_fft"),
    **because(
        "write it with numpy.polyval of the coefficients at numpy.exp(1j * w)",
        "bode dbode dfreqresp freqresp freqs freqs_zpk freqz freqz_sos freqz_zpk group_delay sosfreqz",
    ),
    **because(
        "its objects hold plain arrays; use lfilter, or powers and expm of wengert.scipy.linalg",
        "StateSpace TransferFunction ZerosPolesGain dimpulse dlsim dlti dstep impulse lsim lti step",
    ),
    **because(
        "it searches for places, which jump; call SciPy's own on plain arrays",
        "argrelextrema argrelmax argrelmin find_peaks find_peaks_cwt peak_prominences peak_widths",
    ),
    **because(
        "write it with numpy.cos, numpy.exp and numpy.where",
        "chirp gauss_spline gausspulse max_len_seq sawtooth square sweep_poly unit_impulse",
    ),
    **because("use spline_filter1d and map_coordinates of wengert.scipy.ndimage", "cspline1d cspline1d_eval cspline2d"),
    **because("use spline_filter1d and map_coordinates of wengert.scipy.ndimage", "qspline1d qspline1d_eval qspline2d"),
    **because("use spline_filter1d and map_coordinates of wengert.scipy.ndimage", "spline_filter"),
    **because("use convolve2d or correlate1d of wengert.scipy.ndimage", "sepfir2d"),
    **because("use lfilter forwards and backwards, or sosfiltfilt", "symiirorder1 symiirorder2"),
    **because("use resample_poly, or a filter and a slice with a step", "decimate"),
    **because("use numpy.abs of hilbert", "envelope"),
    **because("use hilbert along both axes", "hilbert2"),
    **because("use medfilt", "medfilt2d order_filter"),
    **because("use uniform_filter of wengert.scipy.ndimage for its means and variances", "wiener"),
    **because("lags are whole numbers; call SciPy's own", "choose_conv_method correlation_lags"),
}

SCIPY_DISTANCE: Mapping[str, str] = {
    **because(
        "of truths it is constant between jumps; call SciPy's own on plain arrays",
        "dice jaccard rogerstanimoto russellrao sokalsneath yule",
    ),
    **because("use numpy.max and numpy.min of cdist", "directed_hausdorff"),
    **because("it says what an array is; call SciPy's own", "is_valid_dm is_valid_y num_obs_dm num_obs_y"),
}

SCIPY_SPATIAL: Mapping[str, str] = {
    **because("it belongs to SciPy's own code", "QhullError test"),
    **because(OLD, "ckdtree kdtree qhull"),
    **because(
        "its cells and neighbours jump as points move; call SciPy's own on plain arrays, and index with what it gives",
        "ConvexHull Delaunay HalfspaceIntersection KDTree SphericalVoronoi Voronoi cKDTree tsearch",
    ),
    **because("it belongs to pictures", "convex_hull_plot_2d delaunay_plot_2d voronoi_plot_2d"),
    **because("use wengert.scipy.spatial.distance.cdist", "distance_matrix minkowski_distance minkowski_distance_p"),
    **because("write it with numpy.where and numpy.linalg", "Rectangle geometric_slerp procrustes transform"),
}

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "numpy": NUMPY,
    "scipy.integrate": SCIPY_INTEGRATE,
    "scipy.interpolate": SCIPY_INTERPOLATE,
    "scipy.linalg": SCIPY_LINALG,
    "scipy.ndimage": SCIPY_NDIMAGE,
    "scipy.signal": SCIPY_SIGNAL,
    "scipy.spatial": SCIPY_SPATIAL,
    "scipy.spatial.distance": SCIPY_DISTANCE,
    "scipy.special": SCIPY_SPECIAL,
    "scipy.stats": SCIPY_STATS,
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
        raise AttributeError(f"module 'wengert.{module}' has no attribute {name!r}{said_of(name, OTHERWISE)}")

    return getattribute
