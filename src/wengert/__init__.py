"""Wengert differentiates Python functions on NumPy arrays."""

import importlib
from typing import Any

from wengert import _malloc
from wengert import autograd as autograd
from wengert import numpy as numpy
from wengert.control import call, cond, fori_loop, scan, switch, while_loop
from wengert.core.tensor import Tensor
from wengert.creation import asarray, tensor
from wengert.explain import explain
from wengert.traces import members as _members  # noqa: F401 - it gives Tensor the members of the tape API
from wengert.traces.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from wengert.transforms.batching import vmap
from wengert.transforms.checkpointing import checkpoint
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.forward import jvp
from wengert.transforms.jacobian import hessian, hvp, jacfwd, jacobian, jacrev, linearize
from wengert.transforms.jit import jit
from wengert.transforms.reverse import elementwise_grad, grad, stop_gradient, value_and_grad, vjp
from wengert.transforms.taylor import taylor

_malloc.tune()

__version__ = "0.1.0"
__all__ = [
    "Tensor",
    "asarray",
    "call",
    "checkpoint",
    "cond",
    "custom_rule",
    "elementwise_grad",
    "enable_grad",
    "explain",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "inference_mode",
    "is_grad_enabled",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "no_grad",
    "scan",
    "set_grad_enabled",
    "stop_gradient",
    "switch",
    "taylor",
    "tensor",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    """Import a module that few programs need when it is first asked for."""
    if name in ("extend", "graph", "testing"):
        return importlib.import_module(f"wengert.{name}")
    raise AttributeError(f"module 'wengert' has no attribute {name!r}")
