"""Where public names are, for errors that say so; `python -m tools.public_names` writes this."""

__all__ = ["PLACES", "SCIPYS"]

PLACES = {
    "numpy": """
False_ ScalarType True_ abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis
apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere
around array array2string array_equal array_equiv array_repr array_split array_str asanyarray asarray_chkfinite
ascontiguousarray asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett
base_repr binary_repr bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor blackman block bool bool_ broadcast broadcast_arrays broadcast_shapes broadcast_to byte
c_ can_cast cbrt cdouble ceil choose clip clongdouble column_stack common_type complex128 complex256 complex64
complexfloating compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef correlate cos cosh
count_nonzero cov cross csingle cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices
diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum
einsum_path empty empty_like equal errstate euler_gamma exp exp2 expand_dims expm1 extract eye fabs fft fill_diagonal
finfo fix flatnonzero flip fliplr flipud float128 float16 float32 float64 float_power floating floor floor_divide fmax
fmin fmod format_float_positional format_float_scientific frexp from_dlpack frombuffer fromfile fromfunction fromiter
fromregex fromstring full full_like gcd generic genfromtxt geomspace get_printoptions getbufsize geterr geterrcall
gradient greater greater_equal half hamming hanning heaviside histogram histogram2d histogram_bin_edges histogramdd
hsplit hstack hypot i0 identity iinfo imag index_exp indices inexact inf inner insert int16 int32 int64 int8 int_ intc
integer interp intersect1d intp invert isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan
isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less less_equal
lexsort lib linalg linspace little_endian load loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
logical_or logical_xor logspace long longdouble longlong mask_indices matmul matrix_transpose matvec max maximum
may_share_memory mean median meshgrid mgrid min min_scalar_type minimum mintypecode mod modf moveaxis multiply nan
nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile
nanstd nansum nanvar ndarray ndenumerate ndim ndindex negative newaxis nextafter nonzero not_equal number ogrid ones
ones_like outer packbits pad partition percentile permute_dims pi piecewise place poly polyadd polyder polydiv polyfit
polyint polymul polysub polyval positive pow power printoptions prod promote_types ptp put put_along_axis putmask
quantile r_ rad2deg radians ravel ravel_multi_index real real_if_close reciprocal remainder repeat require reshape
resize result_type right_shift rint roll rollaxis roots rot90 round s_ save savetxt savez savez_compressed sctypeDict
searchsorted select set_printoptions setbufsize setdiff1d seterr seterrcall setxor1d shape shares_memory short sign
signbit signedinteger sin sinc single sinh size sort sort_complex spacing split sqrt square squeeze stack std subtract
sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices
tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc typecodes typename ubyte uint uint16
uint32 uint64 uint8 uintc uintp ulong ulonglong union1d unique unique_all unique_counts unique_inverse unique_values
unpackbits unravel_index unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vectorize vsplit vstack
where zeros zeros_like
""",
    "numpy.linalg": """
LinAlgError cholesky det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power matrix_rank multi_dot norm pinv qr
slogdet solve svd svdvals tensorinv tensorsolve vector_norm
""",
    "autograd": """
Context Function GradFunction RemovableHandle backward detect_anomaly once_differentiable saved_tensors_hooks
""",
    "nn.functional": """
avg_pool1d avg_pool2d avg_pool3d batch_norm binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d conv3d
conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity cross_entropy dropout elu embedding gelu glu
grid_sample group_norm hardtanh huber_loss interpolate kl_div l1_loss layer_norm leaky_relu linear log_softmax
logsigmoid max_pool1d max_pool2d max_pool3d mish mse_loss nll_loss normalize one_hot pairwise_distance relu relu6
rms_norm scaled_dot_product_attention selu sigmoid silu smooth_l1_loss softmax softplus softsign upsample
""",
    "scipy.special": """
airy beta betainc betaincc betainccinv betaincinv betaln binom boxcox boxcox1p chdtr chdtrc chdtri comb cosdg cosm1
cotdg dawsn digamma ellipe ellipeinc ellipk ellipkinc ellipkm1 entr erf erfc erfcinv erfcx erfi erfinv eval_chebyc
eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite eval_hermitenorm eval_jacobi
eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_legendre exp1 exp10 expi expit expn exprel factorial
fdtr fdtrc fdtri fresnel gamma gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn gdtr gdtrc hankel1 hankel2
huber hyp0f1 hyp1f1 hyp2f1 hyperu i0e i1 i1e inv_boxcox inv_boxcox1p iv ive j0 j1 jn jv jve k0 k0e k1 k1e kn kv kve
lambertw log_expit log_ndtr loggamma logit logsumexp modstruve multigammaln ndtr ndtri ndtri_exp owens_t pdtr pdtrc poch
polygamma powm1 pseudo_huber psi rel_entr rgamma shichi sici sindg spence spherical_in spherical_jn spherical_kn
spherical_yn stdtr stdtrit struve tandg wofz wrightomega xlog1py xlogy y0 y1 yn yv yve zeta
""",
    "scipy.linalg": """
LinAlgWarning block_diag cho_factor cho_solve circulant coshm cosm dft expm fractional_matrix_power hadamard hankel
helmert hilbert invhilbert invpascal khatri_rao logm lu lu_factor lu_solve orthogonal_procrustes pascal polar sinhm sinm
solve_banded solve_continuous_lyapunov solve_discrete_lyapunov solve_lyapunov solve_sylvester solve_toeplitz
solve_triangular sqrtm tanhm tanm toeplitz
""",
    "optim": """
Optimizer Rule adagrad adam adamw clipped cosine curve_fit exponential least_squares lion minimize momentum rmsprop root
sgd warmed_up
""",
    "random": """
bernoulli bits categorical choice dirichlet fold_in integers key normal permutation poisson uniform
""",
    "tree": """
Structure leaves map paths register static structure
""",
    "functional": """
GradOperation Jvp
""",
    "testing": """
check_grads check_rule
""",
    "extend": """
Contraction DtypeError Like PRIMITIVES Place Pointwise Primitive Reduction RegistrationError Routine SIZE Scan Selection
ShapeError UsageError View aligned apply constant describe elementwise implements labelled lead multilinear opaque shift
""",
    "graph": """
Equation Executor Graph Variable check gradients placeholder render to_dot to_html to_svg
""",
    "errors": """
DetachedWarning EscapedValueError FileFormatError GraphError NumericalError RangeError TracedTruthError WengertError
placed
""",
    "numpy.fft": """
fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
""",
    "scipy.stats": """
cauchy chi2 entropy expon f genextreme genpareto geom gumbel_l gumbel_r halfcauchy halfnorm invgamma invgauss laplace
logistic lognorm loguniform maxwell multinomial multivariate_normal multivariate_t nbinom pareto rayleigh skewnorm t
truncnorm vonmises weibull_min wishart zscore
""",
    "scipy.signal": """
coherence convolve2d correlate2d csd deconvolve detrend fftconvolve filtfilt istft lfilter lfilter_zi lfiltic medfilt
oaconvolve periodogram resample resample_poly savgol_coeffs savgol_filter sosfilt sosfilt_zi sosfiltfilt spectrogram
stft upfirdn welch
""",
    "scipy": """
integrate ndimage signal spatial special stats
""",
    "scipy.integrate": """
cumulative_trapezoid fixed_quad romb simpson
""",
    "scipy.interpolate": """
Akima1DInterpolator BSpline BarycentricInterpolator CubicHermiteSpline CubicSpline InterpolatedUnivariateSpline
KroghInterpolator PPoly PchipInterpolator RectBivariateSpline RegularGridInterpolator barycentric_interpolate interp1d
interpn krogh_interpolate make_interp_spline make_lsq_spline pchip pchip_interpolate splantider splder splev splint
splrep
""",
    "scipy.ndimage": """
affine_transform convolve1d correlate1d gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace
map_coordinates prewitt rotate sobel spline_filter spline_filter1d uniform_filter uniform_filter1d zoom
""",
    "scipy.spatial.distance": """
braycurtis canberra cdist chebyshev cityblock correlation euclidean jensenshannon mahalanobis minkowski pdist seuclidean
sqeuclidean squareform
""",
    "nn": """
functional
""",
}
SCIPYS = {
    "scipy.integrate": """
cumulative_trapezoid fixed_quad romb simpson trapezoid
""",
    "scipy.interpolate": """
Akima1DInterpolator BSpline BarycentricInterpolator CubicHermiteSpline CubicSpline InterpolatedUnivariateSpline
KroghInterpolator PPoly PchipInterpolator RectBivariateSpline RegularGridInterpolator barycentric_interpolate interp1d
interpn krogh_interpolate make_interp_spline make_lsq_spline pchip pchip_interpolate splantider splder splev splint
splrep
""",
    "scipy.linalg": """
LinAlgError LinAlgWarning block_diag cho_factor cho_solve cholesky circulant coshm cosm det dft eig eigh eigvals
eigvalsh expm fractional_matrix_power hadamard hankel helmert hilbert inv invhilbert invpascal khatri_rao logm lstsq lu
lu_factor lu_solve norm orthogonal_procrustes pascal pinv polar qr sinhm sinm solve solve_banded
solve_continuous_lyapunov solve_discrete_lyapunov solve_lyapunov solve_sylvester solve_toeplitz solve_triangular sqrtm
svd svdvals tanhm tanm toeplitz
""",
    "scipy.ndimage": """
affine_transform convolve convolve1d correlate correlate1d gaussian_filter gaussian_filter1d gaussian_gradient_magnitude
gaussian_laplace laplace map_coordinates prewitt rotate shift sobel spline_filter spline_filter1d uniform_filter
uniform_filter1d zoom
""",
    "scipy.signal": """
coherence convolve convolve2d correlate correlate2d csd deconvolve detrend fftconvolve filtfilt hilbert istft lfilter
lfilter_zi lfiltic medfilt oaconvolve periodogram resample resample_poly savgol_coeffs savgol_filter sosfilt sosfilt_zi
sosfiltfilt spectrogram stft upfirdn welch
""",
    "scipy.spatial.distance": """
braycurtis canberra cdist chebyshev cityblock correlation cosine euclidean hamming jensenshannon mahalanobis minkowski
pdist seuclidean sqeuclidean squareform
""",
    "scipy.special": """
airy beta betainc betaincc betainccinv betaincinv betaln binom boxcox boxcox1p cbrt chdtr chdtrc chdtri comb cosdg cosm1
cotdg dawsn digamma ellipe ellipeinc ellipk ellipkinc ellipkm1 entr erf erfc erfcinv erfcx erfi erfinv eval_chebyc
eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite eval_hermitenorm eval_jacobi
eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_legendre exp1 exp10 exp2 expi expit expm1 expn exprel
factorial fdtr fdtrc fdtri fresnel gamma gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn gdtr gdtrc hankel1
hankel2 huber hyp0f1 hyp1f1 hyp2f1 hyperu i0 i0e i1 i1e inv_boxcox inv_boxcox1p iv ive j0 j1 jn jv jve k0 k0e k1 k1e
kl_div kn kv kve lambertw log1p log_expit log_ndtr log_softmax loggamma logit logsumexp modstruve multigammaln ndtr
ndtri ndtri_exp owens_t pdtr pdtrc poch polygamma powm1 pseudo_huber psi rel_entr rgamma round shichi sici sinc sindg
softmax softplus spence spherical_in spherical_jn spherical_kn spherical_yn stdtr stdtrit struve tandg wofz wrightomega
xlog1py xlogy y0 y1 yn yv yve zeta
""",
    "scipy.stats": """
bernoulli beta binom categorical cauchy chi2 dirichlet entropy expon f gamma genextreme genpareto geom gumbel_l gumbel_r
halfcauchy halfnorm invgamma invgauss laplace logistic lognorm loguniform maxwell multinomial multivariate_normal
multivariate_t nbinom norm pareto poisson rayleigh skewnorm t truncnorm uniform vonmises weibull_min wishart zscore
""",
}
