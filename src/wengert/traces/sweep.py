"""The reverse sweep from outputs to leaves, plain or recorded itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from wengert.core.diagnostics.numpy_warnings import silence
from wengert.core.values.aval import strong
from wengert.traces.nodes import Node
from wengert.traces.plain_sweep import FOR_GOOD, Sweep
from wengert.traces.recorded_sweep import RecordedSweep
from wengert.traces.tape import Tape


def sweep(
    seeds: Iterable[tuple[Node, Any]],
    *,
    retain: bool = False,
    lift_to: Tape | None = None,
    wanted: Collection[Node] | None = None,
    watch: Callable[[Node, Any], None] | None = None,
    masked: bool = False,
) -> Sweep:
    """Run the vjp of every node that the seeds depend on, each at most once and after all its consumers.

    Args:
        seeds: nodes with the cotangents of their values.
        retain: keep the residuals for another sweep.
        lift_to: the tape that residuals are lifted to, so that the sweep itself is recorded on it.
        wanted: the nodes to stop at and capture; None to sweep to every leaf.
        watch: called with each node and its complete cotangent.
        masked: whether a sweep around this one has passed a mask.

    Returns:
        The finished sweep: `cts` of the leaves it reached (or the wanted nodes), and which of these it owns.

    Raises:
        GraphError: a node's residuals have been released.
    """
    seeds = list(seeds)
    run = Sweep(retain, wanted, watch) if lift_to is None else RecordedSweep(retain, wanted, watch, lift_to)
    if masked:
        run.masked = FOR_GOOD
    if wanted is not None:
        run.restrict([node for node, _ in seeds], wanted)
    for node, ct in seeds:
        if run.path is None or node in run.path:
            run.add(node, strong(ct), False)
    # rules of singular primitives divide by zero where the strong zero then decides
    with silence():
        run.to_the_leaves()
        run.finish()
    return run
