"""Primitives that run graphs, which are among their parameters: branches, loops, calls; and their reverse."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import Rule
from wengert.core.values.aval import Aval
from wengert.support.caches import cached
from wengert.support.records import NamedTuple


class StructuredLowering:
    """Make something of structured operations: each method gets the graphs of one sort, and returns None by default."""

    def call(self, _graph: Any) -> Any:
        """Lower a graph that runs once."""
        return None

    def recomputation(self, _graph: Any) -> Any:
        """Lower a graph that runs once, whose equations are not those of others, equal or not."""
        return None

    def branch(self, _graphs: Sequence[Any]) -> Any:
        """Lower graphs of which an index, the first operand, chooses one."""
        return None

    def zero_rows(self, _depth: int) -> Any:
        """Lower zeros of which nobody knows how many there are, or of how many each consists."""
        return None

    def loop(self, _params: Mapping[str, Any]) -> Any:
        """Lower a loop, of the parameters that `wengert.control.loop` names."""
        return None


class Passed(NamedTuple):
    """Say what sweeps have passed that a pullback is for, or a forward mode, and what was made for those that have not.

    Attributes:
        masked: whether they have passed a mask, forward one that leaves infinite constants beside what moves.
        steep: whether they have passed an infinite partial.
        made: a forward half, and what it gave: it is taken from there if it is the same, as guards mostly need no more.
    """

    masked: bool = False
    steep: bool = False
    made: Any = None


NOTHING_PASSED = Passed()


class Structured(Primitive):
    """Run graphs that are among the parameters: branches, loops, calls.

    Where the operands have elements, the graphs are evaluated on them as they are, so every trace sees the operations
    inside. Where they are being staged there is one equation, and the methods here give those that follow from it.
    There are any number of results, always in a tuple.
    """

    kind = "structured"
    structured = True
    firm = False
    outputs = 0

    def check(self, _inputs: Sequence[Any], _params: Mapping[str, Any]) -> None:
        """Raise an error unless graphs among the parameters fit the operands: they may come from a file."""

    def needs(self, _used: Sequence[bool], _params: Mapping[str, Any]) -> tuple[Sequence[bool], Sequence[bool]] | None:
        """Return which operands and results are needed for those that are used; None if all are."""
        return None

    def trim(
        self, _operands: Sequence[bool], _results: Sequence[bool], _params: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the parameters for the operands and results alone that are needed."""
        raise NotImplementedError

    def rounds(self, _params: Mapping[str, Any]) -> int | None:
        """Return how often each of the graphs runs, at most; None if nobody knows."""
        return 1

    def reach(self, flags: Sequence[bool], params: Mapping[str, Any], smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands; with `smooth`, by other than constant operations."""
        raise NotImplementedError

    def following(
        self, _moves: Sequence[Any], _params: Mapping[str, Any], _followed: Callable[[Any, Sequence[Any]], Any]
    ) -> Sequence[Any] | None:
        """Return how the results follow what a rule carries, linearly or not.

        None if that is not known.

        Args:
            _moves: how the operands do, each a `wengert.traces.rules.linearity.Moves`.
            _params: the parameters of the operation.
            _followed: gives how the outputs of a graph do, from how its inputs do.
        """
        return None

    def tangent(
        self, values: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any], passed: Passed
    ) -> tuple[Sequence[Any], Sequence[Any], Passed]:
        """Return the results and their tangents, None for structural zeros, from those of the operands.

        What was `passed` is as for `push`.
        """
        found, moved, passed = self.push(values, [None if t is None else (t,) for t in tangents], params, None, passed)
        return found, [None if t is None else t[0] for t in moved], passed

    def push(
        self, values: Sequence[Any], parts: Sequence[Any], params: Mapping[str, Any], order: int | None, passed: Passed
    ) -> tuple[Sequence[Any], Sequence[Any], Passed]:
        """Return the results and what belongs to each: a tuple of the coefficients 1 to `order` of its series.

        Where the order is None, forward mode, that is a tuple of its tangent. None stands for zeros. `passed` says
        what may have been passed before, and the last of what is returned, what may have been by now.
        """
        raise NotImplementedError

    def lanes(
        self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Sequence[bool]]:
        """Return the results for all lanes of a batch, and which of them differ between lanes."""
        raise NotImplementedError

    def linearize(
        self, values: Sequence[Any], wanted: Sequence[bool], params: Mapping[str, Any], passed: Passed = NOTHING_PASSED
    ) -> tuple[Sequence[Any], Sequence[bool], Pullback]:
        """Return the results, which of them depend on the wanted operands, and the pullback of the call."""
        raise NotImplementedError


class Pullback(Primitive):
    """Be the reverse of one call of a structured primitive, which holds what it needs of the forward pass.

    Args:
        name: of the structured primitive.
        outputs: the number of its results.
        rule: from cotangents of the results, None for those without, and whether a mask has been passed before, to
            those of the operands.
        masks: whether a sweep that passes it has passed a mask.
        steep: whether it may have passed an infinite partial.
        again: gives the pullback for sweeps that have passed an infinite partial before.
        needed: the results for which a cotangent that is missing, so that zeros stand for it, is like a mask.
    """

    kind = "opaque"

    def __init__(
        self,
        name: str,
        outputs: int,
        rule: Rule,
        *,
        masks: bool,
        steep: bool,
        again: Callable[[], Pullback],
        needed: Sequence[int],
    ) -> None:
        super().__init__(name, rule)
        self.steep = steep
        self.again = again
        self.outputs = outputs
        self.masks = masks
        self.needed = needed
        self.masked = False

    def hides(self, cts: Sequence[Any]) -> bool:
        """Tell whether a cotangent is missing that is needed."""
        return any(cts[i] is None for i in self.needed)

    @cached
    def guarded_primitive(self) -> Primitive:
        """The same for sweeps that have passed a mask."""
        twin = copy.copy(self)
        twin.masked = True
        return twin

    def shielded_primitive(self, masked: bool) -> Primitive:
        """Return the same for sweeps that have passed an infinite partial: of guarded rules, which are made here."""
        pullback = self.again()
        return pullback.guarded_primitive if masked else pullback

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Call the rule with the cotangents of the results, None for those without."""
        found = self.send_back(ct, self.masked)
        return [None if aval is None else c for c, aval in zip(found, avals, strict=True)]

    def send_back(self, cts: Sequence[Any], masked: bool) -> Sequence[Any]:
        """Return the cotangents of all operands, None for those without; `masked` if a mask has been passed before."""
        found: Sequence[Any] = self.evaluate(cts, masked or self.hides(cts))
        return found
