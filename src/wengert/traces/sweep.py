"""The reverse sweep: one pass over the recorded nodes, newest first.

A node's consumers all have greater numbers, so when it comes up its cotangent is complete; nothing needs to be
collected or sorted beforehand, and nothing recurses. What a node sends back is said by its primitive (`pulls`). A sweep
that is itself recorded is the same one with a `Lifting`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from heapq import heappop
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import silently
from wengert.core.diagnostics.source_positions import speaks_for
from wengert.core.values.aval import strong
from wengert.core.values.recording import ANOMALY
from wengert.traces.cotangents import number_of
from wengert.traces.guarded_cotangents import FOR_GOOD
from wengert.traces.lifting import Lifting
from wengert.traces.nodes import RESULT, Node
from wengert.traces.pulls import PulledCotangents
from wengert.traces.tape import Tape


class Sweep(PulledCotangents):
    """Carry cotangents from outputs to leaves.

    `retained` lists what nodes with `retain_grad` received, for the driver to store once the sweep has succeeded.

    Args:
        retain: whether to keep the residuals for another sweep.
        wanted: the nodes to stop at and capture; None to sweep to every leaf.
        watch: called with each node and its complete cotangent.
        lifting: what makes residuals Tensors again, where the sweep is recorded itself.
    """

    __slots__ = ("retained",)

    def __init__(
        self,
        retain: bool,
        wanted: Collection[Node] | None,
        watch: Callable[[Node, Any], None] | None,
        lifting: Lifting | None = None,
    ) -> None:
        super().__init__(wanted)
        self.retained: list[tuple[Node, Any]] = []
        self.masked = 0
        self.steep = self.untaken = False
        self.retain = retain
        self.watch = watch
        self.lifting = lifting

    def complete(self) -> None:
        """Run all pending nodes."""
        try:
            self.to_the_leaves()
        finally:
            if self.lifting is not None:
                self.lifting.fall_silent()
        self.finish()

    @speaks_for("node")
    def to_the_leaves(self) -> None:
        """Run the pending nodes, newest first, until only leaves are left."""
        heap, cts, owned, lifting = self.heap, self.cts, self.owned, self.lifting
        plainly = self.watch is None and not ANOMALY.get()
        guarded = self.guarded or None
        pulls = self.short_pulls if lifting is None else self.pulls
        while True:
            newest = self.newest
            if newest is not None:
                node, ct, owns = newest, self.ct, self.owns
                self.newest = self.ct = None
            elif heap:
                node = heappop(heap)[1]
                ct = cts.pop(node)
                owns = node in owned
            else:
                return
            if plainly and node.hooks is None and (guarded is None or node not in guarded):
                pull = pulls[node.primitive.sweeps_as]
            else:
                if lifting is not None:
                    lifting.fall_silent()
                ct, owns = self.show(node, ct, owns)
                pull = Sweep.collect if node.primitive is RESULT else Sweep.pull
            if lifting is not None:
                lifting.speak_for(node)
            try:
                pull(self, node, ct, owns)
            except np.linalg.LinAlgError as error:
                say_whose(error, node)
                raise

    def show(self, node: Node, ct: Any, owns: bool) -> tuple[Any, bool]:
        """Show a complete cotangent to hooks and who asks for it; return what goes on, and whether that is owned."""
        if node.hooks is not None:
            ct, owns = self.apply_hooks(node, ct), False
        if self.watch is not None:
            self.watch(node, ct)
        if self.wanted is not None and node in self.wanted:
            self.captured[node], owns = ct, False
        return ct, owns

    def apply_hooks(self, node: Node, ct: Any) -> Any:
        """Pass a complete cotangent through the hooks of its value."""
        hooks = node.hooks
        assert hooks is not None
        if type(ct) is list:  # an operation with several results: the hooks are on those
            return ct
        ct = hooks.replace_ct(node, ct)
        if hooks.retains:
            self.retained.append((node, ct))
        return ct

    def finish(self) -> None:
        """Pass the complete cotangents of leaves through their hooks, newest first."""
        if self.masks:
            self.mark(self.cts)
            self.mark(self.captured)
        leaves = self.cts if self.watch is not None else [node for node in self.cts if node.hooks is not None]
        for leaf in sorted(leaves, key=number_of, reverse=True) if leaves else ():
            if leaf.hooks is not None:
                self.cts[leaf] = self.apply_hooks(leaf, self.cts[leaf])
                self.owned.discard(leaf)
            if self.watch is not None:
                self.watch(leaf, self.cts[leaf])


def say_whose(error: Exception, node: Node) -> None:
    """Add to an error of NumPy's of which operation's derivative it was raised."""
    if not getattr(error, "__notes__", ()):
        error.add_note(f"This was raised by the derivative of {node.primitive.name}, which stands at {node.position}")


def sweep(
    seeds: Iterable[tuple[Node, Any]],
    *,
    retain: bool = False,
    lift_to: Tape | None = None,
    wanted: Collection[Node] | None = None,
    watch: Callable[[Node, Any], None] | None = None,
    masked: bool = False,
    steep: bool = False,
) -> Sweep:
    """Run the vjp of every node that the seeds depend on, each at most once and after all its consumers.

    Args:
        seeds: nodes with the cotangents of their values.
        retain: keep the residuals for another sweep.
        lift_to: the tape that residuals are lifted to, so that the sweep itself is recorded on it.
        wanted: the nodes to stop at and capture; None to sweep to every leaf.
        watch: called with each node and its complete cotangent.
        masked: whether a sweep around this one has passed a mask.
        steep: whether it has passed an infinite partial.

    Returns:
        The finished sweep: `cts` of the leaves it reached (or the wanted nodes), and which of these it owns.

    Raises:
        GraphError: a node's residuals have been released.
    """
    seeds = list(seeds)
    run = Sweep(retain, wanted, watch, None if lift_to is None else Lifting(lift_to))
    if masked:
        run.masked = FOR_GOOD
    if steep:
        run.turn_steep()
    if wanted is not None:
        run.restrict([node for node, _ in seeds], wanted)
    run.begin([(node, strong(ct)) for node, ct in seeds if run.leads(node)])
    # rules of singular primitives divide by zero where the strong zero then decides
    silently(run.complete)
    return run
