"""A program of another kind of user: fits by SciPy's drivers, distributions, networks, keys, and the tape; no casts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, assert_type

import numpy as np
from numpy.typing import NDArray

import wengert as wg
import wengert.numpy as wnp
from wengert import optim, random, tree
from wengert.nn import functional as F
from wengert.scipy import special, stats
from wengert.scipy.linalg import cho_solve, expm

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Key = NDArray[np.uint64]
Scalar = float | np.floating[Any]


# A regression with a prior, by SciPy's drivers


class Model(NamedTuple):
    slope: Floats
    offset: float
    log_scale: float


@dataclass
class Data:
    x: Floats
    y: Floats
    name: str = "none"


def log_density(model: Model, data: Data) -> float:
    mean = data.x @ model.slope + model.offset
    likelihood = stats.norm.logpdf(data.y, mean, np.exp(model.log_scale))
    prior = stats.norm.logpdf(model.slope, 0.0, 10.0)
    return float(np.sum(likelihood) + np.sum(prior))


def loss(model: Model, data: Data) -> Scalar:
    residuals: Floats = data.y - data.x @ model.slope - model.offset
    return np.mean(residuals**2) + 0.01 * np.sum(model.slope**2)


def fitted(data: Data) -> tuple[Model, float]:
    start = Model(np.zeros(data.x.shape[1]), 0.0, 0.0)

    def objective(model: Model) -> Scalar:
        return loss(model, data)

    found = optim.minimize(objective, start, method="BFGS", options={"maxiter": 50})
    best: Model = found.x
    value: float = found.fun
    assert_type(wg.grad(loss)(start, data), Model)
    both: tuple[Scalar, Model] = wg.value_and_grad(loss)(start, data)
    print(found.success, found.nit, both[1].slope)
    return best, value


def curve(x: Floats, a: float, b: float) -> Floats:
    return a * np.exp(-b * x)


def squared(z: Floats) -> Floats:
    return z**2 - 2.0


def distance(parameters: dict[str, Floats]) -> Floats:
    return parameters["a"] - 1.0


def curves(data: Data) -> tuple[Floats, Floats]:
    best, covariance = optim.curve_fit(curve, data.x[:, 0], data.y, (1.0, 1.0))
    root = optim.root(squared, np.ones(2))
    small = optim.least_squares(distance, {"a": np.zeros(3)})
    found: dict[str, Floats] = small.x
    print(root.x, found["a"])
    return np.asarray(best), np.asarray(covariance)


# A network, trained with keys


class Layer(NamedTuple):
    weight: Floats
    bias: Floats


Network = list[Layer]


def created(key: Key, widths: Sequence[int]) -> Network:
    layers: Network = []
    keys = random.split(key, len(widths) - 1)
    for one, inputs, outputs in zip(keys, widths[:-1], widths[1:], strict=True):
        weight = random.normal(one, 0.0, inputs**-0.5, (outputs, inputs)).numpy()
        layers.append(Layer(weight, np.zeros(outputs)))
    return layers


def logits(network: Network, x: Floats) -> Floats:
    for layer in network[:-1]:
        x = F.relu(F.linear(x, layer.weight, layer.bias))
    found: Floats = F.linear(x, network[-1].weight, network[-1].bias)
    return found


def entropy(network: Network, x: Floats, labels: Ints, key: Key) -> float:
    noisy = x + 0.1 * random.normal(key, size=x.shape)
    value: float = F.cross_entropy(logits(network, noisy), labels, label_smoothing=0.1)
    return value


def batches(x: Floats, labels: Ints, size: int) -> Iterator[tuple[Floats, Ints]]:
    for i in range(0, len(x), size):
        yield x[i : i + size], labels[i : i + size]


def trained(x: Floats, labels: Ints, epochs: int) -> tuple[Network, list[float]]:
    key = random.key(0)
    key, used = random.split(key)
    network = created(used, [x.shape[1], 16, 2])
    rule = optim.clipped(optim.adam(optim.cosine(0.01, epochs)), 1.0)
    init, update = rule
    state = init(network)

    @wg.jit
    def step(network: Network, state: Any, x: Floats, labels: Ints, key: Key) -> tuple[float, Network, Any]:
        value, gradient = wg.value_and_grad(entropy)(network, x, labels, key)
        network, state = update(gradient, state, network)
        return value, network, state

    losses: list[float] = []
    for epoch in range(epochs):
        for some, wanted in batches(x, labels, 32):
            value, network, state = step(network, state, some, wanted, random.fold_in(key, epoch))
            losses.append(value)
    return network, losses


# Tape, optimiser, files


def on_tape(x: Floats, y: Floats, path: Path) -> wg.Tensor:
    w = wg.tensor(np.zeros(x.shape[1]), requires_grad=True)
    b = wg.tensor(0.0, requires_grad=True)
    optimizer = optim.Optimizer([w, b], optim.sgd(0.1))
    for _ in range(10):
        error = x @ w + b - y
        value = (error * error).mean()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    gradient = w.grad
    assert gradient is not None
    optim.save(path, {"w": w, "b": b})
    again = optim.load(path)
    print(again["w"], gradient.shape, w.detach().numpy().tolist())
    with wg.no_grad():
        w += 1.0
        w[0] = 3.0
        w[1:] *= 2
    total: wg.Tensor = special.gammaln(b + 1.0) + wnp.sum(w, axis=0, keepdims=False)
    return w.sum() + total


# Transformations of typed functions


def energy(x: Floats, k: float, *, damping: float = 0.0) -> Scalar:
    return 0.5 * k * np.sum(x**2) + damping


@wg.custom_rule
def saturated(x: Floats, limit: float) -> Floats:
    return np.minimum(x, limit)


saturated.defvjp(lambda x, limit: (saturated(x, limit), x < limit), lambda below, ct: (np.where(below, ct, 0.0), None))


def transformed(x: Floats) -> Floats:
    assert_type(saturated(x, 2.0), Floats)
    assert_type(wg.jit(energy).__wrapped__(x, 2.0, damping=0.5), Scalar)
    print(wg.grad(energy).__wrapped__(x, 2.0), wg.jacobian(saturated)(x, 2.0))
    assert_type(wg.grad(energy)(x, 2.0, damping=1.0), Floats)
    assert_type(wg.jit(energy)(x, 2.0, damping=0.5), Scalar)
    assert_type(wg.checkpoint(curve)(x, 1.0, 2.0), Floats)
    rows = wg.vmap(wg.grad(energy), in_axes=(0, None))(np.stack([x, x]), 3.0)
    assert_type(rows, Floats)
    by_k: float = wg.grad(energy, argnums=1)(x, 2.0)
    out, tangent = wg.jvp(curve, (x, 1.0, 2.0), (x, 0.0, 0.0))
    assert_type(tangent, Floats)
    _, pullback = wg.vjp(curve, x, 1.0, 2.0)
    product = wg.hvp(energy, (x, 2.0), (x, 0.0))
    flat, back = tree.ravel({"x": x, "k": 1.0})
    print(by_k, out, wg.hessian(energy)(x, 2.0), wg.jacobian(curve)(x, 1.0, 2.0), pullback(x), product, back(flat))
    return rows


def main(folder: Path) -> None:
    generator = np.random.default_rng(0)
    data = Data(generator.normal(size=(40, 2)), generator.normal(size=40))
    print(fitted(data), log_density(Model(np.zeros(2), 0.0, 0.0), data))
    print(curves(Data(np.abs(data.x), np.exp(-np.abs(data.x[:, 0])))))
    labels = (data.y > 0).astype(np.int64)
    print(trained(data.x, labels, 3)[1][-1])
    print(on_tape(data.x, data.y, folder / "parameters.npz"))
    print(transformed(np.ones(3)), expm(np.eye(2)), cho_solve((np.eye(2), True), np.ones(2)))
