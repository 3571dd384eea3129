"""The names of wengert.numpy for editors and type checkers; `python -m tools.stubs` writes this."""

from typing import Any, Protocol

from numpy import False_ as False_
from numpy import ScalarType as ScalarType
from numpy import True_ as True_
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import broadcast_shapes as broadcast_shapes
from numpy import byte as byte
from numpy import cdouble as cdouble
from numpy import clongdouble as clongdouble
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import complexfloating as complexfloating
from numpy import csingle as csingle
from numpy import double as double
from numpy import dtype as dtype
from numpy import dtypes as dtypes
from numpy import e as e
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import exceptions as exceptions
from numpy import finfo as finfo
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import generic as generic
from numpy import get_printoptions as get_printoptions
from numpy import getbufsize as getbufsize
from numpy import geterr as geterr
from numpy import geterrcall as geterrcall
from numpy import half as half
from numpy import iinfo as iinfo
from numpy import index_exp as index_exp
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import isdtype as isdtype
from numpy import isscalar as isscalar
from numpy import issubdtype as issubdtype
from numpy import iterable as iterable
from numpy import little_endian as little_endian
from numpy import long as long
from numpy import longdouble as longdouble
from numpy import longlong as longlong
from numpy import mintypecode as mintypecode
from numpy import nan as nan
from numpy import ndindex as ndindex
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import pi as pi
from numpy import printoptions as printoptions
from numpy import promote_types as promote_types
from numpy import random as random
from numpy import s_ as s_
from numpy import sctypeDict as sctypeDict
from numpy import set_printoptions as set_printoptions
from numpy import setbufsize as setbufsize
from numpy import seterr as seterr
from numpy import seterrcall as seterrcall
from numpy import short as short
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import testing as testing
from numpy import typecodes as typecodes
from numpy import typename as typename
from numpy import ubyte as ubyte
from numpy import uint as uint
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
from numpy import unsignedinteger as unsignedinteger
from numpy import ushort as ushort

from wengert.numpy import fft as fft
from wengert.numpy import lib as lib
from wengert.numpy import linalg as linalg

