"""Truss design: the shape of a bridge that gives least under its load.

A truss is bars between joints. Under loads f its joints move by u until the energy of the stretched bars,

    E(u, s) = sum_bars e (|d_ij(u)| - l_ij)^2 / (2 l_ij) - f^T u,

has a minimum; l_ij are the lengths of the shape s without load, d_ij(u) the vectors between joints that have moved, e
the stiffness of a bar, the same for all. The lower chord is the road, and stays level; the heights of the upper joints
are sought for which the load sinks least, f^T u, at the same length of all bars.

SciPy's root finds the equilibrium; its derivatives follow from dE/du = 0 alone: dE^2/du^2 du = -dE^2/duds ds.

Source: M. P. Bendsoe and O. Sigmund, Topology optimization, 2003, section 1.2 and chapter 4, for trusses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

import wengert as wg
from examples._program import Array, Integers, command, figure
from wengert import optim
from wengert.implicit import custom_root


class Result(NamedTuple):
    """Hold the shapes."""

    heights: Array  # of the upper joints, in panels
    sunk_before: float  # the work of the load on the level truss
    sunk_after: float  # that on the shape that was found
    bars: Integers  # shape (bars, 2), the joints that they connect
    before: Array  # shape (joints, 2), the level truss
    after: Array  # the shape that was found


class Bridge(NamedTuple):
    """Hold what does not change."""

    panels: int
    bars: Integers  # shape (bars, 2)
    free: Integers  # which coordinates of joints move, of those in one row
    load: Array  # on the free coordinates

    def joints(self, heights: Any) -> Any:
        """Return the joints, first along the road and then above it."""
        road = np.stack([np.arange(self.panels + 1.0), np.zeros(self.panels + 1)], axis=1)
        return np.concatenate([road, np.stack([np.arange(1.0, self.panels), heights], axis=1)])

    def lengths(self, joints: Any) -> Any:
        """Return the lengths of the bars."""
        ends = joints[self.bars]
        return np.sqrt(np.sum((ends[:, 1] - ends[:, 0]) ** 2, axis=1))

    def energy(self, u: Any, heights: Any, stiffness: float) -> Any:
        """Return what is least in equilibrium."""
        joints = self.joints(heights)
        moved = joints.ravel() + 0.0
        moved[self.free] += u
        rest, lengths = self.lengths(joints), self.lengths(moved.reshape(-1, 2))
        return np.sum(stiffness * (lengths - rest) ** 2 / (2 * rest)) - self.load @ u


def bridge(panels: int, weight: float) -> Bridge:
    """Return a bridge with a weight on each joint of the road, which rests on its ends; one of them may slide."""
    first, last = panels + 1, 2 * panels - 1  # of the upper joints
    chords = [(i, i + 1) for i in range(panels)] + [(i, i + 1) for i in range(first, last)]
    posts = [(0, first), (panels, last), *((i, panels + i) for i in range(1, panels))]
    braces = [(i + k, panels + i + 1 - k) for i in range(1, panels - 1) for k in (0, 1)]
    free = np.setdiff1d(np.arange(4 * panels), [0, 1, 2 * panels + 1])
    load = np.where((free % 2 == 1) & (free < 2 * panels), -weight, 0.0)
    return Bridge(panels, np.array(chords + posts + braces), free, load)


def equilibrium(truss: Bridge, stiffness: float) -> Any:
    """Return the function from heights to how far the free coordinates move, with its derivatives."""

    def energy(u: Any, heights: Any) -> Any:
        return truss.energy(u, heights, stiffness)

    force, tangent = wg.jit(wg.grad(energy)), wg.jit(wg.hessian(energy))

    @custom_root(wg.grad(energy), like=lambda _heights: truss.load)
    def solve(heights: Array) -> Array:
        found = optimize.root(force, np.zeros(len(truss.free)), args=(heights,), jac=tangent, tol=1e-12)
        assert found.success, found.message
        return np.asarray(found.x)

    return solve


def main(panels: int = 8, weight: float = 0.004, stiffness: float = 1.0) -> Result:
    """Find the heights of a bridge of the same length of bars that gives least."""
    truss = bridge(panels, weight)
    solve, level = equilibrium(truss, stiffness), np.ones(panels - 1)
    allowed, before = np.sum(truss.lengths(truss.joints(level))), float(truss.load @ solve(level))
    length = {"type": "ineq", "fun": lambda heights: allowed - np.sum(truss.lengths(truss.joints(heights)))}

    def work(heights: Any) -> Any:
        return truss.load @ solve(heights) / before

    heights = optim.minimize(work, level, method="SLSQP", bounds=(0.2, 3.0), constraints=[length]).x
    return Result(heights, before, before * work(heights), truss.bars, truss.joints(level), truss.joints(heights))


def draw(result: Result) -> object:
    """Draw the level truss, and what was found."""
    drawn, axes = figure(1, 2)
    for ax, joints, name in zip(axes, (result.before, result.after), ("level", "found"), strict=True):
        for bar in result.bars:
            ax.plot(*joints[bar].T, "k-", lw=1.5)
        ax.set(title=name, aspect="equal", frame_on=False, xticks=[], yticks=[])
    return drawn


if __name__ == "__main__":
    command(main, draw)
