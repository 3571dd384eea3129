"""What goes wrong in sweeps: graphs swept before, cotangents of a wrong shape, and those that are not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.values.tensor import is_staged, raw
from wengert.errors import GraphError, NumericalError
from wengert.traces.nodes import Node


def released(node: Node) -> GraphError:
    """Return the error about a graph that has been swept before."""
    return GraphError(
        "backward",
        f"a graph whose residuals were released by an earlier sweep (at {node.name}, {node.position}), which may "
        "have ended with an error",
        "a graph that was retained is needed to sweep it again",
        "Pass retain_graph=True to the earlier sweep, or compute the output anew",
    )


def misshapen(node: Node, given: tuple[int, ...], needed: tuple[int, ...]) -> GraphError:
    """Return the error about a vjp that gave a cotangent of the wrong shape."""
    return GraphError(
        node.name,
        f"its vjp gave a cotangent of shape {given}",
        f"the shape {needed} of the operand is needed",
        "Correct the vjp of this primitive",
    )


def check_finite(node: Node, cts: Sequence[Any]) -> None:
    """Raise a NumericalError at the first element of a cotangent that is NaN or infinite."""
    for position, ct in enumerate(cts):
        if ct is None or is_staged(ct):
            continue
        array = np.asarray(raw(ct))
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            element = tuple(map(int, bad[0]))
            raise NumericalError(
                node.name,
                f"the cotangent of operand {position} became {array[element]} at element {element}, "
                f"recorded at {node.position}",
                "finite cotangents are needed while detect_anomaly is on",
                "Look at the values of the operands there",
            )
