"""The tape API, with the names PyTorch users know."""

from typing import TYPE_CHECKING

from wengert.support.hints import names_on_demand
from wengert.traces.backward import backward, grad
from wengert.traces.grad_modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    saved_tensors_hooks,
    set_grad_enabled,
)
from wengert.traces.hooks import RemovableHandle
from wengert.traces.members import GradFunction
from wengert.traces.rules.context import Context
from wengert.traces.rules.function import Function
from wengert.traces.rules.once_differentiable import once_differentiable

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

if not TYPE_CHECKING:  # checkers know the names
    __getattr__ = names_on_demand("wengert.autograd")
