"""Complex numbers: transposes without conjugation inside, JAX's convention for transformations, PyTorch's for the tape.

For real f the gradient by `grad` is df/dx - i df/dy, so that df = Re(sum(gradient * dz)); `.grad` is its conjugate, the
direction of steepest ascent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError
from wengert.testing import check_grads

Z = np.array([0.5 + 1.0j, -1.25 + 0.25j, 0.75 - 0.5j])
W = np.array([1.0 - 0.5j, 0.25 + 2.0j, -1.5 + 0.125j])
T = np.array([0.25 - 1.0j, 1.5 + 0.5j, -0.5 + 0.75j])
A = np.array([[1.0, 0.5j, -0.25], [0.5 - 1.0j, 2.0, 0.0], [0.125j, -1.0, 1.0 + 1.0j]])


def written(z: Any) -> Any:
    """Write into a complex array, through views and from real values."""
    buffer = wg.tensor(np.zeros((2, 3), complex))
    buffer[0] = z * W
    buffer[1, ::-1] = z.real
    buffer[0, 1:] *= buffer[1, :2]
    row = buffer[0]
    row += z
    return np.sum(np.abs(buffer) ** 2)


# Gradients of real functions at Z as JAX 0.10 gives them; PyTorch 2.13 gives their conjugates as .grad

REAL: dict[str, tuple[Callable[[Any], Any], list[complex]]] = {
    "squares": (
        lambda z: np.sum(np.abs(z) ** 2),
        [1 - 2j, -2.5 - 0.5j, 1.5 + 0.9999999999999999j],
    ),
    "absolute": (
        lambda z: np.sum(np.abs(z)),
        [
            0.4472135954999579 - 0.8944271909999159j,
            -0.98058067569092 - 0.19611613513818402j,
            0.8320502943378436 + 0.554700196225229j,
        ],
    ),
    "real and imaginary part": (
        lambda z: np.sum(z.real**2 * z.imag),
        [1 - 0.25j, -0.625 - 1.5625j, -0.75 - 0.5625j],
    ),
    "angle": (
        lambda z: np.sum(np.angle(z)),
        [-0.8 - 0.4j, -0.15384615384615385 + 0.7692307692307693j, 0.6153846153846154 - 0.9230769230769231j],
    ),
    "conjugate": (
        lambda z: np.sum((np.conj(z) * W * z * z).real),
        [2.25 - 2.625j, 2.4375 + 3.65625j, -2.8125 - 0.9609375j],
    ),
    "exponential": (
        lambda z: np.sum((np.exp(z) * W).real),
        [
            1.5844834599580104 + 0.941947159183199j,
            -0.07236532803786691 + 0.5729167183872022j,
            -2.6598954630026643 + 1.7546460970470714j,
        ],
    ),
    "sine": (
        lambda z: np.sum((np.sin(z) / z).imag),
        [
            -0.3402047465620269 + 0.21401971008697815j,
            -0.04801894501906939 - 0.36156079248166634j,
            0.14285890384282363 + 0.25399948282939444j,
        ],
    ),
    "logarithm": (
        lambda z: np.sum((np.log(z) * W).imag),
        [-1 + 0j, -1.5769230769230766 - 0.11538461538461539j, -0.8076923076923077 + 1.4615384615384617j],
    ),
    "square root": (
        lambda z: np.sum(np.abs(np.sqrt(z) + 1)),
        [
            0.3162277660168379 - 0.35157758425414287j,
            -0.2826429053396979 - 0.34092392582410314j,
            0.4771139664875873 + 0.22296268991716062j,
        ],
    ),
    "hyperbolic tangent": (
        lambda z: np.sum((np.tanh(z) * W).real),
        [
            -0.2778813291308765 - 1.9646507339611694j,
            -0.17118406575461487 + 0.5489947597475386j,
            -0.867729168141182 - 0.5745163302089588j,
        ],
    ),
    "powers": (
        lambda z: np.sum((z**3 + z**W + W**z).real),
        [
            -0.469035896416818 + 1.2383383685858116j,
            4.9105974739452005 - 2.1051747670032244j,
            -17.40198993567341 - 11.588447090081026j,
        ],
    ),
    "matmul": (
        lambda z: (np.conj(z) @ A @ z).real,
        [-0.25 - 0.28125j, -4 - 1.25j, 2.5 + 1.4375j],
    ),
    "einsum": (
        lambda z: (np.einsum("ij,i,j->", A, z, np.conj(z)) * z[0]).real,
        [8 - 0.875j, -3.25 - 0.875j, -0.1875 + 1.28125j],
    ),
    "indexing": (
        lambda z: np.abs(z[1]) * (z[0] * z[np.array([0, 0, 2])].sum()).real,
        [
            3.50557591559504 + 4.461642074393687j,
            0.612862922306825 + 0.12257258446136501j,
            0.6373774391990982 + 1.2747548783981963j,
        ],
    ),
    "from real parts": (
        lambda z: np.sum((z.real + 1j * z.imag**2) ** 2).real,
        [1 + 4j, -2.5 + 0.0625j, 1.5 - 0.5j],
    ),
    "norm": (
        lambda z: np.linalg.norm(z) ** 3,
        [
            2.880429655450728 - 5.760859310901456j,
            -7.2010741386268196 - 1.440214827725364j,
            4.320644483176092 + 2.880429655450728j,
        ],
    ),
    "product": (
        lambda z: np.prod(z).real,
        [-0.8125 + 0.8125j, 0.875 + 0.5j, -0.875 - 1.125j],
    ),
    "cumulative sum": (
        lambda z: np.sum(np.abs(np.cumsum(z, axis=0))),
        [-0.06728215992756864 - 2.7519201167124603j, -0.5144957554275266 - 1.8574929257125443j, -1j],
    ),
    "choice": (
        lambda z: np.sum(np.where(Z.real > 0, z * z, np.conj(z)).real),
        [1 + 2j, 1 + 0j, 1.5 - 1j],
    ),
    "determinant": (
        lambda z: np.linalg.det(np.outer(z, W) + A).real,
        [2.28125 - 3.0625j, -2.71875 + 1.5j, -2.25 + 0.125j],
    ),
    "solution": (
        lambda z: np.sum(np.abs(np.linalg.solve(A, z))),
        [
            0.9204146942288194 - 2.228604008288033j,
            -1.3588048165525404 - 0.09017034476677313j,
            -0.6113075958745056 + 0.15362904687681841j,
        ],
    ),
}

# Complex functions: of complex arguments, checked for consistency of all modes

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{f.__name__: f for f in (np.exp, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.sqrt, np.log, np.square)},
    **{f.__name__: f for f in (np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.reciprocal)},
    **{f.__name__: f for f in (np.log2, np.log10, np.log1p, np.expm1, np.exp2, np.conjugate, np.negative, np.sign)},
    **{f.__name__: f for f in (np.absolute, np.real, np.imag, np.angle, np.positive, np.copy)},
    "add": lambda z: z + W,
    "subtract": lambda z: W - z,
    "multiply": lambda z: z * W,
    "multiply by real": lambda z: z * z.real,
    "multiply by number": lambda z: 2.0j * z,
    "divide": lambda z: W / z,
    "divide by": lambda z: z / W,
    "power": lambda z: z**W,
    "power of": lambda z: W**z,
    "integer power": lambda z: z**3,
    "matmul": lambda z: A @ z,
    "vector-matrix": lambda z: z @ A,
    "outer": lambda z: np.outer(z, np.conj(z)),
    "vdot": lambda z: np.vdot(z, A @ z),
    "vecdot": lambda z: np.vecdot(z, W * z),
    "inner": lambda z: np.inner(z, z),
    "einsum": lambda z: np.einsum("ij,i,j->ij", A, z, np.conj(z)),
    "tensordot": lambda z: np.tensordot(A, z, axes=1),
    "sum": lambda z: np.sum(z * z),
    "prod": np.prod,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "norm": np.linalg.norm,
    "det": lambda z: np.linalg.det(np.outer(z, W) + A),
    "inv": lambda z: np.linalg.inv(np.outer(z, W) + A),
    "solve": lambda z: np.linalg.solve(A, z),
    "cholesky": lambda z: np.linalg.cholesky(np.outer(z, np.conj(z)) + np.eye(3)),
    "qr": lambda z: np.linalg.qr(np.outer(z, W) + A)[1],
    "eigvalsh": lambda z: np.linalg.eigvalsh(np.outer(z, W) + A),
    "eigenvectors": lambda z: projector(np.linalg.eigh(np.outer(z, np.conj(z)) + np.diag([1.0, 2.0, 4.0]))[1][:, 1]),
    "scaled eigenvectors": lambda z: np.linalg.eig(np.outer(z, W) + A)[1],
    "svd": lambda z: projector(np.linalg.svd(np.outer(z, W) + A)[0][:, 0]),
    "pinv": lambda z: np.linalg.pinv(np.stack([z, W])),
    "fft": lambda z: np.fft.fft(z * z, 4),
    "irfft": lambda z: np.fft.irfft(z * z, 5),
    "index": lambda z: z[::2] * z[1],
    "fancy index": lambda z: z[np.array([[0, 0], [2, 1]])] ** 2,
    "where": lambda z: np.where(Z.real > 0, z * z, np.conj(z)),
    "concatenate": lambda z: np.concatenate([z, z.real, 1j * z.imag]),
    "stack of real and complex": lambda z: np.stack([z.real, z]),
    "from real parts": lambda z: z.real + 1j * z.imag**2,
    "polar": lambda z: np.abs(z) * np.exp(1j * np.angle(z)),
    "astype": lambda z: z.real.astype(complex) * z,
    "reshape": lambda z: z.reshape(3, 1).T,
    "written": written,
}

given = together("name", FUNCTIONS)
real = pytest.mark.parametrize("name", REAL)


def projector(v: Any) -> Any:
    """Return v v^H, which does not depend on the phase of v."""
    return np.outer(v, np.conj(v))


def product(ct: Any, t: Any) -> float:
    """Return the real part of the plain product, without conjugation."""
    return float(np.real(np.sum(ct * t)))


def shaped(value: Any, seed: int) -> Any:
    """Return random numbers of the shape and dtype of a value."""
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=np.shape(value))
    return numbers + 1j * generator.normal(size=np.shape(value)) if np.iscomplexobj(value) else numbers


# Conventions


@real
def test_gradient_of_a_real_function_is_jaxs(name: str) -> None:
    f, want = REAL[name]
    np.testing.assert_allclose(wg.grad(f)(Z), want, rtol=1e-12, atol=1e-14)


@real
def test_grad_attribute_is_pytorchs(name: str) -> None:
    f, want = REAL[name]
    z = wg.tensor(Z, requires_grad=True)
    f(z).backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), np.conj(want), rtol=1e-12, atol=1e-14)
    (got,) = wg.autograd.grad(f(z), z)
    np.testing.assert_allclose(got.numpy(), np.conj(want), rtol=1e-12, atol=1e-14)


@real
def test_a_step_against_the_grad_attribute_descends(name: str) -> None:
    f, _ = REAL[name]
    z = wg.tensor(Z, requires_grad=True)
    value = f(z)
    value.backward()
    assert z.grad is not None
    step = 1e-6 * z.grad.numpy()
    predicted = value.item() - 1e-6 * np.sum(np.abs(z.grad.numpy()) ** 2)
    np.testing.assert_allclose(f(Z - step), predicted, rtol=0, atol=1e-8)
    assert f(Z - step) < value.item()


def test_a_given_gradient_is_conjugated_as_in_pytorch() -> None:
    z = wg.tensor(Z, requires_grad=True)
    (z * W).backward(T)
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), T * np.conj(W))


def test_pullback_is_the_transpose_without_conjugation() -> None:
    _, pullback = wg.vjp(lambda z: z * W, Z)
    np.testing.assert_allclose(pullback(T)[0], T * W)


# Consistency of modes


@given
def test_jvp_is_the_derivative_along_a_direction(name: str) -> None:
    f, h = FUNCTIONS[name], 1e-6
    value, tangent = wg.jvp(f, (Z,), (T,))
    np.testing.assert_array_equal(value, f(Z))
    np.testing.assert_allclose(tangent, (f(Z + h * T) - f(Z - h * T)) / (2 * h), rtol=1e-7, atol=1e-8)
    assert np.iscomplexobj(tangent) == np.iscomplexobj(value)


@given
def test_vjp_is_the_transpose_of_jvp(name: str) -> None:
    f = FUNCTIONS[name]
    value, tangent = wg.jvp(f, (Z,), (T,))
    ct = shaped(value, 1)
    np.testing.assert_allclose(product(ct, tangent), product(wg.vjp(f, Z)[1](ct)[0], T), rtol=1e-12, atol=1e-13)


@given
def test_linearize_and_taylor_agree_with_jvp(name: str) -> None:
    f = FUNCTIONS[name]
    _, tangent = wg.jvp(f, (Z,), (T,))
    np.testing.assert_allclose(wg.linearize(f, Z)[1](T), tangent, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wg.taylor(f, (Z,), (T,), 1)[1], tangent, rtol=1e-12, atol=1e-13)


@given
def test_second_derivatives_agree_in_all_combinations_of_modes(name: str) -> None:
    f = FUNCTIONS[name]
    ct = shaped(f(Z), 2)

    def scalar(z: Any) -> Any:
        return np.sum(np.real(ct * f(z)))

    def along(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda z: wg.jvp(g, (z,), (T,))[1]

    def against(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda z: np.sum(np.real(wg.grad(g)(z) * T))

    want = along(along(scalar))(Z)
    for combination in (along(against(scalar)), against(along(scalar)), against(against(scalar))):
        np.testing.assert_allclose(combination(Z), want, rtol=1e-10, atol=1e-12)


@given
def test_lanes_are_as_the_function_by_itself(name: str) -> None:
    f = FUNCTIONS[name]
    lanes = np.stack([Z, Z * 0.5])
    np.testing.assert_allclose(wg.vmap(f)(lanes), np.stack([f(lane) for lane in lanes]), rtol=1e-13, atol=1e-14)

    def pulled(z: Any) -> Any:
        output, pullback = wg.vjp(f, z)
        return pullback(np.ones(output.shape, output.dtype))[0]

    np.testing.assert_allclose(wg.vmap(pulled)(lanes), np.stack([pulled(lane) for lane in lanes]), rtol=1e-12)


@pytest.mark.parametrize("name", ["multiply", "power", "einsum", "written", "polar", "sign", "angle"])
def test_check_grads_takes_complex_arguments(name: str) -> None:
    check_grads(FUNCTIONS[name], (Z,), order=2)


def test_check_grads_finds_a_conjugate_too_many() -> None:
    rule = wg.custom_rule(lambda z: z * z)
    rule.defvjp(lambda z: (z * z, z), lambda z, ct: (2 * ct * np.conj(z),))
    with pytest.raises(AssertionError, match="is needed by differences"):
        check_grads(rule, (Z,), order=1)


@pytest.mark.parametrize("name", ["exp", "absolute", "matmul", "angle", "written"])
def test_single_precision_stays_single(name: str) -> None:
    gradient = wg.grad(lambda z: np.sum(np.abs(FUNCTIONS[name](z))))(Z.astype(np.complex64))
    assert gradient.dtype == np.complex64


# Real and complex arguments together


def test_real_arguments_of_complex_functions_get_real_gradients() -> None:
    x = np.array([0.5, -1.0, 2.0])
    gradient = wg.grad(lambda x: np.sum(np.abs(np.exp(1j * x) + x * W)))(x)
    assert gradient.dtype == np.float64
    check_grads(lambda x, z: np.abs(x * z + np.exp(1j * x)), (x, Z), order=2)


def test_real_leaf_of_the_tape_gets_a_real_gradient() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    buffer = wg.tensor(np.zeros(2, complex))
    buffer[:] = x
    buffer *= 1j * x
    np.sum(buffer.imag).backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


# Holomorphic functions


def test_holomorphic_derivatives() -> None:
    point = 0.5 + 1.5j
    assert wg.grad(lambda z: z**3, holomorphic=True)(point) == pytest.approx(3 * point**2)
    value, slope = wg.value_and_grad(np.exp, holomorphic=True)(point)
    assert value == slope == np.exp(point)
    second = wg.grad(wg.grad(np.sin, holomorphic=True), holomorphic=True)(point)
    assert second == pytest.approx(-np.sin(point))


@pytest.mark.parametrize("jacobian", [wg.jacfwd, wg.jacrev, wg.jacobian], ids=lambda f: f.__name__)
def test_holomorphic_jacobians(jacobian: Any) -> None:
    got = jacobian(lambda z: A @ z**2, holomorphic=True)(Z)
    np.testing.assert_allclose(got, A * (2 * Z), rtol=1e-14)


def test_holomorphic_hessian() -> None:
    got = wg.hessian(lambda z: np.sum(z**3), holomorphic=True)(Z)
    np.testing.assert_allclose(got, np.diag(6 * Z), rtol=1e-14)


def test_jacobian_takes_the_mode_that_complex_numbers_allow() -> None:
    np.testing.assert_allclose(wg.jacobian(np.abs)(Z), np.diag(np.conj(Z) / np.abs(Z)))
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(wg.jacobian(lambda x: np.exp(1j * x).sum())(x), 1j * np.exp(1j * x))


REFUSED = {
    "grad of a complex function": (
        lambda: wg.grad(lambda z: z**2)(1j),
        "grad: a function that returned dtype complex128 with holomorphic=False; a real result is needed. "
        "Pass holomorphic=True for a complex differentiable function.",
    ),
    "grad of a complex function of a real argument": (
        lambda: wg.grad(lambda x: 1j * x)(1.0),
        "grad: a function that returned dtype complex128 with holomorphic=False; a real result is needed. "
        "Return .real, .imag or abs() of it, or pass complex arguments and holomorphic=True.",
    ),
    "holomorphic, with a real argument": (
        lambda: wg.grad(lambda z: 1j * z, holomorphic=True)(1.0),
        "grad: an argument of dtype float64 with holomorphic=True; a complex one is needed. "
        "Convert it with .astype(complex).",
    ),
    "holomorphic, with a real result": (
        lambda: wg.grad(abs, holomorphic=True)(1j),
        "grad: a function that returned dtype float64 with holomorphic=True; a complex result is needed. "
        "Leave holomorphic out, or pass complex arguments.",
    ),
    "jacfwd of a complex argument": (
        lambda: wg.jacfwd(np.abs)(Z),
        "jacfwd: an argument of dtype complex128 with holomorphic=False; a real one is needed. "
        "Pass holomorphic=True for a complex differentiable function, or use jacrev if the outputs are real.",
    ),
    "jacrev of a complex output": (
        lambda: wg.jacrev(lambda x: 1j * x)(np.ones(2)),
        "jacrev: an output of dtype complex128 with holomorphic=False; a real one is needed. "
        "Use jacfwd, or pass complex arguments and holomorphic=True.",
    ),
    "holomorphic jacfwd of a real output": (
        lambda: wg.jacfwd(np.abs, holomorphic=True)(Z),
        "jacfwd: an output of dtype float64 with holomorphic=True; a complex one is needed. "
        "Leave holomorphic out, or return complex numbers.",
    ),
    "complex cotangent of a real output": (
        lambda: wg.vjp(np.abs, Z)[1](T),
        "vjp: a cotangent of dtype complex128 for an output of dtype float64; "
        "a real cotangent is needed for a real output. Pass its .real.",
    ),
    "complex tangent of a real primal": (
        lambda: wg.jvp(np.exp, (1.0,), (1j,)),
        "jvp: a tangent of dtype complex128 for a primal of dtype float64; a real tangent is needed for a real primal. "
        "Pass its .real, or convert the primal with .astype(complex).",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(DtypeError) as caught:
        call()
    assert str(caught.value) == text


# Writes to parts


def set_imaginary_part(x):
    z = x * (1 + 2j)
    z.imag = x**2
    return z.imag[0] * 3 + z.imag[1]


def write_to_views_of_parts(x):
    z = x * (1 + 2j)
    imaginary, same, real = z.imag, np.imag(z), np.real(z)[1:]
    imaginary[0] = x[1] ** 2
    same[1] = x[0] * 2
    real += x[0] * same[1]
    return np.sum(np.abs(z) ** 2) + imaginary[1] * same[0]


def write_to_parts_of_parts(x):
    z = np.outer(x, x) * (1 - 1j)
    z.T[1].imag[:1] *= x[0]
    z[1:].real[0, 0] -= x[1]
    return np.sum((z * z).imag)


def add_to_imaginary_part(x):
    z = x * 1j
    np.add(z.imag, x, out=z.imag)
    np.add.at(z.imag, [0, 0], x)
    return np.sum((z**3).imag * np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    "function", [set_imaginary_part, write_to_views_of_parts, write_to_parts_of_parts, add_to_imaginary_part]
)
def test_parts_of_complex_arrays_are_views_in_every_mode(function):
    x, direction = np.array([0.5, 0.6]), np.array([1.0, -2.0])
    value, step = function(x.copy()), 1e-6 * np.eye(2)
    gradient = np.array([(function(x + s) - function(x - s)) / 2e-6 for s in step])
    np.testing.assert_allclose(wg.jit(function)(x), value, rtol=1e-14)
    for grad in (wg.grad(function), wg.jit(wg.grad(function)), wg.grad(wg.jit(function))):
        np.testing.assert_allclose(grad(x), gradient, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(wg.jvp(function, (x,), (direction,)), (value, gradient @ direction), rtol=1e-7)
    np.testing.assert_allclose(wg.vmap(wg.grad(function))(np.stack([x, x])), [gradient] * 2, rtol=1e-7, atol=1e-9)
    second = [(wg.grad(function)(x + s) - wg.grad(function)(x - s)) / 2e-6 for s in step]
    for hessian in (wg.hessian(function), wg.jit(wg.hessian(function)), wg.jacrev(wg.grad(function))):
        np.testing.assert_allclose(hessian(x), second, rtol=1e-6, atol=1e-8)


def test_interp_refuses_complex_operands_as_numpy_does():
    xp, fp = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 5.0])
    for operands in ((0.5 + 1j, xp, fp), (np.array([0.5]), xp + 0j, fp), (0.5, xp, fp, 1j), (0.5, xp, fp, 0.0, 1j)):
        with pytest.raises(TypeError):
            np.interp(*operands)
        for function in (wg.jit(np.interp), lambda *xs: np.interp(wg.asarray(xs[0]), *xs[1:])):
            with pytest.raises(TypeError, match=r"real number|Cannot cast"):
                function(*operands)
    expected = np.interp([-1.0, 0.5], xp, fp + 1j, 2j)
    np.testing.assert_array_equal(wg.jit(np.interp)(np.array([-1.0, 0.5]), xp, fp + 1j, 2j), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.true_divide(2j * x, np.fmin(False, x)),
        lambda x: np.power(2j * x * 0, -1.0),
        lambda x: np.power(2j * x * 0, 0.5),
    ],
)
def test_pythons_complex_numbers_are_divided_by_zero_in_derivatives_as_by_numpy(function: Any) -> None:
    with np.errstate(all="ignore"):
        moved, array = wg.jvp(function, (1.0,), (1.0,)), wg.jvp(function, (np.ones(1),), (np.ones(1),))
        np.testing.assert_array_equal(moved, np.array(array)[:, 0])
        pulled = wg.vjp(function, 1.0)[1](1.0 + 0.0j), wg.vjp(function, np.ones(1))[1](np.ones(1, complex))
        np.testing.assert_array_equal(pulled[0], pulled[1][0])
