"""Cotangents in flight: what the nodes of a sweep have received so far, and whose memory that is.

Pending nodes wait in a heap of creation numbers, except for the newest where it is known to be: in a chain nothing
else is pending. Cotangents live here, never on nodes or Tensors, so sweeps inside hooks and in other threads do not
meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappush
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.memory.buffers import BORROWED, keep, own
from wengert.core.memory.views import base_and_path, current, share
from wengert.core.primitives.cotangent import match_dtype
from wengert.core.values.tensor import Tensor, make_tensor
from wengert.primitives.indexing.parts import full_of_zeros
from wengert.traces.nodes import Leaf, Node, source_of

MANY = 4096
"""Elements from which on a result that is a window on a given cotangent shares its memory."""


class Cotangents:
    """Hold the cotangents in flight.

    A cotangent that the sweep `owns` shares memory with nothing else, so the next contribution is added in place.
    `newest`, if there is one, has a greater number than every node in the heap, so that it is next; its cotangent is
    `ct`, `owns` tells whether that is owned, and it is not in `cts`.
    `path` holds the nodes that lead to what is `wanted`, None if all that are reached do. Of these `guarded` are wanted
    themselves, or have operands that lead nowhere: they are not pulled in the quick ways, which ask nothing.
    """

    __slots__ = ("captured", "ct", "cts", "guarded", "heap", "newest", "owned", "owns", "path", "wanted")

    def __init__(self, wanted: Collection[Node] | None) -> None:
        self.cts: dict[Node, Any] = {}
        self.owned: set[Node] = set()
        self.heap: list[tuple[int, Node]] = []
        self.newest: Node | None = None
        self.ct: Any = None
        self.owns = False
        self.captured: dict[Node, Any] = {}
        self.wanted = wanted
        self.path: set[Node] | None = None
        self.guarded: set[Node] = set()

    def restrict(self, seeds: Sequence[Node], wanted: Collection[Node]) -> None:
        """Sweep only what leads from seeds to wanted nodes."""
        reached = reached_from(seeds)
        leaves = [node for node in reached if type(node) is Leaf]
        if all(map(wanted.__contains__, leaves)) and len(reached.intersection(wanted)) == len(leaves):
            return
        self.path = path = reached.intersection(wanted)
        for node in sorted(reached, key=number_of):
            leading = [parent in path for parent in node.inputs if parent is not None]
            if any(leading):
                path.add(node)
                if not all(leading):
                    self.guarded.add(node)
        self.guarded.update(node for node in wanted if type(node) is not Leaf)

    def leads(self, node: Node) -> bool:
        """Tell whether what is wanted lies at a node or behind it."""
        return self.path is None or node in self.path

    def is_open(self, node: Node) -> bool:
        """Tell whether a node lies on the way, and nobody asks for its cotangent."""
        known = self.wanted is not None and node in self.wanted
        return node.hooks is None and not known and self.leads(node)

    def begin(self, seeds: Iterable[tuple[Node, Any]]) -> None:
        """Take in the cotangents of the outputs, whose memory is not the sweep's."""
        cts = self.cts
        for node, ct in seeds:
            if ct.dtype is not node.dtype:
                ct = match_dtype(ct, node.dtype)
            if node in cts:
                cts[node] = cts[node] + ct
                self.owned.add(node)
                continue
            cts[node] = ct
            if type(node) is not Leaf:
                self.heap.append((-node.number, node))
        heapify(self.heap)

    def add(self, node: Node, ct: Any, fresh: bool) -> bool:
        """Add a contribution to the cotangent of a node; `fresh` if it shares memory with nothing else.

        Return whether the contribution itself was stored, so that its memory is now the node's.
        """
        if ct.dtype is not node.dtype:
            ct = match_dtype(ct, node.dtype)
        cts = self.cts
        if type(node) is not Leaf:
            newest = self.newest
            if newest is None:
                if not (heap := self.heap) or node.number > -heap[0][0]:
                    self.newest = node
                    self.ct = ct
                    self.owns = fresh
                    return True
            elif node is newest:
                total = self.ct
                if self.owns and type(total) is not Tensor and type(ct) is not Tensor:
                    total += ct
                    self.ct = total
                else:
                    self.ct = total + ct
                    self.owns = True
                return False
            elif node.number > newest.number:
                self.put_back()
                self.newest = node
                self.ct = ct
                self.owns = fresh
                return True
            if node not in cts:
                heappush(self.heap, (-node.number, node))
        if node in cts:
            total = cts[node]
            if node in self.owned and type(total) is not Tensor and type(ct) is not Tensor:
                total += ct
                cts[node] = total
            else:
                cts[node] = total + ct
                self.owned.add(node)
            return False
        cts[node] = ct
        if fresh:
            self.owned.add(node)
        return True

    def put_back(self) -> None:
        """Let the newest node wait with the others."""
        node, self.newest = self.newest, None
        assert node is not None
        self.cts[node] = self.ct
        self.ct = None
        if self.owns:
            self.owned.add(node)
        heappush(self.heap, (-node.number, node))

    def buffer(self, node: Any, like: Any) -> Any:
        """Return an accumulator of a node that may be written to: its present cotangent, or zeros.

        It is a Tensor where `like`, what will be added or where, is one.
        """
        if self.newest is not None and node.number >= self.newest.number:
            self.put_back()
        cts, owned = self.cts, self.owned
        if node not in cts:
            zeros = full_of_zeros if type(like) is Tensor else np.zeros
            cts[node] = zeros(node.shape, node.dtype)
            owned.add(node)
            if type(node) is not Leaf:
                heappush(self.heap, (-node.number, node))
        elif node not in owned or isinstance(cts[node], np.generic):
            cts[node] = own(cts[node])
            owned.add(node)
        ct = cts[node]
        if type(like) is Tensor and type(ct) is not Tensor:
            ct = cts[node] = make_tensor(ct, None, None)
        return ct

    def collect(self, node: Node, ct: Any, _owns: bool) -> None:
        """Put the cotangent of one of several results into the list that its operation's node waits for."""
        source, index = source_of(node), node.given["index"]
        if source not in self.cts:
            self.cts[source] = [None] * (source.primitive.outputs or len(source.out))
            if self.newest is not None:
                self.put_back()
            heappush(self.heap, (-source.number, source))
        collected = self.cts[source]
        known = collected[index]  # a residual that was lifted is another node of the same output
        collected[index] = ct if known is None else known + ct

    def cotangent_of(self, node: Node) -> Any:
        """Return the cotangent that a leaf or wanted node received; None if it got none."""
        ct = self.captured.get(node)
        return self.cts.get(node) if ct is None else ct

    def result(self, node: Node, lenders: Sequence[Any] = ()) -> Any:
        """Return what a leaf or wanted node received, for somebody to keep; None if it got nothing."""
        if node in self.owned and node not in self.captured:  # as most do
            self.owned.discard(node)
            return self.cts[node]
        ct = self.cotangent_of(node)
        return None if ct is None else self.hand_over(node, ct, lenders)

    def hand_over(self, node: Node, ct: Any, lenders: Sequence[Any]) -> Any:
        """Return what a node received for somebody to keep: writes to it reach nobody else.

        It has memory of its own, or shares that of one of the cotangents that the sweep was given, the lenders.
        """
        if node in self.owned and self.cts.get(node) is ct:
            self.owned.discard(node)  # whoever asks again gets a copy
            return ct
        if type(ct) is ndarray and ct.size >= MANY and (shared := share_of(ct, lenders)) is not None:
            return shared
        if type(ct) is Tensor:
            return share(ct)
        return ct if isinstance(ct, np.generic) else own(ct)


def number_of(node: Node) -> int:
    """Return the creation number of a node."""
    return node.number


def reached_from(seeds: Iterable[Node]) -> set[Node]:
    """Return the nodes that seeds depend on, and themselves."""
    reached = set(seeds)
    stack = list(reached)
    while stack:
        for parent in stack.pop().inputs:
            if parent is not None and parent not in reached:
                reached.add(parent)
                if type(parent) is not Leaf:
                    stack.append(parent)
    return reached


def share_of(ct: Any, lenders: Sequence[Any]) -> Tensor | None:
    """Return a cotangent as a share of the memory of a given one if it is a window on that: who writes copies first.

    None if it is not, if it repeats elements, or if the memory is an ndarray that its owner may write to.
    """
    owner = ct if ct.base is None else ct.base
    for lender in lenders:
        if type(lender) is not Tensor or 0 in ct.strides:
            continue
        found = current(lender)
        memory = found._value
        borrowed = found._trace is not None or base_and_path(lender)[0]._kept is BORROWED
        if not borrowed and (memory is owner or (type(memory) is ndarray and memory.base is owner)):
            keep(lender)
            result = make_tensor(ct, None, None)
            result._kept = True
            return result
    return None
