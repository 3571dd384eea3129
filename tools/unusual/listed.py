"""The one table of differences that stay, each with its reason."""

from __future__ import annotations

import fnmatch
from typing import NamedTuple

__all__ = ["LISTED", "Listed", "reason"]


class Listed(NamedTuple):
    """Hold a row: kinds of differences, functions and what is unusual as patterns, and why they stay."""

    kinds: str
    functions: str
    what: str
    why: str

    def covers(self, kind: str, function: str, what: str) -> bool:
        """Tell whether the row is about a difference."""
        return (
            kind in self.kinds.split()
            and any(fnmatch.fnmatchcase(function, x) for x in self.functions.split())
            and any(fnmatch.fnmatchcase(what, x) for x in self.what.split("|"))
        )


OBJECTS = "*: of object|*[[]?] of object|*=*object*|*array([[]1, 'a', None], dtype=object)"
LISTED = [
    # Of all functions
    Listed("accepted other refused", "*", OBJECTS, "an array of objects is taken for the numbers in it, or is refused"),
    Listed("refused accepted", "*", "*masked array", "its arithmetic forgets masks, so it is refused"),
    Listed("refused", "*", "*None|*[[]None]|*'a'|*{'a': 1.0}", "None, text and dictionaries are no numbers"),
    Listed("accepted other raw", "*", "*of float128|*of float16", "C code of the other library has other dtypes"),
    Listed("accepted", "*", "*: True|*=True", "True is taken for 1 where an integer is meant"),
    Listed("refused", "*", "*=True|*: True", "True is no number of anything, nor a flag that says what"),
    Listed("refused", "*", "*=2", "a flag is True or False"),
    Listed(
        "accepted", "*", "*='a'|*=None|*=2|*=2.5|*=nan|*=inf|*=1j|*=[[]1, 2]", "what says yes or no, or is not used"
    ),
    Listed("refused", "scipy.special.*", "where=*|order=*|casting=*", "ufuncs take out=, where= with it, and dtype="),
    # numpy
    Listed("refused", "numpy.*", "where=False*", "what is left out would be uninitialised: out= is needed"),
    Listed("accepted other", "numpy.*", "0: a list|1: a list|?: a number", "a list is the array of its items"),
    Listed("refused", "numpy.array_equ*", "?: [[][[]1.0]*", "ragged lists are no arrays"),
    Listed("other", "numpy.poly", "0: *", "of a matrix whose elements are unknown zeros stay complex"),
    Listed("accepted", "numpy.nanmean", "where: an axis more", "masks broadcast"),
    Listed("accepted", "numpy.roots numpy.poly numpy.linalg.tensorinv", "0: 0-d|0: an axis less", "one is enough"),
    Listed("accepted", "numpy.cross numpy.expand_dims numpy.*vecdot numpy.matmul", "axis*|1: *", "it says which axes"),
    Listed("accepted", "numpy.vecdot numpy.matmul", "axes=*", "it says which axes"),
    Listed("other", "numpy.pad", "mode='empty'", "NumPy leaves what is there"),
    Listed("other", "numpy.unique_values", "*of complex*", "NumPy has an order of its own for them"),
    Listed("accepted", "numpy.unique_*", "by name*", "the parameter has a name"),
    Listed("accepted", "numpy.require", "requirements=*", "their first letters say what is meant"),
    Listed("accepted", "numpy.piecewise numpy.polydiv", "0: empty|1: 0-d", "conditions broadcast; 0 divides, too"),
    Listed("accepted", "numpy.clip", "one argument less", "an interval may have one end"),
    Listed(
        "accepted", "numpy.linalg.norm", "0: 0-d*|0: a number*|ord=*", "a number is 0-d in traces: its norm is its size"
    ),
    Listed("refused", "numpy.polymul", "*: empty", "no coefficients are no polynomial"),
    Listed("refused", "numpy.gradient numpy.rot90 numpy.poly*", "*=*|2: *", "it is a whole number, of those there are"),
    Listed("refused", "numpy.roll numpy.tile", "1: *", "whole numbers are needed: NumPy rounds"),
    Listed("refused", "numpy.unstack numpy.l*space", "axis=(0,)|axis: *", "an axis is one whole number"),
    Listed("refused", "numpy.*std numpy.*var", "ddof=1j|correction=1j", "what counts are is real"),
    Listed("raw", "numpy.std", "dtype=*", "NumPy's own arrays refuse in these words; only its scalars compute"),
    Listed("raw", "numpy.linalg.vector_norm", "axis=1.0", "an axis is a whole number"),
    Listed("refused", "numpy.linalg.qr", "mode=*", "what LAPACK leaves is no matrix; the others are the old names"),
    # scipy.stats
    Listed(
        "refused", "scipy.stats.*", "*of complex*|*1j", "SciPy drops the imaginary part; densities are of real numbers"
    ),
    Listed(
        "other accepted", "scipy.stats.*", "*int8(2)|*float32(1.5)|*of float32|*: True", "it is computed in doubles"
    ),
    Listed("other", "scipy.stats.*", "*with huge|*inf|*: nan|*: 1|*: 1.0|*: 0|*: -0.0", "SciPy overflows, or rounds"),
    Listed("accepted", "scipy.stats.*", "*: []|*: 0|*: -0.0|*: nan|*inf|*: empty", "NaN, or nothing, is given for it"),
    Listed(
        "other",
        "scipy.stats.vonmises.*",
        "as usual|0: array(*",
        "its mean is a rounding, its cdf an approximation",
    ),
    Listed("other accepted", "scipy.stats.zscore", "ddof=inf|ddof=1j", "what is divided by nothing is 0"),
    Listed("refused", "scipy.stats.*.entropy", "0: inf", "a sum of infinitely many terms does not end"),
    Listed("other", "scipy.stats.nbinom.entropy", "*array(*", "SciPy's sum ends at another place"),
    Listed("refused", "scipy.stats.*", "nan_policy=*", "NaN goes on, and is not left out"),
    Listed("refused", "scipy.stats.skewnorm.entropy", "as usual", "there is no formula of it"),
    # scipy.special
    Listed("other", "scipy.special.comb", "*float32*", "SciPy computes in doubles"),
    Listed(
        "accepted other",
        "scipy.special.log_softmax",
        "0: of *",
        "SciPy subtracts whole numbers without a sign, and no truth values",
    ),
    Listed("accepted other", "scipy.special.factorial", "*", "it is the gamma function of whatever number"),
    # scipy.integrate
    Listed("refused", "scipy.integrate.*", "dx=*|x=*", "a distance is one real number, places are one for each sample"),
    Listed(
        "other",
        "scipy.integrate.*",
        "dx=1j|*of float32|*of complex64",
        "SciPy converts to doubles, and drops the imaginary part",
    ),
    Listed("other", "scipy.integrate.*quad", "*", "the estimate of an integral's error is its own"),
    Listed("other", "scipy.integrate.odeint", "*", "its steps are those of another method, for the same tolerances"),
    Listed("other", "scipy.integrate.solve_ivp", "1: *", "SciPy forgets the output times of empty intervals"),
    Listed("refused", "scipy.integrate.solve_ivp", "1: *inf", "steps do not get to infinity"),
    Listed(
        "other", "scipy.integrate.solve_ivp", "t_eval: no items|t_eval: one item less|2: empty", "nothing has a shape"
    ),
    Listed("refused", "scipy.integrate.odeint", "an unknown name|*=*", "what is not supported is refused"),
    Listed("refused", "scipy.integrate.solve_ivp", "an unknown name|*=*", "what is not supported is refused"),
    Listed("other", "scipy.integrate.solve_ivp", "as usual", "a message is about numbers, which are not known yet"),
    Listed(
        "accepted", "scipy.integrate.solve_ivp", "t_eval: *", "an order of times that are not known is not looked at"
    ),
    # scipy.interpolate
    Listed(
        "refused",
        "scipy.interpolate.*",
        "*of complex*",
        "places are real: SciPy drops their imaginary part, or that of samples",
    ),
    Listed(
        "accepted other",
        "scipy.interpolate.*",
        "*of complex*",
        "polynomials are of complex numbers, too, if samples are",
    ),
    Listed(
        "accepted",
        "scipy.interpolate.*",
        "*: all NaN|*: of bool|*: with NaN",
        "NaN comes out; places are not looked at",
    ),
    Listed("other", "scipy.interpolate.[Kk]rogh*", "*of uint8", "SciPy subtracts without a sign"),
    Listed("accepted refused", "scipy.interpolate.*", "rng=*|random_state=*|solver_args=*|quiet=*", "it is not needed"),
    Listed(
        "refused", "scipy.interpolate.*", "*=*", "an option that is not supported, or has another value, is refused"
    ),
    Listed("refused", "scipy.interpolate.*", "0: an axis more|1: an axis more", "samples are a row: SciPy flattens"),
    Listed(
        "accepted other",
        "scipy.interpolate.RectBivariateSpline",
        "*",
        "places need no order, and may be beyond; degrees from 0",
    ),
    Listed("accepted", "scipy.interpolate.*", "bc_type='periodic'", "traced, or in lanes, elements are not known"),
    Listed("other", "scipy.interpolate.[Kk]rogh*", "0: zeros|0: equal", "traced, or in lanes, no places are equal"),
    Listed(
        "refused",
        "scipy.interpolate.*",
        "*with -inf|*of bool|*zeros|*equal",
        "through places that are equal, or infinite, SciPy's results are NaN",
    ),
    Listed("accepted", "scipy.interpolate.interpn", "method='pchip'", "two samples are enough for it"),
    Listed(
        "accepted other refused",
        "scipy.interpolate.spl*",
        "0: [[]*|1: [[]*|n=-1",
        "coefficients and knots have to fit each other",
    ),
    Listed(
        "other", "scipy.interpolate.spl*", "as usual|1: with *", "FITPACK's coefficients behind the last are arbitrary"
    ),
    Listed("accepted", "scipy.interpolate.splev", "0: empty", "there are no values at no places"),
    # scipy.linalg
    Listed(
        "accepted other raw",
        "scipy.linalg.*",
        "lower: *|lwork=*",
        "what LAPACK needs to know is told it: lower by its truth",
    ),
    Listed("refused", "scipy.linalg.*", "0: 0-d|0: a number", "a number is no matrix"),
    Listed("accepted", "scipy.linalg.hankel", "*", "a number is a row of one"),
    Listed(
        "refused", "scipy.linalg.*", "driver=*|lapack_driver=*|disp=*|mode=*", "LAPACK's other routines are not there"
    ),
    Listed("refused raw", "scipy.linalg.lu_solve", "trans=*", "it is 0, 1 or 2"),
    Listed("other", "scipy.linalg.norm", "0: with huge", "in lanes it is NumPy's, which overflows"),
    Listed("raw", "scipy.linalg.sqrtm", "0: with *inf", "a root that is NaN has no derivative"),
    Listed("accepted", "scipy.linalg.eigvals", "0: empty", "there are no eigenvalues of no matrix"),
    Listed("other", "scipy.linalg.*", "0: an axis more", "stacks are taken one matrix after the other"),
    Listed("other", "scipy.linalg.norm", "*of float32|*of complex64", "single precision is kept"),
    Listed("refused", "scipy.linalg.l*", "0: *", "factors of square matrices have derivatives"),
    Listed("other", "scipy.linalg.lu", "*big-endian floats", "SciPy's code gives zeros for what it cannot read"),
    Listed("refused", "scipy.linalg.solve_*", "*", "empty ones, and rows, are no square matrices"),
    # scipy.ndimage
    Listed(
        "other",
        "scipy.ndimage.*",
        "mode='reflect'|mode='grid-mirror'|mode='nearest'",
        "SciPy's filter of short images is off",
    ),
    Listed(
        "other", "scipy.ndimage.*", "*NaN", "SciPy leaves weights out that are NaN, or NaN stays in its running sums"
    ),
    Listed(
        "other",
        "scipy.ndimage.*",
        "*of bool|*of uint8|*with *inf",
        "sums of squares wrap round in SciPy; running sums keep infinity",
    ),
    Listed("other", "scipy.ndimage.gaussian_gradient_magnitude", "0: equal", "SciPy's sums of squares round to 0"),
    Listed("refused", "scipy.ndimage.*", "*of complex*|*1j", "SciPy drops the imaginary part"),
    Listed(
        "refused",
        "scipy.ndimage.*",
        "* by place|axes=*|axis=*",
        "there is no output=; axes= is newer, and has to be different ones",
    ),
    Listed(
        "refused",
        "scipy.ndimage.*",
        "0: empty|0: 0-d|0: a number|1: 2.5|1: np.float32(1.5)|1: two axes more|1: nan",
        "it is no size, or image",
    ),
    Listed("accepted", "scipy.ndimage.affine_transform", "0: an axis less", "elements of a matrix are not known"),
    Listed("accepted", "scipy.ndimage.*", "*of bool|*a list|*a number|*0-d", "it is taken for numbers"),
    # scipy.signal
    Listed("other", "scipy.signal.*", "*of float32|*of complex64|*of *int8|*of bool", "it is computed in doubles"),
    Listed(
        "accepted",
        "scipy.signal.*",
        "*of bool|*of complex*|*of big-endian floats",
        "there are no types that it is not for",
    ),
    Listed(
        "accepted",
        "scipy.signal.*",
        "*a list|*read-only|*strided|axis=(0,)",
        "SciPy wants an array, or one in C's order",
    ),
    Listed("accepted", "scipy.signal.*", "*with NaN|*with inf|*with -inf|*all NaN", "NaN goes on through a signal"),
    Listed("other", "scipy.signal.*", "*inf|*NaN|*huge|0: equal", "SciPy's sums are in another order"),
    Listed(
        "accepted",
        "scipy.signal.*",
        "*two axes more|*an axis more|*0-d|*a number|*an axis less|x=*",
        "signals broadcast; a number is a row of one",
    ),
    Listed(
        "other refused",
        "scipy.signal.*",
        "*empty|0: 0-d|0: a number|0: an axis less|*one element|*: 1.0",
        "no elements, or one, are no signal",
    ),
    Listed("accepted", "scipy.signal.sosfilt", "1: empty", "nothing comes of nothing, as from lfilter"),
    Listed("other", "scipy.signal.lfilter_zi", "1: with 0", "traced, or in lanes, first coefficients are not 0"),
    Listed("other", "scipy.signal.detrend", "0: two axes more", "a line through one element is that element"),
    Listed(
        "refused",
        "scipy.signal.*",
        "*=*|padlen: *",
        "an option that is not supported, or has another value, is refused",
    ),
    Listed(
        "other",
        "scipy.signal.*",
        "nperseg=*|deriv=True",
        "SciPy's transforms of one element are empty, its weights those of a value",
    ),
    Listed(
        "refused",
        "scipy.signal.*",
        "*with 0|*zeros|*negative|*one less|*all NaN|*of complex*",
        "first coefficients are not 0, and those of sections 1",
    ),
    # scipy.spatial
    Listed(
        "refused",
        "scipy.spatial.distance.*",
        "*of complex*",
        "coordinates are real: SciPy drops imaginary parts, or squares them",
    ),
    Listed(
        "refused",
        "scipy.spatial.distance.*",
        "*one element|*a number|*0-d|*an axis *",
        "points have as many coordinates, and no row broadcasts",
    ),
    Listed(
        "refused",
        "scipy.spatial.distance.*",
        "metric=*|p=nan|force='wrong'|2: with -inf",
        "there is no such metric, order or way",
    ),
    Listed(
        "accepted",
        "scipy.spatial.distance.*",
        "*with *|*all NaN|*zeros|*of *int*",
        "NaN and infinity go on, as in cdist",
    ),
    Listed(
        "other",
        "scipy.spatial.distance.*",
        "*inf|*huge|*of uint8|*of bool|*of float32",
        "it is computed in doubles, with NumPy's norm",
    ),
    # nn.functional
    Listed("refused", "nn.functional.*", "*of complex*", "layers and losses are of real numbers"),
    Listed("refused", "nn.functional.*", "*axes more|1: an axis less|*axis more|*one element", "nobody means these"),
    Listed("refused", "nn.functional.*", "m*_val=*|beta=*|delta=*|eps=*", "bounds and widths have a sign"),
    Listed("accepted", "nn.functional.si*", "*of complex*", "these are functions of complex numbers, too"),
    Listed("accepted other", "nn.functional.*soft*", "0: of *", "SciPy subtracts whole numbers without a sign"),
    Listed("other", "nn.functional.relu6", "0: of *", "its ends are floats"),
    Listed("other", "nn.functional.*", "*of int8|*of uint8", "exponentials of short integers have 16 bits in NumPy"),
    Listed("other", "nn.functional.binary_cross_entropy_with_logits", "*inf", "certainty that is right costs nothing"),
]


def reason(kind: str, function: str, what: str) -> str | None:
    """Return why a difference stays; None if it is not in the table."""
    return next((row.why for row in LISTED if row.covers(kind, function, what)), None)
