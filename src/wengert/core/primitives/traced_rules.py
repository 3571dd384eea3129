"""Functions of users that may ask traced values for their truth: these are called in their converted form.

Layers above enter what traces and converts, since rules are called below them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.core.primitives.rule import Rule
from wengert.core.values.tensor import is_staged

CONVERTING: list[Callable[[Rule, Callable[[Rule], Any]], Any]] = []
"""What calls a user's function that may ask traced values for their truth; a layer above enters it."""
TRACING_CALLS: list[Callable[[Any, Sequence[Any], Sequence[Any]], Any]] = []
"""What traces a call of a function with rules to a graph of its values; a layer above enters it."""


def in_form(values: Sequence[Any], function: Rule, run: Callable[[Rule], Any]) -> Any:
    """Return what `run` makes of a user's function; of its converted form where it asks traced values for their truth.

    Where none of the values that it computes with is traced it is called as it is.
    """
    convert = CONVERTING and any(map(is_staged, values))  # the layer above may not have been asked for yet
    return CONVERTING[0](function, run) if convert else run(function)
