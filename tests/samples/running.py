"""How tests run over samples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.samples.base import Sample


def over(samples: Sequence[Sample]) -> Callable[[Callable[[Sample], None]], Any]:
    """Run a test over samples, those of a primitive in one: pytest itself takes longer for a test than most samples."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.primitive, []).append(sample)

    def decorated(test: Callable[[Sample], None]) -> Any:
        def run(primitive: str) -> None:
            for sample in groups[primitive]:
                with named(sample):
                    test(sample)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]  # where pytest keeps marks
        return pytest.mark.parametrize("primitive", groups)(run)

    return decorated


@contextlib.contextmanager
def named(sample: Sample) -> Iterator[None]:
    """Let what fails say of which sample."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"sample: {sample.name}")
        raise
