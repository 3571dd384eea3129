"""How tests run over many cases: in one test each, because pytest itself takes longer for a test than most cases.

`pytest --every` runs what is left out otherwise: more cases of what the others have shown to work.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

__all__ = ["OPTIONS", "Failures", "a_third", "some_of", "together"]

Test = Callable[..., None]


@dataclass
class Options:
    """Hold what pytest was asked for.

    Attributes:
        every: whether all cases run, not only those that stand for others.
        primitives: those whose samples run; all, if none is named.
    """

    every: bool = False
    primitives: frozenset[str] = frozenset()


OPTIONS = Options()
"""Set by `conftest.py` before tests are collected."""


class Failures:
    """Collect the failures of cases, so that each is told.

    >>> failures = Failures()
    >>> with failures.of("the first"):
    ...     raise ValueError("no")
    >>> failures.found
    [ValueError('no')]
    """

    def __init__(self) -> None:
        self.found: list[Exception] = []
        self.name = ""

    def of(self, name: str) -> Self:
        """Return the context of a case."""
        self.name = name
        return self

    def __enter__(self) -> None:
        """Begin a case."""

    def __exit__(self, _kind: type | None, error: BaseException | None, _traceback: TracebackType | None) -> bool:
        """End a case; a failure is kept, so that the next one runs."""
        if not isinstance(error, Exception):
            return False
        error.add_note(f"case: {self.name}")
        self.found.append(error)
        return True

    def tell(self) -> None:
        """Raise what was found."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise ExceptionGroup(f"{len(self.found)} cases failed", self.found)


def together(names: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test with each of some values, like `pytest.mark.parametrize`, but in one test.

    Args:
        names: of the parameters, separated by commas.
        cases: their values, a tuple for each case if there are several.
    """
    own = [name.strip() for name in names.split(",")]
    listed = [case if len(own) > 1 else (case,) for case in cases]

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def run(**rest: Any) -> None:
            failures = Failures()
            for case in listed:
                given = dict(zip(own, case, strict=True))
                with failures.of(", ".join(f"{name}={named(value)}" for name, value in given.items())):
                    test(**rest, **given)
            failures.tell()

        signature = inspect.signature(test)
        kept = [p for name, p in signature.parameters.items() if name not in own]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # what pytest looks at
        return run

    return decorated


def some_of(cases: Sequence[Any], seed: str, share: int = 8) -> Sequence[Any]:
    """Return one of `share` cases, others for each seed, or all if pytest is told `--every`."""
    count = len(cases) if OPTIONS.every else -(-len(cases) // share)
    return random.Random(seed).sample(cases, count)


def a_third(count: int) -> int:
    """Return how many of some random programs run: a third of them, or all if pytest is told `--every`."""
    return count if OPTIONS.every else -(-count // 3)


def named(value: Any) -> str:
    """Return a short name of a value."""
    return getattr(value, "__name__", None) or f"{value!r:.80}"
