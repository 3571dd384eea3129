"""How tests run over samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.cases import OPTIONS, Failures, some_of
from tests.samples.base import Fixed, Sample

__all__ = ["LOOKING", "chosen", "over", "representatives"]

LOOKING = frozenset({"argwhere", "array_equal", "array_equiv", "getitem", "nonzero", "real", "unique", "where"})
"""Primitives that have samples whose results have shapes, or whose calls take ways, that depend on elements."""


def over(
    samples: Sequence[Sample], *, few: bool = False, third: bool = False
) -> Callable[[Callable[[Sample], None]], Any]:
    """Run a test over samples, those of a topic in one.

    Args:
        samples: the samples.
        few: whether one sample for each form of a call is enough, unless pytest is told `--every`.
        third: whether a third of these is enough, another one for each test, unless pytest is told `--every`.
    """
    topics: dict[str, list[Sample]] = {}
    for sample in samples:
        topics.setdefault(sample.topic, []).append(sample)

    def decorated(test: Callable[[Sample], None]) -> Any:
        def run(topic: str) -> None:
            failures = Failures()
            own = chosen(topics[topic], few=few)
            for sample in some_of(own, f"{test.__name__}, {topic}") if third else own:
                with failures.of(sample.name):
                    test(sample)
            failures.tell()

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]  # where pytest keeps marks
        return pytest.mark.parametrize("topic", topics)(run)

    return decorated


def chosen(samples: Sequence[Sample], *, few: bool = False) -> list[Sample]:
    """Return those of some samples that pytest was asked for."""
    named = [s for s in samples if not OPTIONS.primitives or s.primitive in OPTIONS.primitives]
    return representatives(named) if few and not OPTIONS.every else named


def representatives(samples: Sequence[Sample]) -> list[Sample]:
    """Return one sample for each form of a call, the first with elements and axes, if there is one.

    A form is a primitive, the name of a function, types of arguments and names of options.
    """
    found: dict[Any, Sample] = {}
    for sample in sorted(samples, key=lambda s: not has_elements(s.args)):
        name = getattr(sample.function, "__name__", "")
        kinds = frozenset(map(kind_of, sample.args))
        found.setdefault((sample.primitive, name, kinds, frozenset(sample.kwargs)), sample)
    return list(found.values())


def has_elements(arg: Any) -> bool:
    """Tell whether an argument is an array of at least one axis with elements, or holds one."""
    if isinstance(arg, list | tuple):
        return any(map(has_elements, arg))
    return isinstance(arg, np.ndarray) and arg.ndim > 0 and arg.size > 0


def kind_of(arg: Any) -> Any:
    """Return what of an argument decides which way a call takes: no shapes and numbers."""
    if isinstance(arg, Fixed):
        return kind_of(arg.value)
    if isinstance(arg, list | tuple):
        return type(arg), frozenset(map(kind_of, arg))
    return arg.dtype.kind if isinstance(arg, np.ndarray) else type(arg)
