"""Inverse kinematics: the angles with which an arm of many joints follows a path.

The hand of an arm of n links of lengths l, each turned by an angle q against the one before, is at

    h(q) = sum_i l_i (cos(q_1 + ... + q_i), sin(q_1 + ... + q_i)).

For a place p, damped least squares step by dq = J^T (J J^T + d^2 I)^-1 (p - h(q)), where J is the Jacobian of h: of all
angles that bring the hand there these change least, and the damping keeps steps short where J is nearly singular. The
steps repeat until the hand is there; the arm then goes to the next place on the path. How fast the joints turn follows
from the theorem of the implicit function, dq/dp = J^T (J J^T)^-1, and arms beside each other are lanes of `vmap`.

Source: S. R. Buss, Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least squares
methods, 2009, section 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure

DAMPING = 0.05


class Result(NamedTuple):
    """Hold how the arm moves."""

    path: Array  # shape (places, 2), where the hand shall go
    angles: Array  # shape (places, links)
    joints: Array  # shape (places, links + 1, 2), where all joints are
    largest_error: float  # the greatest distance of the hand from its place


def joints(angles: Any, lengths: Array) -> Any:
    """Return the places of all joints, the foot and the hand included, of shape (links + 1, 2)."""
    places = np.zeros((len(lengths) + 1, 2), like=angles)
    turned = 0.0
    for i, (angle, length) in enumerate(zip(angles, lengths, strict=True)):
        turned += angle
        places[i + 1] = places[i]
        places[i + 1, 0] += length * np.cos(turned)
        places[i + 1, 1] += length * np.sin(turned)
    return places


def hand(angles: Any, lengths: Array) -> Any:
    """Return the place of the hand."""
    return joints(angles, lengths)[-1]


@wg.jit
def reached(angles: Any, place: Any, lengths: Array) -> Any:
    """Return angles that bring the hand to a place, from others by damped least squares."""
    miss = place - hand(angles, lengths)
    while np.sum(miss**2) > 1e-16:
        jacobian = wg.jacobian(hand)(angles, lengths)
        square = jacobian @ jacobian.T + DAMPING**2 * np.eye(2)
        angles = angles + jacobian.T @ np.linalg.solve(square, miss)
        miss = place - hand(angles, lengths)
    return angles


def main(links: int = 6, places: int = 60) -> Result:
    """Follow a figure of eight."""
    lengths = np.full(links, 2.4 / links)
    s = np.linspace(0.0, 2 * np.pi, places)
    path = np.stack([1.2 + 0.5 * np.sin(2 * s), 0.9 * np.sin(s)], axis=1)
    angles = np.empty((places, links))
    previous = np.full(links, 0.3)
    for i, place in enumerate(path):
        angles[i] = previous = reached(previous, place, lengths)
    arms = wg.vmap(joints, in_axes=(0, None))(angles, lengths)
    errors = np.linalg.norm(arms[:, -1] - path, axis=1)
    return Result(path, angles, arms, float(np.max(errors)))


def draw(result: Result) -> object:
    """Draw the path with some of the arms, and all angles."""
    drawn, (left, right) = figure(1, 2)
    left.plot(*result.path.T, "k:", linewidth=1)
    for i in range(0, len(result.path), 6):
        left.plot(*result.joints[i].T, "o-", color="C0", markersize=3, linewidth=1.5, alpha=0.2 + 0.7 * i / 60)
    left.set_aspect("equal")
    right.plot(np.linspace(0.0, 1.0, len(result.angles)), result.angles)
    right.set(xlabel="way along the path", ylabel="angles [rad]")
    return drawn


if __name__ == "__main__":
    command(main, draw)
