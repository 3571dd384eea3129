"""The tape API, with the names PyTorch users know."""

from wengert.traces.backward import backward, grad
from wengert.traces.context import Context
from wengert.traces.function import Function
from wengert.traces.grad_function import GradFunction
from wengert.traces.hooks import RemovableHandle
from wengert.traces.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    saved_tensors_hooks,
    set_grad_enabled,
)
from wengert.traces.once import once_differentiable

__all__ = [
    "Context",
    "Function",
    "GradFunction",
    "RemovableHandle",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "saved_tensors_hooks",
    "set_grad_enabled",
]
