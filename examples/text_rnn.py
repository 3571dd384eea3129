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

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import entropy

import wengert as wg
from examples._methods import trained
from examples._program import DATA, Array, Integers, command, figure
from wengert import optim, random
from wengert.nn import functional
from wengert.scipy.special import expit

LENGTH = 40  # how many letters are read in a row


class Result(NamedTuple):
    """Hold what was learned."""

    losses: Array  # shape (iterations,), in bits for each letter
    single: float  # the entropy of letters
    pairs: float  # the entropy of letters, given the one before
    bits: float  # the loss in the end, a mean of the last ten
    written: str  # what the network writes


def started(key: Any, letters: int, hidden: int) -> dict[str, Any]:
    """Return parameters to begin with."""
    keys = random.split(key, 3)
    return {
        "input": random.normal(keys[0], 0.0, 1.0, (letters, 3 * hidden)),
        "state": random.normal(keys[1], 0.0, hidden**-0.5, (hidden, 3 * hidden)),
        "bias": np.zeros(3 * hidden),
        "output": (random.normal(keys[2], 0.0, hidden**-0.5, (letters, hidden)), np.zeros(letters)),
    }


def unit(parameters: dict[str, Any], h: Any, letter: Any) -> Any:
    """Return the next state; letters are integers of shape (...), and states have shape (..., hidden)."""
    of_letter = parameters["input"][letter] + parameters["bias"]
    hidden = h.shape[-1]
    gates = expit(of_letter[..., : 2 * hidden] + h @ parameters["state"][:, : 2 * hidden])
    z, r = gates[..., :hidden], gates[..., hidden:]
    n = np.tanh(of_letter[..., 2 * hidden :] + (r * h) @ parameters["state"][:, 2 * hidden :])
    return h + z * (n - h)


def loss(parameters: dict[str, Any], rows: Integers) -> Any:
    """Return the bits for each letter of rows of a text, of shape (rows, LENGTH + 1)."""

    def step(h: Any, letters: Any) -> tuple[Any, Any]:
        now, after = letters
        h = unit(parameters, h, now)
        return h, functional.cross_entropy(functional.linear(h, *parameters["output"]), after)

    h = np.zeros((len(rows), len(parameters["state"])))
    return np.mean(wg.scan(step, h, (rows.T[:-1], rows.T[1:]))[1]) / np.log(2)


def write(parameters: dict[str, Any], key: Any, first: Any, count: int) -> Any:
    """Return letters that follow one another by the network's probabilities, sharpened a little."""

    def step(state: Any, key: Any) -> Any:
        h, letter = state
        h = unit(parameters, h, letter)
        letter = random.categorical(key, 1.5 * functional.linear(h, *parameters["output"]))
        return (h, letter), letter

    h = np.zeros(len(parameters["state"]))
    return wg.scan(step, (h, first), random.split(key, count))[1]


def main(hidden: int = 48, rows: int = 16, iterations: int = 200, seed: int = 0) -> Result:
    """Learn the rhyme, and write two hundred letters."""
    rhyme = (DATA / "jack.txt").read_text()
    alphabet = "".join(sorted(set(rhyme)))
    text = np.array([alphabet.index(letter) for letter in rhyme])
    counts = np.zeros((len(alphabet), len(alphabet)))
    np.add.at(counts, (text[:-1], text[1:]), 1)
    single, both = entropy(counts.sum(axis=0), base=2), entropy(counts.ravel(), base=2)
    key, other = random.split(random.key(seed))
    rule = optim.clipped(optim.adam(optim.cosine(0.01, iterations)), 1.0)
    begin = np.random.default_rng(seed).integers(0, len(text) - LENGTH, (iterations, rows, 1))
    batches = ((text[places],) for places in begin + np.arange(LENGTH + 1))
    parameters, losses = trained(loss, started(key, len(alphabet), hidden), rule, batches)
    letters = wg.jit(write, static_argnums=3)(parameters, other, text[0], 200)
    written = alphabet[text[0]] + "".join(alphabet[i] for i in letters)
    return Result(losses, float(single), float(both - single), float(np.mean(losses[-10:])), written)


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
