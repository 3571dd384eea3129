"""Linear filters with feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import told_by
from wengert.core.forms.routine import Routine
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply


def evaluate_feedback(a: Any, x: Any) -> Any:
    """Evaluate `feedback`: the y whose convolution with a is x, as far as this goes."""
    from scipy.signal import lfilter

    if a.ndim == 1:
        return lfilter(np.ones(1, a.dtype), a, x)
    stack = np.broadcast_shapes(a.shape[:-1], x.shape[:-1])
    rows, signals = np.broadcast_to(a, (*stack, a.shape[-1])), np.broadcast_to(x, (*stack, x.shape[-1]))
    found = np.empty(signals.shape, np.result_type(a, x))
    for lane in np.ndindex(stack):
        found[lane] = lfilter(np.ones(1, a.dtype), rows[lane], signals[lane])
    return found


def feedback_vjp(ct: Any, out: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Differentiate a * y = x: dy = a^-1 * (dx - da * y); the transpose of the filter runs backwards."""
    back = np.flip(apply(feedback, a, np.flip(ct, -1)), -1)
    length = out.shape[-1]
    lags = [-np.sum(back[..., k:] * out[..., : length - k], axis=-1) for k in range(a.shape[-1])]
    return unbroadcast(np.stack(lags, axis=-1), a.shape), unbroadcast(back, x.shape)


class Filter(Routine):
    """Filter each row, by coefficients whose first one is not 0, as it is in most rows of an identity."""

    def results(self, primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Ask with coefficients of 1."""
        shape, dtype, _ = aval_of(inputs[0])
        return told_by(primitive.strict, [np.ones(shape, dtype), inputs[1]], params)


feedback = opaque("feedback", evaluate_feedback, vjp=feedback_vjp, form=Filter("(k),(n)->(n)"))
