"""What is kept for functions, by what these hold, and found again for others of the same code."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from wengert.control.side_effects import effect_error
from wengert.core.values.tensor import Tensor
from wengert.errors import WengertError
from wengert.support.attributes import function_name
from wengert.support.caches import Recent
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.written_out import LongLoop
from wengert.transforms.outer_values import OutdatedProgram, OuterValues
from wengert.transforms.repeated_walks import RepeatedWalk, code_of

V = TypeVar("V")
R = TypeVar("R")
MOST_WALKS = 4
"""How many walks are tried for functions of the same code, which may capture different objects."""


class Kept(Generic[V]):
    """Hold what was made for some functions, and the key of these; it goes when it is forgotten."""

    def __init__(self, made: V, key: Hashable) -> None:
        self.made, self.key = made, key


class FunctionCache(Generic[V]):
    """Keep what was made of functions, for others that hold the same; what was used least recently goes.

    Args:
        most: how many are kept.
        needs_leaves: tells by options whether derivatives are those by leaves alone, which constants have none of.
    """

    def __init__(self, most: int, needs_leaves: Callable[[Any], bool] = lambda options: False) -> None:
        self.needs_leaves = needs_leaves
        self.known: Recent[Hashable, Kept[V]] = Recent(most)
        self.fixed: Recent[Hashable, bool] = Recent(most)  # keys of functions that look at the floats they hold
        self.walks: Recent[tuple[int | None, Hashable], tuple[tuple[RepeatedWalk, weakref.ref[Kept[V]]], ...]]
        self.walks = Recent(most)

    def run(
        self,
        values: Sequence[Any],
        options: Hashable,
        make: Callable[[OuterValues], V],
        run: Callable[[V, Sequence[Any]], R],
    ) -> R:
        """Return what `run` makes of the program for functions and arguments, and of the floats that these hold.

        Of functions that look at these they are constants, where nothing is lost by that.
        """
        try:
            return self.run_known(values, options, make, run)
        except OutdatedProgram:  # whose functions are the user's, who has rebound their variables since
            self.forget(values, options)
        try:
            return self.run_known(values, options, make, run)
        except OutdatedProgram:
            changing = effect_error(function_name(values[0]), "changes what it captures", "Compute its value")
        raise changing

    def forget(self, values: Sequence[Any], options: Hashable) -> None:
        """Forget what was made for functions and options."""
        self.walks.pop((code_of(values[0]), options), None)
        for lifted in (True, False):
            self.known.pop((OuterValues(values, lifted).key, options), None)

    def run_known(
        self,
        values: Sequence[Any],
        options: Hashable,
        make: Callable[[OuterValues], V],
        run: Callable[[V, Sequence[Any]], R],
    ) -> R:
        """Return what `run` makes of a program that is kept, which may be outdated."""
        outer, found = None, self.walk_again(values, options)
        if found is None:
            outer = OuterValues(values)
            if (outer.key, options) not in self.fixed or self.loses_derivatives(outer.leaves, options):
                found = self.kept_for(outer, options, functools.partial(make, outer)), outer.leaves
        if found is not None:
            kept, leaves = found
            before = refusal_count()
            try:
                result = run(kept.made, leaves)
            except LongLoop:  # whose trace begins anew
                raise
            except (WengertError, TypeError) as error:
                is_own = not isinstance(error, WengertError) and "Tensor" not in str(error)  # of the user's function
                if is_own or not leaves or self.loses_derivatives(leaves, options):
                    raise
                forgive(before)
            else:
                if outer is not None:
                    self.remember(outer, options, kept)
                return result
        self.walks.pop((code_of(values[0]), options), None)
        fixed = OuterValues(values, lifted=False)
        result = run(self.find(fixed, options, lambda: make(fixed)), fixed.leaves)
        self.fixed[OuterValues(values).lasting_key, options] = True
        return result

    def loses_derivatives(self, leaves: Sequence[Any], options: Hashable) -> bool:
        """Tell whether derivatives would be lost if leaves were constants."""
        return self.needs_leaves(options) and any(type(x) is Tensor and x._trace is not None for x in leaves)

    def find(self, outer: OuterValues, options: Hashable, make: Callable[[], V]) -> V:
        """Return what was made for functions and options, made now if there is nothing."""
        return self.kept_for(outer, options, make).made

    def kept_for(self, outer: OuterValues, options: Hashable, make: Callable[[], V]) -> Kept[V]:
        """Return the program that is kept for functions and options, with its key; made now if there is none."""
        if not outer.is_complete:
            return Kept(make(), None)
        found = self.known.get((outer.key, options))
        if found is None:
            key = outer.lasting_key, options
            found = self.known[key] = Kept(make(), key)
        else:
            self.touch(found)
        return found

    def touch(self, kept: Kept[V]) -> None:
        """Say that something was used; there is no need to if few are known."""
        if 2 * len(self.known) > self.known.most:
            self.known.touch(kept.key)

    def walk_again(self, values: Sequence[Any], options: Hashable) -> tuple[Kept[V], Sequence[Any]] | None:
        """Return what is kept for functions of the same code, and what these hold; None if it has to be found."""
        for walk, reference in self.walks.get((code_of(values[0]), options), ()):
            kept = reference()
            leaves = None if kept is None else walk.arguments_in(values)
            if kept is not None and leaves is not None:
                self.touch(kept)
                return kept, leaves
        return None

    def remember(self, outer: OuterValues, options: Hashable, kept: Kept[V]) -> None:
        """Let functions of the same code be found by the same walk."""
        code, walk = code_of(outer.values[0]), outer.as_repeated()
        if code is not None and walk is not None:
            others = [x for x in self.walks.get((code, options), ()) if x[1]() is not None]
            self.walks[code, options] = ((walk, weakref.ref(kept)), *others[: MOST_WALKS - 1])