class _Ufunc(Protocol):
    __name__: str
    def __call__(self, x1: Any, x2: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
    def accumulate(self, array: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
    def at(self, a: Any, indices: Any, b: Any = ..., /) -> None: ...
    def outer(self, A: Any, B: Any, /, **options: Any) -> Any: ...
    def reduce(self, array: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., **options: Any) -> Any: ...
    def reduceat(self, array: Any, indices: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...

def abs(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def absolute(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def acos(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def acosh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

add: _Ufunc

def all(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...) -> Any: ...
def allclose(a: Any, b: Any, rtol: Any = ..., atol: Any = ..., equal_nan: Any = ...) -> Any: ...
def amax(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any: ...
def amin(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any: ...
def angle(z: Any, deg: Any = ...) -> Any: ...
def any(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...) -> Any: ...
def append(arr: Any, values: Any, axis: Any = ...) -> Any: ...
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any: ...
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any: ...
def arange(
    start_or_stop: Any, /, stop: Any = ..., step: Any = ..., *, dtype: Any = ..., device: Any = ..., like: Any = ...
) -> Any: ...
def arccos(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def arccosh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def arcsin(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def arcsinh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def arctan(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

arctan2: _Ufunc

def arctanh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def argmax(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
def argmin(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
def argpartition(a: Any, kth: Any, axis: Any = ..., kind: Any = ..., order: Any = ...) -> Any: ...
def argsort(
    a: Any, axis: Any = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ..., descending: Any = ...
) -> Any: ...
def argwhere(a: Any) -> Any: ...
def around(a: Any, decimals: Any = ..., out: Any = ...) -> Any: ...
def array(
    object: Any,
    dtype: Any = ...,
    *,
    copy: Any = ...,
    order: Any = ...,
    subok: Any = ...,
    ndmin: Any = ...,
    ndmax: Any = ...,
    like: Any = ...,
) -> Any: ...
def array2string(
    a: Any,
    max_line_width: Any = ...,
    precision: Any = ...,
    suppress_small: Any = ...,
    separator: Any = ...,
    prefix: Any = ...,
    *,
    formatter: Any = ...,
    threshold: Any = ...,
    edgeitems: Any = ...,
    sign: Any = ...,
    floatmode: Any = ...,
    suffix: Any = ...,
    legacy: Any = ...,
) -> Any: ...
def array_equal(a1: Any, a2: Any, equal_nan: Any = ...) -> Any: ...
def array_equiv(a1: Any, a2: Any) -> Any: ...
def array_repr(arr: Any, max_line_width: Any = ..., precision: Any = ..., suppress_small: Any = ...) -> Any: ...
def array_split(ary: Any, indices_or_sections: Any, axis: Any = ...) -> Any: ...
def array_str(a: Any, max_line_width: Any = ..., precision: Any = ..., suppress_small: Any = ...) -> Any: ...
def asanyarray(
    a: Any, dtype: Any = ..., order: Any = ..., *, device: Any = ..., copy: Any = ..., like: Any = ...
) -> Any: ...
def asarray(
    a: Any, dtype: Any = ..., order: Any = ..., *, device: Any = ..., copy: Any = ..., like: Any = ...
) -> Any: ...
def asarray_chkfinite(a: Any, dtype: Any = ..., order: Any = ...) -> Any: ...
def ascontiguousarray(a: Any, dtype: Any = ..., *, like: Any = ...) -> Any: ...
def asfortranarray(a: Any, dtype: Any = ..., *, like: Any = ...) -> Any: ...
def asin(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def asinh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def astype(x: Any, dtype: Any, /, *, copy: Any = ..., device: Any = ...) -> Any: ...
def atan(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

atan2: _Ufunc

def atanh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def atleast_1d(*arys: Any) -> Any: ...
def atleast_2d(*arys: Any) -> Any: ...
def atleast_3d(*arys: Any) -> Any: ...
def average(a: Any, axis: Any = ..., weights: Any = ..., returned: Any = ..., *, keepdims: Any = ...) -> Any: ...
def bartlett(M: Any) -> Any: ...
def bincount(x: Any, /, weights: Any = ..., minlength: Any = ...) -> Any: ...

bitwise_and: _Ufunc

def bitwise_count(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def bitwise_invert(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

bitwise_left_shift: _Ufunc

def bitwise_not(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

bitwise_or: _Ufunc
bitwise_right_shift: _Ufunc
bitwise_xor: _Ufunc

def blackman(M: Any) -> Any: ...
def block(arrays: Any) -> Any: ...

broadcast: Any

def broadcast_arrays(*args: Any, subok: Any = ...) -> Any: ...
def broadcast_to(array: Any, shape: Any, subok: Any = ...) -> Any: ...

c_: Any

def can_cast(from_: Any, to: Any) -> Any: ...
def cbrt(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def ceil(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def choose(a: Any, choices: Any, out: Any = ..., mode: Any = ...) -> Any: ...
def clip(
    a: Any, a_min: Any = ..., a_max: Any = ..., out: Any = ..., *, min: Any = ..., max: Any = ..., **kwargs: Any
) -> Any: ...
def column_stack(tup: Any) -> Any: ...
def common_type(*arrays: Any) -> Any: ...

complex256: Any

def compress(condition: Any, a: Any, axis: Any = ..., out: Any = ...) -> Any: ...
def concat(arrays: Any, /, axis: Any = ..., out: Any = ..., *, dtype: Any = ...) -> Any: ...
def concatenate(arrays: Any, /, axis: Any = ..., out: Any = ..., *, dtype: Any = ...) -> Any: ...
def conj(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def conjugate(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def convolve(a: Any, v: Any, mode: Any = ...) -> Any: ...
def copy(a: Any, order: Any = ..., subok: Any = ...) -> Any: ...

copysign: _Ufunc

def copyto(dst: Any, src: Any, where: Any = ...) -> Any: ...
def corrcoef(x: Any, y: Any = ..., rowvar: Any = ..., *, dtype: Any = ...) -> Any: ...
def correlate(a: Any, v: Any, mode: Any = ...) -> Any: ...
def cos(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def cosh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def count_nonzero(a: Any, axis: Any = ..., *, keepdims: Any = ...) -> Any: ...
def cov(
    m: Any,
    y: Any = ...,
    rowvar: Any = ...,
    bias: Any = ...,
    ddof: Any = ...,
    fweights: Any = ...,
    aweights: Any = ...,
    *,
    dtype: Any = ...,
) -> Any: ...
def cross(a: Any, b: Any, axisa: Any = ..., axisb: Any = ..., axisc: Any = ..., axis: Any = ...) -> Any: ...
def cumprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
def cumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
def cumulative_prod(
    x: Any, /, *, axis: Any = ..., dtype: Any = ..., out: Any = ..., include_initial: Any = ...
) -> Any: ...
def cumulative_sum(
    x: Any, /, *, axis: Any = ..., dtype: Any = ..., out: Any = ..., include_initial: Any = ...
) -> Any: ...
def deg2rad(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def degrees(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def delete(arr: Any, obj: Any, axis: Any = ...) -> Any: ...
def diag(v: Any, k: Any = ...) -> Any: ...
def diag_indices(n: Any, ndim: Any = ...) -> Any: ...
def diag_indices_from(arr: Any) -> Any: ...
def diagflat(v: Any, k: Any = ...) -> Any: ...
def diagonal(a: Any, offset: Any = ..., axis1: Any = ..., axis2: Any = ...) -> Any: ...
def diff(a: Any, n: Any = ..., axis: Any = ..., prepend: Any = ..., append: Any = ...) -> Any: ...
def digitize(x: Any, bins: Any, right: Any = ...) -> Any: ...

divide: _Ufunc

def divmod(x1: Any, x2: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def dot(a: Any, b: Any, out: Any = ...) -> Any: ...
def dsplit(ary: Any, indices_or_sections: Any) -> Any: ...
def dstack(tup: Any) -> Any: ...
def ediff1d(ary: Any, to_end: Any = ..., to_begin: Any = ...) -> Any: ...
def einsum(*operands: Any, out: Any = ..., optimize: Any = ..., **kwargs: Any) -> Any: ...
def einsum_path(*operands: Any, optimize: Any = ..., einsum_call: Any = ...) -> Any: ...
def empty(shape: Any, dtype: Any = ..., order: Any = ..., *, device: Any = ..., like: Any = ...) -> Any: ...
def empty_like(
    prototype: Any, /, dtype: Any = ..., order: Any = ..., subok: Any = ..., shape: Any = ..., *, device: Any = ...
) -> Any: ...

equal: _Ufunc

def exp(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def exp2(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def expand_dims(a: Any, axis: Any) -> Any: ...
def expm1(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def extract(condition: Any, arr: Any) -> Any: ...
def eye(
    N: Any, M: Any = ..., k: Any = ..., dtype: Any = ..., order: Any = ..., *, device: Any = ..., like: Any = ...
) -> Any: ...
def fabs(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def fill_diagonal(a: Any, val: Any, wrap: Any = ...) -> Any: ...
def fix(x: Any, out: Any = ...) -> Any: ...
def flatnonzero(a: Any) -> Any: ...
def flip(m: Any, axis: Any = ...) -> Any: ...
def fliplr(m: Any) -> Any: ...
def flipud(m: Any) -> Any: ...

float128: Any
float_power: _Ufunc

def floor(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

floor_divide: _Ufunc
fmax: _Ufunc
fmin: _Ufunc
fmod: _Ufunc

def frexp(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def from_dlpack(x: Any, /, *, device: Any = ..., copy: Any = ...) -> Any: ...
def frombuffer(buffer: Any, dtype: Any = ..., count: Any = ..., offset: Any = ..., *, like: Any = ...) -> Any: ...
def fromfile(
    file: Any, dtype: Any = ..., count: Any = ..., sep: Any = ..., offset: Any = ..., *, like: Any = ...
) -> Any: ...
def fromfunction(function: Any, shape: Any, *, dtype: Any = ..., like: Any = ..., **kwargs: Any) -> Any: ...
def fromiter(iter: Any, dtype: Any, count: Any = ..., *, like: Any = ...) -> Any: ...
def fromregex(file: Any, regexp: Any, dtype: Any, encoding: Any = ...) -> Any: ...
def fromstring(*args: Any, **kwargs: Any) -> Any: ...
def full(
    shape: Any, fill_value: Any, dtype: Any = ..., order: Any = ..., *, device: Any = ..., like: Any = ...
) -> Any: ...
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = ...,
    order: Any = ...,
    subok: Any = ...,
    shape: Any = ...,
    *,
    device: Any = ...,
) -> Any: ...

gcd: _Ufunc

def genfromtxt(
    fname: Any,
    dtype: Any = ...,
    comments: Any = ...,
    delimiter: Any = ...,
    skip_header: Any = ...,
    skip_footer: Any = ...,
    converters: Any = ...,
    missing_values: Any = ...,
    filling_values: Any = ...,
    usecols: Any = ...,
    names: Any = ...,
    excludelist: Any = ...,
    deletechars: Any = ...,
    replace_space: Any = ...,
    autostrip: Any = ...,
    case_sensitive: Any = ...,
    defaultfmt: Any = ...,
    unpack: Any = ...,
    usemask: Any = ...,
    loose: Any = ...,
    invalid_raise: Any = ...,
    max_rows: Any = ...,
    encoding: Any = ...,
    *,
    ndmin: Any = ...,
    like: Any = ...,
) -> Any: ...
def geomspace(start: Any, stop: Any, num: Any = ..., endpoint: Any = ..., dtype: Any = ..., axis: Any = ...) -> Any: ...
def gradient(f: Any, *varargs: Any, axis: Any = ..., edge_order: Any = ...) -> Any: ...

greater: _Ufunc
greater_equal: _Ufunc

def hamming(M: Any) -> Any: ...
def hanning(M: Any) -> Any: ...

heaviside: _Ufunc

def histogram(a: Any, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...) -> Any: ...
def histogram2d(x: Any, y: Any, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...) -> Any: ...
def histogram_bin_edges(a: Any, bins: Any = ..., range: Any = ..., weights: Any = ...) -> Any: ...
def histogramdd(sample: Any, bins: Any = ..., range: Any = ..., density: Any = ..., weights: Any = ...) -> Any: ...
def hsplit(ary: Any, indices_or_sections: Any) -> Any: ...
def hstack(tup: Any, *, dtype: Any = ...) -> Any: ...

hypot: _Ufunc

def i0(x: Any) -> Any: ...
def identity(n: Any, dtype: Any = ..., *, like: Any = ...) -> Any: ...
def imag(val: Any) -> Any: ...
def indices(dimensions: Any, dtype: Any = ..., sparse: Any = ...) -> Any: ...
def inner(a: Any, b: Any, /) -> Any: ...
def insert(arr: Any, obj: Any, values: Any, axis: Any = ...) -> Any: ...
def interp(x: Any, xp: Any, fp: Any, left: Any = ..., right: Any = ..., period: Any = ...) -> Any: ...
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = ..., return_indices: Any = ...) -> Any: ...
def invert(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def isclose(a: Any, b: Any, rtol: Any = ..., atol: Any = ..., equal_nan: Any = ...) -> Any: ...
def iscomplex(x: Any) -> Any: ...
def iscomplexobj(x: Any) -> Any: ...
def isfinite(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def isfortran(a: Any) -> Any: ...
def isin(element: Any, test_elements: Any, assume_unique: Any = ..., invert: Any = ..., *, kind: Any = ...) -> Any: ...
def isinf(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def isnan(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def isneginf(x: Any, out: Any = ...) -> Any: ...
def isposinf(x: Any, out: Any = ...) -> Any: ...
def isreal(x: Any) -> Any: ...
def isrealobj(x: Any) -> Any: ...
def ix_(*args: Any) -> Any: ...
def kaiser(M: Any, beta: Any) -> Any: ...
def kron(a: Any, b: Any) -> Any: ...

lcm: _Ufunc
ldexp: _Ufunc
left_shift: _Ufunc
less: _Ufunc
less_equal: _Ufunc

def lexsort(keys: Any, axis: Any = ...) -> Any: ...
def linspace(
    start: Any,
    stop: Any,
    num: Any = ...,
    endpoint: Any = ...,
    retstep: Any = ...,
    dtype: Any = ...,
    axis: Any = ...,
    *,
    device: Any = ...,
) -> Any: ...
def load(
    file: Any,
    mmap_mode: Any = ...,
    allow_pickle: Any = ...,
    fix_imports: Any = ...,
    encoding: Any = ...,
    *,
    max_header_size: Any = ...,
) -> Any: ...
def loadtxt(
    fname: Any,
    dtype: Any = ...,
    comments: Any = ...,
    delimiter: Any = ...,
    converters: Any = ...,
    skiprows: Any = ...,
    usecols: Any = ...,
    unpack: Any = ...,
    ndmin: Any = ...,
    encoding: Any = ...,
    max_rows: Any = ...,
    *,
    quotechar: Any = ...,
    like: Any = ...,
) -> Any: ...
def log(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def log10(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def log1p(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def log2(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

logaddexp: _Ufunc
logaddexp2: _Ufunc
logical_and: _Ufunc

def logical_not(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

logical_or: _Ufunc
logical_xor: _Ufunc

def logspace(
    start: Any, stop: Any, num: Any = ..., endpoint: Any = ..., base: Any = ..., dtype: Any = ..., axis: Any = ...
) -> Any: ...
def mask_indices(n: Any, mask_func: Any, k: Any = ...) -> Any: ...
def matmul(
    x1: Any, x2: Any, /, out: Any = ..., *, axes: Any = ..., axis: Any = ..., keepdims: Any = ..., dtype: Any = ...
) -> Any: ...
def matrix_transpose(x: Any, /) -> Any: ...
def matvec(
    x1: Any, x2: Any, /, out: Any = ..., *, axes: Any = ..., axis: Any = ..., keepdims: Any = ..., dtype: Any = ...
) -> Any: ...
def max(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any: ...

maximum: _Ufunc

def may_share_memory(a: Any, b: Any, /, max_work: Any = ...) -> Any: ...
def mean(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...
) -> Any: ...
def median(a: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., keepdims: Any = ...) -> Any: ...
def meshgrid(*xi: Any, copy: Any = ..., sparse: Any = ..., indexing: Any = ...) -> Any: ...

mgrid: Any

def min(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any: ...
def min_scalar_type(a: Any, /) -> Any: ...

minimum: _Ufunc
mod: _Ufunc

def modf(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def moveaxis(a: Any, source: Any, destination: Any) -> Any: ...

multiply: _Ufunc

def nan_to_num(x: Any, copy: Any = ..., nan: Any = ..., posinf: Any = ..., neginf: Any = ...) -> Any: ...
def nanargmax(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
def nanargmin(a: Any, axis: Any = ..., out: Any = ..., *, keepdims: Any = ...) -> Any: ...
def nancumprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
def nancumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
def nanmax(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...
) -> Any: ...
def nanmean(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...
) -> Any: ...
def nanmedian(a: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., keepdims: Any = ...) -> Any: ...
def nanmin(
    a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...
) -> Any: ...
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: Any = ...,
    *,
    weights: Any = ...,
) -> Any: ...
def nanprod(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...
) -> Any: ...
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: Any = ...,
    *,
    weights: Any = ...,
) -> Any: ...
def nanstd(
    a: Any,
    axis: Any = ...,
    dtype: Any = ...,
    out: Any = ...,
    ddof: Any = ...,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...
def nansum(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...
) -> Any: ...
def nanvar(
    a: Any,
    axis: Any = ...,
    dtype: Any = ...,
    out: Any = ...,
    ddof: Any = ...,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...

ndarray: Any

def ndenumerate(arr: Any) -> Any: ...
def ndim(a: Any) -> Any: ...
def negative(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

nextafter: _Ufunc

def nonzero(a: Any) -> Any: ...

not_equal: _Ufunc
ogrid: Any

def ones(shape: Any, dtype: Any = ..., order: Any = ..., *, device: Any = ..., like: Any = ...) -> Any: ...
def ones_like(
    a: Any, dtype: Any = ..., order: Any = ..., subok: Any = ..., shape: Any = ..., *, device: Any = ...
) -> Any: ...
def outer(a: Any, b: Any, out: Any = ...) -> Any: ...
def packbits(a: Any, /, axis: Any = ..., bitorder: Any = ...) -> Any: ...
def pad(array: Any, pad_width: Any, mode: Any = ..., **kwargs: Any) -> Any: ...
def partition(a: Any, kth: Any, axis: Any = ..., kind: Any = ..., order: Any = ...) -> Any: ...
def percentile(
    a: Any,
    q: Any,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: Any = ...,
    *,
    weights: Any = ...,
) -> Any: ...
def permute_dims(a: Any, axes: Any = ...) -> Any: ...
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any: ...
def place(arr: Any, mask: Any, vals: Any) -> Any: ...
def poly(seq_of_zeros: Any) -> Any: ...
def polyadd(a1: Any, a2: Any) -> Any: ...
def polyder(p: Any, m: Any = ...) -> Any: ...
def polydiv(u: Any, v: Any) -> Any: ...
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = ..., full: Any = ..., w: Any = ..., cov: Any = ...) -> Any: ...
def polyint(p: Any, m: Any = ..., k: Any = ...) -> Any: ...
def polymul(a1: Any, a2: Any) -> Any: ...
def polysub(a1: Any, a2: Any) -> Any: ...
def polyval(p: Any, x: Any) -> Any: ...
def positive(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

pow: _Ufunc
power: _Ufunc

def prod(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...
) -> Any: ...
def ptp(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any: ...
def put(a: Any, ind: Any, v: Any, mode: Any = ...) -> Any: ...
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Any: ...
def putmask(a: Any, /, mask: Any, values: Any) -> Any: ...
def quantile(
    a: Any,
    q: Any,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: Any = ...,
    *,
    weights: Any = ...,
) -> Any: ...

r_: Any

def rad2deg(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def radians(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def ravel(a: Any, order: Any = ...) -> Any: ...
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = ..., order: Any = ...) -> Any: ...
def real(val: Any) -> Any: ...
def real_if_close(a: Any, tol: Any = ...) -> Any: ...
def reciprocal(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...

remainder: _Ufunc

def repeat(a: Any, repeats: Any, axis: Any = ...) -> Any: ...
def require(a: Any, dtype: Any = ..., requirements: Any = ..., *, like: Any = ...) -> Any: ...
def reshape(a: Any, /, shape: Any, order: Any = ..., *, copy: Any = ...) -> Any: ...
def resize(a: Any, new_shape: Any) -> Any: ...
def result_type(*arrays_and_dtypes: Any) -> Any: ...

right_shift: _Ufunc

def rint(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def roll(a: Any, shift: Any, axis: Any = ...) -> Any: ...
def rollaxis(a: Any, axis: Any, start: Any = ...) -> Any: ...
def roots(p: Any) -> Any: ...
def rot90(m: Any, k: Any = ..., axes: Any = ...) -> Any: ...
def round(a: Any, decimals: Any = ..., out: Any = ...) -> Any: ...
def save(file: Any, arr: Any, allow_pickle: Any = ...) -> Any: ...
def savetxt(
    fname: Any,
    X: Any,
    fmt: Any = ...,
    delimiter: Any = ...,
    newline: Any = ...,
    header: Any = ...,
    footer: Any = ...,
    comments: Any = ...,
    encoding: Any = ...,
) -> Any: ...
def savez(file: Any, *args: Any, allow_pickle: Any = ..., **kwds: Any) -> Any: ...
def savez_compressed(file: Any, *args: Any, allow_pickle: Any = ..., **kwds: Any) -> Any: ...
def searchsorted(a: Any, v: Any, side: Any = ..., sorter: Any = ...) -> Any: ...
def select(condlist: Any, choicelist: Any, default: Any = ...) -> Any: ...
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = ...) -> Any: ...
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = ...) -> Any: ...
def shape(a: Any) -> Any: ...
def shares_memory(a: Any, b: Any, /, max_work: Any = ...) -> Any: ...
def sign(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def signbit(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def sin(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def sinc(x: Any) -> Any: ...
def sinh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def size(a: Any, axis: Any = ...) -> Any: ...
def sort(
    a: Any, axis: Any = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ..., descending: Any = ...
) -> Any: ...
def sort_complex(a: Any) -> Any: ...
def spacing(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def split(ary: Any, indices_or_sections: Any, axis: Any = ...) -> Any: ...
def sqrt(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def square(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def squeeze(a: Any, axis: Any = ...) -> Any: ...
def stack(arrays: Any, axis: Any = ..., out: Any = ..., *, dtype: Any = ...) -> Any: ...
def std(
    a: Any,
    axis: Any = ...,
    dtype: Any = ...,
    out: Any = ...,
    ddof: Any = ...,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...

subtract: _Ufunc

def sum(
    a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...
) -> Any: ...
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any: ...
def take(a: Any, indices: Any, axis: Any = ..., out: Any = ..., mode: Any = ...) -> Any: ...
def take_along_axis(arr: Any, indices: Any, axis: Any = ...) -> Any: ...
def tan(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def tanh(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def tensordot(a: Any, b: Any, axes: Any = ...) -> Any: ...
def tile(A: Any, reps: Any) -> Any: ...
def trace(a: Any, offset: Any = ..., axis1: Any = ..., axis2: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
def transpose(a: Any, axes: Any = ...) -> Any: ...
def trapezoid(y: Any, x: Any = ..., dx: Any = ..., axis: Any = ...) -> Any: ...
def tri(N: Any, M: Any = ..., k: Any = ..., dtype: Any = ..., *, like: Any = ...) -> Any: ...
def tril(m: Any, k: Any = ...) -> Any: ...
def tril_indices(n: Any, k: Any = ..., m: Any = ...) -> Any: ...
def tril_indices_from(arr: Any, k: Any = ...) -> Any: ...
def trim_zeros(filt: Any, trim: Any = ..., axis: Any = ...) -> Any: ...
def triu(m: Any, k: Any = ...) -> Any: ...
def triu_indices(n: Any, k: Any = ..., m: Any = ...) -> Any: ...
def triu_indices_from(arr: Any, k: Any = ...) -> Any: ...

true_divide: _Ufunc

def trunc(x: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
def union1d(ar1: Any, ar2: Any) -> Any: ...
def unique(
    ar: Any,
    return_index: Any = ...,
    return_inverse: Any = ...,
    return_counts: Any = ...,
    axis: Any = ...,
    *,
    equal_nan: Any = ...,
    sorted: Any = ...,
) -> Any: ...
def unique_all(x: Any) -> Any: ...
def unique_counts(x: Any) -> Any: ...
def unique_inverse(x: Any) -> Any: ...
def unique_values(x: Any) -> Any: ...
def unpackbits(a: Any, /, axis: Any = ..., count: Any = ..., bitorder: Any = ...) -> Any: ...
def unravel_index(indices: Any, shape: Any, order: Any = ...) -> Any: ...
def unstack(x: Any, /, *, axis: Any = ...) -> Any: ...
def unwrap(p: Any, discont: Any = ..., axis: Any = ..., *, period: Any = ...) -> Any: ...
def vander(x: Any, N: Any = ..., increasing: Any = ...) -> Any: ...
def var(
    a: Any,
    axis: Any = ...,
    dtype: Any = ...,
    out: Any = ...,
    ddof: Any = ...,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...
def vdot(a: Any, b: Any, /) -> Any: ...
def vecdot(
    x1: Any, x2: Any, /, out: Any = ..., *, axes: Any = ..., axis: Any = ..., keepdims: Any = ..., dtype: Any = ...
) -> Any: ...
def vecmat(
    x1: Any, x2: Any, /, out: Any = ..., *, axes: Any = ..., axis: Any = ..., keepdims: Any = ..., dtype: Any = ...
) -> Any: ...

vectorize: Any

def vsplit(ary: Any, indices_or_sections: Any) -> Any: ...
def vstack(tup: Any, *, dtype: Any = ...) -> Any: ...
def where(condition: Any, x: Any = ..., y: Any = ..., /) -> Any: ...
def zeros(shape: Any, dtype: Any = ..., order: Any = ..., *, device: Any = ..., like: Any = ...) -> Any: ...
def zeros_like(
    a: Any, dtype: Any = ..., order: Any = ..., subok: Any = ..., shape: Any = ..., *, device: Any = ...
) -> Any: ...

__array_api_version__: str
__array_namespace_info__: Any
__all__ = [
    "False_",
    "ScalarType",
    "True_",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "apply_along_axis",
    "apply_over_axes",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "around",
    "array",
    "array2string",
    "array_equal",
    "array_equiv",
    "array_repr",
    "array_split",
    "array_str",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bartlett",
    "base_repr",
    "binary_repr",
    "bincount",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman",
    "block",
    "bool",
    "bool_",
    "broadcast",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "byte",
    "c_",
    "can_cast",
    "cbrt",
    "cdouble",
    "ceil",
    "choose",
    "clip",
    "clongdouble",
    "column_stack",
    "common_type",
    "complex64",
    "complex128",
    "complex256",
    "complexfloating",
    "compress",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "convolve",
    "copy",
    "copysign",
    "copyto",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "csingle",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "deg2rad",
    "degrees",
    "delete",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divmod",
    "dot",
    "double",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "ediff1d",
    "einsum",
    "einsum_path",
    "empty",
    "empty_like",
    "equal",
    "errstate",
    "euler_gamma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "extract",
    "eye",
    "fabs",
    "fft",
    "fill_diagonal",
    "finfo",
    "fix",
    "flatnonzero",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float128",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "format_float_positional",
    "format_float_scientific",
    "frexp",
    "from_dlpack",
    "frombuffer",
    "fromfile",
    "fromfunction",
    "fromiter",
    "fromregex",
    "fromstring",
    "full",
    "full_like",
    "gcd",
    "generic",
    "genfromtxt",
    "geomspace",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "geterrcall",
    "gradient",
    "greater",
    "greater_equal",
    "half",
    "hamming",
    "hanning",
    "heaviside",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "identity",
    "iinfo",
    "imag",
    "index_exp",
    "indices",
    "inexact",
    "inf",
    "inner",
    "insert",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "integer",
    "interp",
    "intersect1d",
    "intp",
    "invert",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isfinite",
    "isfortran",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "ix_",
    "kaiser",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "lexsort",
    "lib",
    "linalg",
    "linspace",
    "little_endian",
    "load",
    "loadtxt",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "long",
    "longdouble",
    "longlong",
    "mask_indices",
    "matmul",
    "matrix_transpose",
    "matvec",
    "max",
    "maximum",
    "may_share_memory",
    "mean",
    "median",
    "meshgrid",
    "mgrid",
    "min",
    "min_scalar_type",
    "minimum",
    "mintypecode",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "ndenumerate",
    "ndim",
    "ndindex",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "number",
    "ogrid",
    "ones",
    "ones_like",
    "outer",
    "packbits",
    "pad",
    "partition",
    "percentile",
    "permute_dims",
    "pi",
    "piecewise",
    "place",
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "positive",
    "pow",
    "power",
    "printoptions",
    "prod",
    "promote_types",
    "ptp",
    "put",
    "put_along_axis",
    "putmask",
    "quantile",
    "r_",
    "rad2deg",
    "radians",
    "ravel",
    "ravel_multi_index",
    "real",
    "real_if_close",
    "reciprocal",
    "remainder",
    "repeat",
    "require",
    "reshape",
    "resize",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rollaxis",
    "roots",
    "rot90",
    "round",
    "s_",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
    "sctypeDict",
    "searchsorted",
    "select",
    "set_printoptions",
    "setbufsize",
    "setdiff1d",
    "seterr",
    "seterrcall",
    "setxor1d",
    "shape",
    "shares_memory",
    "short",
    "sign",
    "signbit",
    "signedinteger",
    "sin",
    "sinc",
    "single",
    "sinh",
    "size",
    "sort",
    "sort_complex",
    "spacing",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "trim_zeros",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "true_divide",
    "trunc",
    "typecodes",
    "typename",
    "ubyte",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unpackbits",
    "unravel_index",
    "unsignedinteger",
    "unstack",
    "unwrap",
    "ushort",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vecmat",
    "vectorize",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
