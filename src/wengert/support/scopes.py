"""Context managers that Ctrl-C leaves neither half entered nor half left.

The interpreter looks for signals where a function of Python begins and behind calls of functions of C, never in the
middle of these. An `__exit__` in Python may so be ended before its first statement, and nobody calls it again; one
that is all C cannot. Nor does another thread run meanwhile, as long as the interpreter has a lock for all: threads that
enter one scope at once rely on it, and a build of Python without it (free-threaded) would need a lock in each.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Self

Restore = Callable[[], Any]
"""A function of C that puts a state back, and changes nothing where that is so already."""


def calling_last(undos: list[Restore]) -> Callable[..., None]:
    """Return a function, all of it C, that takes a turn off the end of a list and calls it, whatever is passed to it.

    `max` asks `key` of None first, and then of the three arguments of an `__exit__`, and each key comes of a call. None
    is greater than the first.

    >>> undos = [*turn(partial(print, "one")), *turn(partial(print, "two"))]
    >>> calling_last(undos)(None, None, None)
    two
    """
    called = map(operator.is_, map(operator.call, iter(undos.pop, None)), repeat(undos))
    return partial(max, None, key=partial(next, called))


def turn(undo: Restore) -> tuple[Restore, Callable[[], bool], Callable[[], bool], Callable[[], bool]]:
    """Return what `calling_last` calls at once, from the last on: nothing three times, and what puts a state back."""
    return undo, bool, bool, bool


def calling_all(undos: Iterable[Restore]) -> Restore:
    """Return a function, all of it C, that calls others once; a list of them may grow until then."""
    return partial(deque, map(operator.call, undos), 0)


def leave(scope: StateScope, *error: object) -> None:
    """Put back what a scope has changed: what `contextlib.ExitStack` calls."""
    scope.__exit__(*error)


class Leaving:
    """Be the `__exit__` of scopes: of each its own function."""

    def __get__(self, scope: StateScope | None, _kind: type[StateScope]) -> Callable[..., None]:
        if scope is None:
            return leave
        if not scope.undos:
            scope.undos += scope.not_entered
        return scope.leave


class StateScope:
    """Change a state while a block runs. A scope may be entered again inside itself.

    Attributes:
        undos: what puts back what was, a turn for each time that it has been entered.
        leave: calls the last of these.
        not_entered: what is called instead where there are none.
    """

    not_entered: ClassVar[tuple[Restore, ...]] = ()

    def __init__(self) -> None:
        self.undos: list[Restore] = []
        self.leave = calling_last(self.undos)

    def undo(self) -> Restore:
        """Return what puts back what is there now."""
        raise NotImplementedError

    def change(self) -> Any:
        """Change it."""

    def __enter__(self) -> Self:
        undo = self.undo()
        try:
            self.undos += (undo, bool, bool, bool)  # a turn
            self.change()
            return self
        except BaseException:  # it has come here, so that the block does not begin, and will not end
            if undo in self.undos:
                self.leave(None, None, None)
            raise

    __exit__ = Leaving()


class Meanwhile(StateScope):
    """Let a context variable have another value while a block runs."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        super().__init__()
        self.variable, self.value = variable, value

    def undo(self) -> Restore:
        """Return what sets the value that it has now."""
        return partial(self.variable.set, self.variable.get())

    def change(self) -> None:
        """Set the other one."""
        self.variable.set(self.value)


class OtherAttributes(StateScope):
    """Let attributes of an object, such as one for each thread, have other values while a block runs."""

    def __init__(self, owner: Any, **values: Any) -> None:
        super().__init__()
        self.owner, self.values = owner, values

    def undo(self) -> Restore:
        """Return what sets the values that they have now."""
        return partial(vars(self.owner).update, {name: getattr(self.owner, name) for name in self.values})

    def change(self) -> None:
        """Set the others."""
        vars(self.owner).update(self.values)
