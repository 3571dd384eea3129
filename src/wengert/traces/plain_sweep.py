"""The reverse sweep: one pass over the recorded nodes, newest first.

Pending nodes wait in a heap of creation numbers, except for the newest where it is known to be: in a chain nothing
else is pending. A node's consumers all have greater numbers, so when it comes up
its cotangent is complete; nothing needs to be collected or sorted beforehand, and nothing recurses. Cotangents live
in the sweep, never on nodes or Tensors, so sweeps inside hooks and in other threads do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy import bool_, ndarray

from wengert.core.diagnostics.source_positions import speaks_for
from wengert.core.memory.buffers import BORROWED, keep, own
from wengert.core.memory.views import base_and_path, current, share
from wengert.core.primitives.cotangent import add_shared, guard, has_finite_square, match_dtype, unbroadcast
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.recording import settings
from wengert.core.values.tensor import Tensor, is_staged, make_tensor, unwrapped
from wengert.native.elementwise import LARGE
from wengert.primitives.arithmetic import passed
from wengert.primitives.indexing.parts import full_of_zeros
from wengert.primitives.selection import guarded
from wengert.traces.nodes import RELEASED, RESULT, LargeResiduals, Leaf, Node, source_of
from wengert.traces.powers_of_roots import (
    are_same,
    path_to_root,
    power_of,
    power_slope,
    root_slope,
    scaled_back,
    square_of,
)
from wengert.traces.steepness import may_be_steep
from wengert.traces.sweep_errors import check_finite, misshapen, released


def behind(seeds: Iterable[Node]) -> set[Node]:
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


MANY = 4096
"""Elements from which on a result that is a window on a given cotangent shares its memory."""
FOR_GOOD = -1
ALL = 0.5
"""Less than the number of every node."""


def _number(node: Node) -> int:
    return node.number


class Sweep:
    """Hold the cotangents in flight.

    A cotangent that the sweep `owns` shares memory with nothing else, so the next contribution is added in place.
    Once it has passed a mask it is `masked` for good: cotangents then hold zeros for elements that were not chosen,
    whose values may be infinite, and every elementwise rule must give zero for these (x log x at 0, say). Once it has
    passed a guard, which is made within a rule, it is masked down to the number of the node where that rule began. It
    is `steep`, and every rule guarded, once a partial may have been infinite: partials of 0 give 0 for that.
    `newest`, if there is one, has a greater number than every node in the heap, so that it is next; its cotangent is
    `ct`, `owns` tells whether that is owned, and it is not in `cts`.
    `path` holds the nodes that lead to what is wanted, None if all that are reached do. Of these `guarded` are wanted
    themselves, or have operands that lead nowhere: they are not pulled by the compact rules, which ask nothing.
    `retained` lists what nodes with `retain_grad` received, for the driver to store once the sweep has succeeded.
    """

    __slots__ = (
        "captured",
        "ct",
        "cts",
        "guarded",
        "heap",
        "masked",
        "newest",
        "owned",
        "owns",
        "path",
        "retain",
        "retained",
        "steep",
        "wanted",
        "watch",
    )

    def __init__(
        self,
        retain: bool,
        wanted: Collection[Node] | None,
        watch: Callable[[Node, Any], None] | None,
    ) -> None:
        self.cts: dict[Node, Any] = {}
        self.owned: set[Node] = set()
        self.heap: list[tuple[int, Node]] = []
        self.newest: Node | None = None
        self.ct: Any = None
        self.owns = False
        self.captured: dict[Node, Any] = {}
        self.retained: list[tuple[Node, Any]] = []
        self.masked: float = 0
        self.steep = False
        self.retain = retain
        self.wanted = wanted
        self.path: set[Node] | None = None
        self.guarded: set[Node] = set()
        self.watch = watch

    def restrict(self, seeds: Sequence[Node], wanted: Collection[Node]) -> None:
        """Sweep only what leads from seeds to wanted nodes."""
        reached = behind(seeds)
        leaves = [node for node in reached if type(node) is Leaf]
        if all(map(wanted.__contains__, leaves)) and len(reached.intersection(wanted)) == len(leaves):
            return
        self.path = path = reached.intersection(wanted)
        for node in sorted(reached, key=_number):
            leading = [parent in path for parent in node.inputs if parent is not None]
            if any(leading):
                path.add(node)
                if not all(leading):
                    self.guarded.add(node)
        self.guarded.update(node for node in wanted if type(node) is not Leaf)

    def add(self, node: Node, ct: Any, fresh: bool) -> bool:
        """Add a contribution to the cotangent of a node; `fresh` if it shares memory with nothing else.

        Return whether the contribution itself was stored, so that its memory is now the node's.
        """
        if ct.dtype is not node.dtype:
            ct = match_dtype(ct, node.dtype)
        newest = self.newest
        if type(node) is not Leaf:
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
        cts = self.cts
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
        if type(node) is not Leaf:
            heappush(self.heap, (-node.number, node))
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
        cts = self.cts
        if node in self.owned and type(like) is not Tensor and type(cts[node]) is ndarray:
            return cts[node]
        if node is not self.newest and node not in cts:
            zeros = full_of_zeros if type(like) is Tensor else np.zeros
            self.add(node, zeros(node.shape, node.dtype), True)
        if node is self.newest:
            self.put_back()
        if node not in self.owned or isinstance(cts[node], np.generic):
            cts[node] = own(cts[node])
            self.owned.add(node)
        if type(like) is Tensor and type(cts[node]) is not Tensor:
            cts[node] = make_tensor(cts[node], None, None)
        return cts[node]

    def to_the_leaves(self) -> None:
        """Run the pending nodes, newest first, until only leaves are left."""
        heap, cts, owned = self.heap, self.cts, self.owned
        plainly = self.watch is None and not settings().anomaly
        guarded = self.guarded or None
        pulls = self.pulls
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
            primitive = node.primitive
            if plainly and node.hooks is None and (guarded is None or node not in guarded):
                pulls[primitive.sweeps_as](self, node, ct, owns)
                continue
            if node.hooks is not None:
                ct, owns = self.hooked(node, ct), False
            if self.watch is not None:
                self.watch(node, ct)
            if self.wanted is not None and node in self.wanted:
                self.captured[node], owns = ct, False
            if primitive is RESULT:
                self.collect(node, ct, owns)
            else:
                self.pull(node, ct, owns)

    def finish(self) -> None:
        """Pass the complete cotangents of leaves through their hooks, newest first."""
        if self.masks:
            self.mark(self.cts)
            self.mark(self.captured)
        leaves = self.cts if self.watch is not None else [node for node in self.cts if node.hooks is not None]
        for leaf in sorted(leaves, key=_number, reverse=True) if leaves else ():
            if leaf.hooks is not None:
                self.cts[leaf] = self.hooked(leaf, self.cts[leaf])
                self.owned.discard(leaf)
            if self.watch is not None:
                self.watch(leaf, self.cts[leaf])

    @property
    def masks(self) -> bool:
        """Whether it has passed a mask."""
        return self.masked == FOR_GOOD

    def mark(self, cts: dict[Node, Any]) -> None:
        """Let sweeps of what this one gives know that it has passed a mask; graphs have the guards that tell."""
        for node, ct in cts.items():
            if type(ct) is Tensor and ct._trace is not None and not is_staged(ct):
                cts[node] = guard(ct, 1.0, 1.0, masked=True)

    def received(self, node: Node) -> Any:
        """Return the cotangent that a leaf or wanted node received; None if it got none."""
        ct = self.captured.get(node)
        return self.cts.get(node) if ct is None else ct

    def result(self, node: Node, given: Sequence[Any] = ()) -> Any:
        """Return what a leaf or wanted node received, for somebody to keep; None if it got nothing."""
        if node in self.owned and node not in self.captured:  # as most do
            self.owned.discard(node)
            return self.cts[node]
        ct = self.received(node)
        return None if ct is None else self.handed_over(node, ct, given)

    def handed_over(self, node: Node, ct: Any, given: Sequence[Any]) -> Any:
        """Return what a node received for somebody to keep: writes to it reach nobody else.

        It has memory of its own, or shares that of one of the cotangents that were given.
        """
        if node in self.owned and self.cts.get(node) is ct:
            self.owned.discard(node)  # whoever asks again gets a copy
            return ct
        if type(ct) is ndarray and ct.size >= MANY and (shared := share_of(ct, given)) is not None:
            return shared
        if type(ct) is Tensor:
            return share(ct)
        return ct if isinstance(ct, np.generic) else own(ct)

    def hooked(self, node: Node, ct: Any) -> Any:
        """Pass a complete cotangent through the hooks of its value."""
        hooks = node.hooks
        assert hooks is not None
        if type(ct) is list:  # an operation with several results: the hooks are on those
            return ct
        ct = hooks.replace_ct(node, ct)
        if hooks.retains:
            self.retained.append((node, ct))
        return ct

    def residuals(self, node: Node) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands of a node as its rule shall have them."""
        return node.residuals()

    @speaks_for("node")
    def pull_unary(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rule of an elementwise operation on one operand."""
        saved, out, parent = node.saved, node.out, node.inputs[0]
        if type(saved) is not tuple:
            self.pull_other(node, ct, owns)
            return
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        primitive = node.primitive if not self.masked else self.protected(node)
        c = primitive.rules[0](ct, out, saved[0])
        self.add(parent, c, c is not ct)  # type: ignore[arg-type]  # it is there

    @speaks_for("node")
    def pull_binary(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of an elementwise operation on two operands.

        The left one comes last: it may then have the cotangent's memory, which halves the traffic of large arrays.
        """
        saved, out, primitive = node.saved, node.out, node.primitive
        if type(saved) is not tuple:
            self.pull_other(node, ct, owns)
            return
        x, y = saved
        left, parent = node.inputs
        if parent is left and is_rooted(parent) and self.goes_past(node, ct):
            self.leave(node)
            return
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if type(ct) is Tensor:
            x, y = as_number(x, left), as_number(y, parent)
        if primitive.masks:
            self.masked = FOR_GOOD
        elif self.masked:
            primitive = self.protected(node)
        left_rule, right_rule = primitive.rules
        if parent is not None and right_rule is not None:
            c = ct if right_rule is passed else right_rule(ct, out, x, y)
            if c.shape != parent.shape:
                c = unbroadcast(c, parent.shape)
            if self.add(parent, c, c is not ct) and c is ct:
                owns = False
        if left is None or left_rule is None:
            return
        if (
            owns
            and primitive.overwrite is not None
            and type(ct) is ndarray
            and type(y) is not Tensor
            and node.shape == left.shape
        ):
            c = primitive.overwrite(ct, y, ct)
        else:
            c = ct if left_rule is passed else left_rule(ct, out, x, y)
            if c.shape != left.shape:
                c = unbroadcast(c, left.shape)
            owns = owns or c is not ct
        if self.newest is None and c.dtype is left.dtype and type(left) is not Leaf and not self.heap:
            self.newest = left  # what `add` would do in a chain; its call takes a twelfth of the sweep
            self.ct = c
            self.owns = owns
        else:
            self.add(left, c, owns)

    def leave(self, node: Node) -> None:
        """Let the residuals of a node go that has been swept, unless the graph is retained."""
        if not self.retain:
            node.release()

    def protected(self, node: Node) -> Any:
        """Return the primitive of a node with the guards that its rules need behind what has been passed."""
        if node.number <= self.masked:
            return node.primitive
        return node.primitive.shielded(self.masks) if self.steep else node.primitive.guarded

    def notice(self, c: Any, ct: Any, out: Any) -> None:
        """Remember that a partial may have been infinite, if the cotangent that a rule gave shows it."""
        if self.steep or has_finite_square(c._value if type(c) is Tensor else c):
            return
        if may_be_steep(ct, c, out):
            self.turn_steep()

    def turn_steep(self) -> None:
        """Guard every rule from now on."""
        self.steep = True
        if not self.masks:
            self.masked = ALL

    @speaks_for("node")
    def pull_curved(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of a power or root, past what it was made of if that is the other, and look how steep it is.

        The rule of a literal power of at least 1 needs no guard.
        """
        saved, out, parent, primitive = node.saved, node.out, node.inputs[0], node.primitive
        if type(saved) is not tuple:
            self.pull_other(node, ct, owns)
            return
        exponent: float = 2 if primitive.raises else 0
        if len(saved) > 1:
            exponent = saved[1]
            if (
                parent is None
                or node.inputs[1] is not None
                or (type(exponent) is not int and type(exponent) is not float)
            ):
                self.leave(node)
                self.pull_rules(node, self.protected(node) if self.masked else primitive, ct, out, saved)
                return
        assert parent is not None
        below = parent.primitive
        near = below is not None and (below.raises if primitive.degree else below.square or below.scales)
        past = near and (primitive.degree or primitive.raises) and self.goes_past(node, ct)
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if past:
            return
        if self.masked:
            primitive = self.protected(node)
        c = None
        tame, traced = exponent >= 1, Tensor in (type(ct), type(saved[0]), type(out))
        if not (self.masked and primitive.raises) and (tame or not traced):
            c = primitive.declared[0](ct, out, *saved)
        if c is None or not (tame or has_finite_square(c)):
            c = primitive.rules[0](ct, out, *saved)
            if not tame:
                self.notice(c, ct, out)
        self.add(parent, c, c is not ct)

    @speaks_for("node")
    def pull_other(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of any elementwise operation, such as one recorded in the general way, with traced values."""
        saved, inputs, primitive, out = node.saved, node.inputs, node.primitive, node.out
        if type(saved) is LargeResiduals:
            self.pull_large(node, ct, owns)
            return
        if not isinstance(saved, tuple):
            self.pull(node, ct, owns)
            return
        near = primitive.raises or primitive.degree or inputs[0] is inputs[-1]
        past = near and self.goes_past(node, ct)
        self.leave(node)
        if past:
            return
        if self.masked:
            primitive = self.protected(node)
        if self.masked >= 0 and (primitive.masks or has_mask(saved)):
            self.masked = FOR_GOOD
        self.pull_rules(node, primitive, ct, out, saved)

    def pull_rules(self, node: Node, primitive: Any, ct: Any, out: Any, operands: Sequence[Any]) -> None:
        """Run the rules of an elementwise operation, and look whether partials are infinite."""
        steep, params = primitive.steep and primitive.is_steep(operands), node.params
        for rule, parent in zip(primitive.rules, node.inputs, strict=True):
            if parent is not None and rule is not None:
                c = ct if rule is passed else rule(ct, out, *operands, **params)
                if steep:
                    self.notice(c, ct, out)
                self.add_summed(node, parent, c, c is not ct)

    def add_summed(self, _node: Node, parent: Node, c: Any, fresh: bool) -> None:
        """Add a contribution, summed over the axes along which an operand was broadcast."""
        self.add(parent, c if c.shape == parent.shape else unbroadcast(c, parent.shape), fresh)

    @speaks_for("node")
    def pull_linear(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the transposes of a linear operation."""
        saved, inputs, primitive = node.saved, node.inputs, node.primitive
        if type(saved) is not tuple and not isinstance(saved, tuple):
            self.pull(node, ct, owns)
            return
        if not self.retain:
            node.saved = RELEASED
        params = node.given if type(node.given) is dict else node.params
        parent = inputs[0]
        if len(inputs) == 1 and primitive.sweeps_as == "linear" and not primitive.variadic and parent is not None:
            c = primitive.transposes[0](ct, parent, **params)
            if type(c) is Tensor:
                c = current(c)
            if c.shape != parent.shape:
                raise misshapen(node, c.shape, parent.shape)
            self.add(parent, c, primitive.fresh)
            return
        if self.pull_in_place(node, inputs, ct, owns, saved):
            return
        if self.masked >= 0 and (primitive.masks or has_mask(saved)):
            self.masked = FOR_GOOD
        self.hand_out(node, inputs, primitive.vjp(ct, None, saved, inputs, params), ct, fresh=primitive.fresh)

    @speaks_for("node")
    def pull_part(self, node: Node, ct: Any, owns: bool) -> None:
        """Add the cotangent of a part to that of the whole."""
        saved = node.saved
        if type(saved) is not tuple or type(ct) is Tensor or ct.size >= LARGE:
            self.pull_linear(node, ct, owns)
            return
        if not self.retain:
            node.saved = RELEASED
        buffer = self.buffer(node.inputs[0], ct)
        if len(saved) == 1:
            buffer[node.given] += ct
            return
        arrays = saved[1:]
        if self.masked >= 0 and has_mask(arrays):
            self.masked = FOR_GOOD
        node.primitive.accumulate(buffer, ct, *arrays, index=node.given)

    @speaks_for("node")
    def pull_write(self, node: Node, ct: Any, owns: bool) -> None:
        """Split the cotangent of an array into those of what it was and of the part written, in its own memory."""
        if type(node.saved) is not tuple or len(node.saved) > 2 or type(ct) is Tensor:
            self.pull_linear(node, ct, owns)
            return
        if not self.retain:
            node.saved = RELEASED
        left, right = node.inputs
        index = node.given
        if right is not None:
            part = ct[index]
            if part.shape != right.shape:
                part = unbroadcast(part, right.shape)
            self.add(right, part.copy() if type(part) is ndarray else part, True)
        if left is not None:
            if not owns or type(ct) is not ndarray:
                ct = own(ct)
            ct[index] = 0.0
            self.add(left, ct, True)

    @speaks_for("node")
    def pull_whole(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the vjp of an operation that is not taken apart into rules."""
        out, saved, inputs, primitive = node.out, node.saved, node.inputs, node.primitive
        if type(saved) is not tuple and not isinstance(saved, tuple):
            self.pull(node, ct, owns)
            return
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if self.masked:
            primitive = self.protected(node)
        if self.masked >= 0 and (primitive.masks or has_mask(saved) or (type(ct) is list and primitive.hides(ct))):
            self.masked = FOR_GOOD
        self.hand_out(node, inputs, primitive.vjp(ct, out, saved, inputs, node.given), ct, fresh=primitive.fresh)

    def goes_past(self, node: Node, ct: Any) -> bool:
        """Hand a cotangent past a kink, if a node is a power of a root or a root of a power, and tell whether it is."""
        if self.watch is not None:
            return False
        if node.primitive.degree:
            return self.goes_past_power(node, ct)
        exponent = power_of(node)
        path = path_to_root(node.inputs[0], self.is_open) if exponent else ()
        if not path:
            return False
        ct = power_slope(ct, exponent, self.residuals(node)[1][0])
        for scaling, further in pairwise(path):
            ct, beside = scaled_back(scaling, further, ct, self.residuals(scaling))
            if beside is not None and self.leads(beside[0]):
                self.add(*beside, fresh=False)
        root = path[-1]
        square: Any = square_of(root.primitive, root.params)
        if self.masked and node.number > self.masked:
            square = square.shielded(self.masks) if self.steep else square.guarded
        wanted = [p if p is not None and self.leads(p) else None for p in root.inputs]
        out, inputs = self.residuals(root)
        self.hand_out(root, wanted, square.vjp(ct, out, inputs, wanted, root.params), ct, fresh=False)
        return True

    def goes_past_power(self, node: Node, ct: Any) -> bool:
        """Hand the cotangent of a root of a power to what was raised."""
        exponent, degree = 1.0, node.primitive.degree
        power, raised = None, node.inputs[0]
        while raised is not None and raised.primitive not in (None, RESULT) and not raised.released:
            further = power_of(raised) if self.is_open(raised) else 0.0
            if not further:
                break
            exponent *= further
            power, raised = raised, raised.inputs[0]
        if power is None or raised is None or exponent % degree or node.dtype.kind != "f" or not self.leads(raised):
            return False
        c = root_slope(ct, degree, exponent, self.residuals(power)[1][0])
        self.add(raised, c, c is not ct)
        return True

    def leads(self, node: Node) -> bool:
        """Tell whether what is wanted lies at a node or behind it."""
        return self.path is None or node in self.path

    def is_open(self, node: Node) -> bool:
        """Tell whether a node lies on the way, and nobody asks for its cotangent."""
        known = self.wanted is not None and node in self.wanted
        return node.hooks is None and not known and self.leads(node)

    @speaks_for("node")
    def pull_large(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of an elementwise operation on large operands: as Tensors, whose operations are shared."""
        if node.released:
            raise released(node)
        out, operands = node.residuals()
        primitive = node.primitive
        if self.goes_past(node, ct):
            self.leave(node)
            return
        if primitive.masks:
            self.masked = FOR_GOOD
        elif self.masked:
            primitive = self.protected(node)
        for position in reversed(range(len(operands))):
            parent, rule = node.inputs[position], primitive.rules[position]
            if parent is None or rule is None:
                continue
            if position == 0 and owns and overwritable(node, primitive, ct, operands):
                c = primitive.overwrite_large(ct, operands[1], ct)
            else:
                c = unwrapped(rule(*map(wrapped, (ct, out, *operands))))
                if primitive.steep and primitive.is_steep(operands):
                    self.notice(c, ct, out)
                if c.shape != parent.shape:
                    c = unbroadcast(c, parent.shape)
            fresh = c is not ct or (position == 0 and owns)
            if self.add_large(parent, c, fresh) and c is ct:
                owns = False
        if not self.retain:
            node.release()

    def add_large(self, node: Node, ct: Any, fresh: bool) -> bool:
        """Add a large contribution to the cotangent of a node, as `add` does, on several threads."""
        if node is self.newest:
            self.put_back()
        total = self.cts.get(node)
        if type(total) is not ndarray or type(ct) is not ndarray or total.size < LARGE or ct.dtype is not total.dtype:
            return self.add(node, ct, fresh)
        self.cts[node] = add_shared(total, ct, total if node in self.owned else None)
        self.owned.add(node)
        return False

    @speaks_for("node")
    def pull(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the vjp of any operation, unless nothing wanted lies behind it."""
        path = self.path
        parents = [p if p is not None and (path is None or p in path) else None for p in node.inputs]
        if not any(p is not None for p in parents):
            return
        if node.released:
            raise released(node)
        if node.hooks is not None:
            ct = node.hooks.replace_before(ct)
        if ct is not None:
            self.pull_parents(node, parents, ct, owns)
        if not self.retain:
            node.release()

    def pull_parents(self, node: Node, parents: Sequence[Node | None], ct: Any, owns: bool) -> None:
        """Run the vjp of an operation for the operands that want a cotangent."""
        primitive = node.primitive
        out, operands = self.residuals(node)
        hooked = node.hooks is not None and bool(node.hooks.after)
        if not hooked and self.goes_past(node, ct):
            return
        if primitive.kind == "linear" and not hooked and self.pull_in_place(node, parents, ct, owns, operands):
            return
        if self.masked:
            primitive = self.protected(node)
        if self.masked >= 0 and (primitive.masks or has_mask(operands) or (type(ct) is list and primitive.hides(ct))):
            self.masked = FOR_GOOD
        cts = primitive.vjp(ct, out, operands, parents, node.params)
        if primitive.steep and primitive.kind == "elementwise" and primitive.is_steep(operands):
            for c in cts:
                if c is not None:
                    self.notice(c, ct, out)
        if hooked:
            assert node.hooks is not None
            cts = node.hooks.replace_after(cts, ct)
        if settings().anomaly:
            check_finite(node, cts)
        self.hand_out(node, parents, cts, ct, fresh=primitive.fresh and not hooked)

    def pull_in_place(
        self, node: Node, parents: Sequence[Node | None], ct: Any, owns: bool, operands: Sequence[Any]
    ) -> bool:
        """Run the vjp of a linear operation in memory that the sweep owns, and tell whether the operation has such."""
        primitive, params = node.primitive, node.params
        if primitive.accumulate is None and primitive.consume is None:
            if primitive is guarded:
                self.mask_rule(node)
            return False
        constants = operands[len(primitive.transposes) :]
        traced = ct
        if constants:
            if self.masked >= 0 and has_mask(constants):
                self.masked = FOR_GOOD
            traced = next((x for x in constants if type(x) is Tensor), ct)  # an index that differs between lanes
        first = parents[0]
        if primitive.accumulate is not None and first is not None:
            primitive.accumulate(self.buffer(first, traced), ct, *constants, **params)
            return True
        if primitive.consume is None:
            return False
        if not owns or isinstance(ct, np.generic):
            ct = own(ct)
        if type(traced) is Tensor and type(ct) is not Tensor:
            ct = make_tensor(ct, None, None)
        cts = primitive.consume(ct, parents, *constants, **params)
        if settings().anomaly:
            check_finite(node, cts)
        self.hand_out(node, parents, cts, ct, fresh=True)
        return True

    def mask_rule(self, node: Node) -> None:
        """Guard the rules of what made the result that a guard has passed: the operations since its tangent was made.

        Before these, values were finite where the guard acts, and singular operations have guards of their own. But
        if the sweep that made the guard had passed a mask, they need not be, and this one has passed it as well.
        """
        tangent = node.inputs[2]
        if "steep" in node.params:
            self.turn_steep()
        if tangent is None or node.params.get("masked"):
            self.masked = FOR_GOOD
        elif self.masked >= 0:
            self.masked = min(self.masked or tangent.number, tangent.number)

    def hand_out(self, node: Node, parents: Sequence[Node | None], cts: Sequence[Any], ct: Any, *, fresh: bool) -> None:
        """Hand the cotangents of an operation's operands to their nodes."""
        own = fresh and node.primitive.kind == "linear"
        for parent, c in zip(parents, cts, strict=True):
            if parent is not None and c is not None:
                found = current(c) if type(c) is Tensor else c  # in place of a view what it stands for
                if found.shape != parent.shape:
                    raise misshapen(node, found.shape, parent.shape)
                self.add(parent, found, own or (fresh and c is not ct))

    @speaks_for("node")
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

    pulls: ClassVar[dict[str, Callable[..., None]]] = {
        "unary": pull_unary,
        "binary": pull_binary,
        "curved": pull_curved,
        "rules": pull_other,
        "linear": pull_linear,
        "part": pull_part,
        "write": pull_write,
        "whole": pull_whole,
        "result": collect,
    }
    """How a node without hooks is pulled, by what its primitive says."""


def is_rooted(node: Node | None) -> bool:
    """Tell whether a value may be a root, or a multiple of one, that is multiplied by itself."""
    below = None if node is None else node.primitive
    return below is not None and bool(below.square or (below.scales and not are_same(node.inputs)))  # type: ignore[union-attr]  # it is there


def overwritable(node: Node, primitive: Elementwise, ct: Any, operands: Sequence[Any]) -> bool:
    """Tell whether the cotangent of an operation's left operand may take the memory of a cotangent the sweep owns."""
    parent = node.inputs[0]
    return (
        primitive.overwrite is not None
        and parent is not None
        and parent.shape == node.shape
        and type(ct) is ndarray
        and type(operands[1]) is not Tensor
    )


def as_number(value: Any, node: Node | None) -> Any:
    """Return a constant without axes as the number it was given as: with these, Tensors take the compact path."""
    return value.item() if node is None and type(value) is ndarray and not value.ndim else value


def wrapped(value: Any) -> Any:
    """Return an array as a Tensor, and everything else as it is."""
    return make_tensor(value, None, None) if type(value) is ndarray else value


def has_mask(residuals: Sequence[Any]) -> bool:
    """Tell whether some residual is an array of booleans, or one of them."""
    for x in residuals:
        kind = type(x)
        if kind is ndarray or kind is Tensor:
            if x.dtype.kind == "b":
                return True
        elif kind is bool or kind is bool_:
            return True
    return False


def share_of(ct: Any, given: Sequence[Any]) -> Tensor | None:
    """Return a cotangent as a share of the memory of a given one if it is a window on that: who writes copies first.

    None if it is not, if it repeats elements, or if the memory is an ndarray that its owner may write to.
    """
    owner = ct if ct.base is None else ct.base
    for lender in given:
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
