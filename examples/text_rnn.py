"""Recurrent network on text: a nursery rhyme, learned letter by letter.

A gated recurrent unit reads letters x_t one by one and keeps a state h_t:

    z = s(W_z x + U_z h + b_z),  r = s(W_r x + U_r h + b_r),  n = tanh(W_n x + U_n (r h) + b_n),  h' = (1 - z) h + z n,

where s is the logistic function; a linear map of h' gives the logits of the next letter. The loss is the cross-entropy
in bits for each letter. What the letters alone would cost is the entropy of their frequencies, and with the letter
before each known, the entropy of pairs less that; a network that does better has learned words. Training steps by Adam,
with gradients clipped by their norm, go back through the whole `scan`. At the end the network writes, letter by letter.

Source: K. Cho et al., Learning phrase representations using RNN encoder-decoder, EMNLP 2014, equations 5 to 8.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wengert as wg
from examples._program import command, figure
from wengert import optim, random
from wengert.nn import functional
from wengert.scipy.special import expit

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
LENGTH = 40
"""How many letters are read in a row."""


class Result(NamedTuple):
    """Hold what was learned.

    Attributes:
        losses: shape (iterations,), in bits for each letter.
        single: the entropy of letters.
        pairs: the entropy of letters, given the one before.
        bits: the loss in the end, a mean of the last ten.
        written: what the network writes.
    """

    losses: Array
    single: float
    pairs: float
    bits: float
    written: str


def read() -> tuple[Integers, str]:
    """Return a text as the places of its letters in an alphabet, and that."""
    text = (Path(__file__).parent / "data" / "jack.txt").read_text()
    alphabet = "".join(sorted(set(text)))
    return np.array([alphabet.index(letter) for letter in text]), alphabet


def entropy(counts: Array) -> float:
    """Return the entropy of frequencies in bits."""
    shares = counts[counts > 0] / np.sum(counts)
    return float(-np.sum(shares * np.log2(shares)))


def started(key: Any, letters: int, hidden: int) -> dict[str, Any]:
    """Return parameters to begin with."""
    keys = random.split(key, 3)
    return {
        "input": random.normal(keys[0], 0.0, 1.0, (letters, 3 * hidden)),
        "state": random.normal(keys[1], 0.0, hidden**-0.5, (hidden, 3 * hidden)),
        "bias": np.zeros(3 * hidden),
        "output": random.normal(keys[2], 0.0, hidden**-0.5, (hidden, letters)),
        "output bias": np.zeros(letters),
    }


def unit(parameters: dict[str, Any], h: Any, letter: Any) -> Any:
    """Return the next state; letters are integers of shape (...), and states have shape (..., hidden)."""
    of_letter = parameters["input"][letter] + parameters["bias"]
    hidden = h.shape[-1]
    gates = expit(of_letter[..., : 2 * hidden] + h @ parameters["state"][:, : 2 * hidden])
    z, r = gates[..., :hidden], gates[..., hidden:]
    n = np.tanh(of_letter[..., 2 * hidden :] + (r * h) @ parameters["state"][:, 2 * hidden :])
    return h + z * (n - h)


def logits(parameters: dict[str, Any], h: Any) -> Any:
    """Return the logits of the next letter."""
    return h @ parameters["output"] + parameters["output bias"]


def loss(parameters: dict[str, Any], rows: Integers) -> Any:
    """Return the bits for each letter of rows of a text, of shape (rows, LENGTH + 1)."""

    def step(h: Any, letters: Any) -> tuple[Any, Any]:
        now, after = letters
        h = unit(parameters, h, now)
        return h, functional.cross_entropy(logits(parameters, h), after)

    h = np.zeros((len(rows), len(parameters["state"])), like=parameters["state"])
    return np.mean(wg.scan(step, h, (rows.T[:-1], rows.T[1:]))[1]) / np.log(2)


def write(parameters: dict[str, Any], key: Any, first: Any, count: int) -> Any:
    """Return letters that follow one another by the network's probabilities, sharpened a little."""

    def step(state: Any, key: Any) -> Any:
        h, letter = state
        h = unit(parameters, h, letter)
        letter = random.categorical(key, 1.5 * logits(parameters, h))
        return (h, letter), letter

    h = np.zeros(len(parameters["state"]), like=parameters["state"])
    return wg.scan(step, (h, first), random.split(key, count))[1]


def main(hidden: int = 48, rows: int = 16, iterations: int = 200, seed: int = 0) -> Result:
    """Learn the rhyme, and write two hundred letters."""
    text, alphabet = read()
    counts = np.zeros((len(alphabet), len(alphabet)))
    np.add.at(counts, (text[:-1], text[1:]), 1)
    single = entropy(counts.sum(axis=0))

    key, other = random.split(random.key(seed))
    parameters = started(key, len(alphabet), hidden)
    init, update = optim.clipped(optim.adam(optim.cosine(0.01, iterations)), 1.0)

    @wg.jit
    def train(parameters: Any, state: Any, batch: Any) -> Any:
        bits, gradient = wg.value_and_grad(loss)(parameters, batch)
        return bits, *update(gradient, state, parameters)

    draws = np.random.default_rng(seed)
    state, losses = init(parameters), []
    for _ in range(iterations):
        begin = draws.integers(0, len(text) - LENGTH, rows)
        bits, parameters, state = train(parameters, state, text[begin[:, None] + np.arange(LENGTH + 1)])
        losses.append(float(bits))
    letters = wg.jit(write, static_argnums=3)(parameters, other, text[0], 200)
    written = alphabet[text[0]] + "".join(alphabet[i] for i in letters)
    return Result(np.array(losses), single, entropy(counts) - single, float(np.mean(losses[-10:])), written)


def draw(result: Result) -> object:
    """Draw the loss, and show what the network writes."""
    drawn, (left, right) = figure(1, 2)
    left.plot(result.losses, linewidth=1)
    left.axhline(result.single, linestyle="--", color="gray", label="single letters")
    left.axhline(result.pairs, linestyle=":", color="gray", label="pairs of letters")
    left.set(xlabel="step", ylabel="bits for each letter", ylim=(0, None))
    left.legend()
    right.text(0.0, 0.5, result.written, verticalalignment="center", family="monospace", fontsize=8)
    right.axis("off")
    return drawn


if __name__ == "__main__":
    command(main, draw)
