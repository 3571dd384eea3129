"""Differentiate the loss of a recurrent network that predicts a text bit by bit: a long chain of small operations.

    python -m examples.recurrent_network [FILE ...] [--jit]

Layers of long short-term memory, with diagonal weights, read the opening of Shakespeare's sonnets; each of 1,023 steps
depends on the one before. The problem is that of ADBench (Srajer, Kukelova and Fitzgibbon 2018, "A benchmark of
selected algorithmic differentiation tools on some problems in computer vision and machine learning", OMS 33); files
have its inputs and the expected value and gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from examples._program import PUBLISHED, error, on_files, timed
from wengert.scipy.special import expit

DATA = [PUBLISHED / "lstm_l2_c1024.npz"]


def step(weights: Any, biases: Any, hidden: Any, cell: Any, u: Any) -> tuple[Any, Any]:
    """Return what a layer says and remembers, given its input and what it said and remembered."""
    forget, take, out, change = np.stack([u, hidden, u, hidden]) * weights + biases
    cell = cell * expit(forget) + expit(take) * np.tanh(change)
    return expit(out) * np.tanh(cell), cell


def loss(main_params: Any, extra_params: Any, state: Any, sequence: Any) -> Any:
    """Return the mean surprise at each of a sequence of vectors of bits.

    Args:
        main_params: for each layer weights and biases, each of (gates, bits), with shape (layers, 2, 4, bits).
        extra_params: scale of inputs, scale and bias of outputs, with shape (3, bits).
        state: for each layer what it says and remembers at first, with shape (layers, 2, bits).
        sequence: the bits, a row for each character.
    """
    scale_in, scale_out, bias = extra_params

    def following(carried: Any, rows: Any) -> Any:
        now, after = rows
        u, layers = now * scale_in, []
        for (weights, biases), (hidden, cell) in zip(main_params, carried, strict=True):
            u, cell = step(weights, biases, hidden, cell, u)
            layers.append((u, cell))
        p = u * scale_out + bias
        return layers, np.sum(after * (p - np.log(2 + np.sum(np.exp(p)))))

    _, gained = wg.scan(following, [(layer[0], layer[1]) for layer in state], (sequence[:-1], sequence[1:]))
    return -np.mean(gained) / np.shape(sequence)[1]


def main(paths: Sequence[Path] = DATA, jit: bool = False) -> dict[str, float]:
    """Compute value and gradient for each file, print time and error, and return the errors."""
    evaluate: Any = wg.value_and_grad(loss, argnums=(0, 1))
    if jit:
        evaluate = wg.jit(evaluate)
    errors = {}
    for path in paths:
        data = np.load(path)
        sequence, bits = data["sequence"].astype(float), data["sequence"].shape[1]
        parameters, state = data["main_params"].reshape(-1, 2, 4, bits), data["state"].reshape(-1, 2, bits)
        arguments = parameters, data["extra_params"], state, sequence
        (value, gradients), spent = timed(evaluate, *arguments)
        gradient = np.concatenate([np.ravel(part) for part in gradients])
        errors[path.stem] = max(error(value, data["loss"]), error(gradient, data["grad"]))
        print(f"{path.stem:14} {value:14.10f} {spent:9.2f} ms   error {errors[path.stem]:.1e}")
    return errors


if __name__ == "__main__":
    on_files(main)
