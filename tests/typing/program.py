"""A program as users write them, which type checkers accept in their strictest mode: no casts, nothing ignored.

Arguments are annotated by what is passed: `float`, `NDArray`, `Tensor`, containers. What comes back has these types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import wengert as wg
from wengert import Tensor, optim
from wengert.autograd import Context, Function

Array = NDArray[np.floating[Any]]
Scalar = float | np.floating[Any]
Parameters = dict[str, Array]


# Functions of numbers


def energy(x: float, scale: float = 1.0) -> float:
    return scale * x**4 - x * x


slope = wg.grad(energy)
assert_type(slope(0.5), float)
assert_type(slope(0.5, scale=2.0), float)
assert_type(wg.grad(wg.grad(energy))(0.5), float)
assert_type(wg.value_and_grad(energy)(0.5), tuple[float, float])
assert_type(wg.jvp(energy, (0.5,), (1.0,)), tuple[float, float])


def newton(derivative: Callable[[float], float], x: float) -> float:
    curvature = wg.grad(derivative)
    for _ in range(20):
        x -= derivative(x) / curvature(x)
    return x


# Functions of arrays


def residuals(x: Array, y: Array) -> Array:
    return np.exp(-x) - y


def loss(x: Array, y: Array) -> Scalar:
    return np.sum(residuals(x, y) ** 2)


def loss_with_parts(x: Array, y: Array) -> tuple[Scalar, Array]:
    parts = residuals(x, y)
    return np.sum(parts**2), parts


def gradient_descent(x: Array, y: Array, rate: float = 0.1) -> tuple[Scalar, Array]:
    compute = wg.jit(wg.value_and_grad(loss))
    value: Scalar = np.inf
    for _ in range(10):
        value, gradient = compute(x, y)
        x = x - rate * gradient
    return value, x


def gauss_newton(x: Array, y: Array) -> Array:
    slopes: Array = wg.jacobian(residuals)(x, y)
    step, *_ = np.linalg.lstsq(slopes, residuals(x, y))
    return x - step


def curvature_along(x: Array, direction: Array, y: Array) -> Array:
    def of_x(x: Array) -> Scalar:
        return loss(x, y)

    return wg.hvp(of_x, x, direction)


def covariance(x: Array, y: Array) -> Array:
    return np.linalg.inv(wg.hessian(loss)(x, y))


def pulled_back(x: Array, y: Array) -> Array:
    values, pullback = wg.vjp(residuals, x, y)
    along_x, along_y = pullback(values)
    assert_type(along_x, Array)
    return along_x + along_y


def pushed_forward(x: Array, y: Array) -> Array:
    values, push = wg.linearize(residuals, x, y)
    return push(values, np.zeros_like(values))


def with_parts(x: Array, y: Array) -> tuple[Array, Array]:
    gradient, parts = wg.grad(loss_with_parts, has_aux=True)(x, y)
    (value, again), other = wg.value_and_grad(loss_with_parts, has_aux=True)(x, y)
    assert_type(value, Scalar)
    assert_type(again, Array)
    return gradient + other, parts


def both(x: Array, y: Array) -> Array:
    along_x, along_y = wg.grad(loss, argnums=(0, 1))(x, y)
    return np.concatenate([along_x, along_y])


# Containers


def network(parameters: Parameters, x: Array) -> Array:
    hidden = np.tanh(x @ parameters["w1"] + parameters["b1"])
    output: Array = hidden @ parameters["w2"]
    return output


def squared_error(parameters: Parameters, x: Array, y: Array) -> Scalar:
    return np.mean((network(parameters, x) - y) ** 2)


@wg.jit
def update(parameters: Parameters, x: Array, y: Array) -> Parameters:
    gradient = wg.grad(squared_error)(parameters, x, y)
    return {name: parameters[name] - 0.1 * gradient[name] for name in parameters}


def trained(parameters: Parameters, x: Array, y: Array) -> Parameters:
    for _ in range(5):
        parameters = update(parameters, x, y)
    return parameters


@dataclass(frozen=True)
class Spring:
    stiffness: Array
    length: float


def potential(spring: Spring, x: Array) -> Scalar:
    energy: Scalar = 0.5 * np.sum(spring.stiffness * (x - spring.length) ** 2)
    return energy


def softened(spring: Spring, x: Array) -> Spring:
    gradient = wg.grad(potential)(spring, x)
    assert_type(gradient, Spring)
    return replace(spring, stiffness=spring.stiffness - gradient.stiffness)


# Lanes, checkpoints, methods


def distance(x: Array, y: Array) -> Array:
    length: Array = np.sqrt(np.sum((x - y) ** 2))
    return length


def distances(points: Array, y: Array) -> Array:
    return wg.vmap(distance, in_axes=(0, None))(points, y)


@wg.checkpoint
def block(x: Array, depth: int = 3) -> Array:
    for _ in range(depth):
        x = np.tanh(x)
    return x


class Model:
    def __init__(self, weights: Array) -> None:
        self.weights = weights

    @wg.jit
    def __call__(self, x: Array) -> Array:
        return x @ self.weights

    def sensitivity(self, x: Array) -> Array:
        def total(x: Array) -> Scalar:
            found: Scalar = np.sum(self(x))
            return found

        return wg.grad(total)(x)


# The tape


def fitted(x: Tensor, y: Tensor) -> Tensor:
    w = wg.tensor([1.0, 0.0], requires_grad=True)
    for _ in range(10):
        error = ((x @ w - y) ** 2).mean()
        error.backward()
        with wg.no_grad():
            if w.grad is not None:
                w -= 0.1 * w.grad
        w.grad = None
    return w.detach()


def tape_gradient(x: Tensor) -> Tensor:
    def scalar(x: Tensor) -> Tensor:
        return (x * x).sum()

    assert_type(wg.hessian(scalar)(x), Tensor)
    return wg.grad(scalar)(x)


class Cube(Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Context, ct: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3.0 * ct * x * x


def cubed(x: Tensor) -> Any:
    return Cube.apply(x)


# Loops


def orbit(state: tuple[Array, Array], kick: float) -> tuple[tuple[Array, Array], Array]:
    place, speed = state
    speed = speed - 0.1 * place + kick
    return (place + 0.1 * speed, speed), place


def followed(kicks: Array) -> Array:
    last, path = wg.scan(orbit, (np.ones(2), np.zeros(2)), kicks)
    assert_type(last, tuple[Array, Array])
    found: Array = path[-1] + last[0]
    return found


# Functions without annotations


def anything(x: Any) -> Any:
    curve = wg.grad(lambda x, y: x * y)
    return wg.jit(wg.vmap(lambda x: curve(x, 2.0)))(x)


def main() -> None:
    x, y = np.linspace(0.0, 1.0, 4), np.full(4, 0.5)
    print(newton(slope, 1.0), gradient_descent(x, y)[0])
    print(gauss_newton(x, y), covariance(x, y), pulled_back(x, y), pushed_forward(x, y), both(x, y))
    print(curvature_along(x, y, y), with_parts(x, y))
    parameters = {"w1": np.eye(4), "b1": x, "w2": y}
    print(trained(parameters, np.eye(4), y)["w2"], softened(Spring(x, 1.0), y).stiffness)
    print(distances(np.eye(4), x), wg.elementwise_grad(block)(x), Model(np.eye(4)).sensitivity(x))
    print(fitted(wg.tensor(np.eye(2)), wg.tensor([1.0, 2.0])), tape_gradient(wg.tensor(x)), anything(x))
    print(cubed(wg.tensor(x)), followed(x))
    print(optim.minimize(loss, x, args=(y,)).fun)


if __name__ == "__main__":
    main()
