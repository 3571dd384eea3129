"""Wengert differentiates Python functions on NumPy arrays."""

import importlib
from typing import TYPE_CHECKING, Any

from wengert.support.collector_pause import LoadingPause

with LoadingPause():
    from wengert import numpy as numpy
    from wengert.core.values.protocols import LATER
    from wengert.core.values.tensor import Tensor
    from wengert.creation import asarray, tensor
    from wengert.native.threads.elementwise import set_num_threads
    from wengert.support import config as _config
    from wengert.support import memory_allocator as _memory_allocator
    from wengert.support.hints import missing_name
    from wengert.traces import members as _members  # noqa: F401 - it gives Tensor the members of the tape API
    from wengert.traces.grad_modes import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        memory_budget,
        no_grad,
        set_grad_enabled,
    )

if TYPE_CHECKING:
    from wengert import autograd as autograd
    from wengert import distributed as distributed
    from wengert import implicit as implicit
    from wengert import optim as optim
    from wengert import tree as tree
    from wengert.control.call import call
    from wengert.control.cond import cond, switch
    from wengert.control.scan import scan
    from wengert.control.while_loop import fori_loop, while_loop
    from wengert.explanation import explain
    from wengert.transforms.checkpointing import checkpoint
    from wengert.transforms.custom_rule import custom_rule
    from wengert.transforms.forward import jvp, taylor
    from wengert.transforms.jacobian import hessian, jacfwd, jacobian, jacrev
    from wengert.transforms.jacobian_products import hvp, linearize
    from wengert.transforms.jit import jit
    from wengert.transforms.reverse import elementwise_grad, grad, stop_gradient, value_and_grad, vjp
    from wengert.transforms.vmap import vmap
    from wengert.visualization import visualize

_memory_allocator.tune()
if _config.OWN_FUNCTIONS:
    from wengert.emission.external_functions import text_of
    from wengert.native.threads.elementwise import SHARING

    SHARING.own = text_of

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
    "memory_budget",
    "no_grad",
    "scan",
    "set_grad_enabled",
    "set_num_threads",
    "stop_gradient",
    "switch",
    "taylor",
    "tensor",
    "value_and_grad",
    "visualize",
    "vjp",
    "vmap",
    "while_loop",
]

# What a program may do without is imported when it is first asked for: a third of the time to import the package.
_REVERSE = ("elementwise_grad", "grad", "stop_gradient", "value_and_grad", "vjp")
_JACOBIAN = ("hessian", "jacfwd", "jacobian", "jacrev")
_JACOBIAN_PRODUCTS = ("hvp", "linearize")
_ON_FIRST_USE = {
    **dict.fromkeys(("cond", "switch"), "wengert.control.cond"),
    **dict.fromkeys(("fori_loop", "while_loop"), "wengert.control.while_loop"),
    **dict.fromkeys(_REVERSE, "wengert.transforms.reverse"),
    **dict.fromkeys(_JACOBIAN, "wengert.transforms.jacobian"),
    **dict.fromkeys(_JACOBIAN_PRODUCTS, "wengert.transforms.jacobian_products"),
    "call": "wengert.control.call",
    "checkpoint": "wengert.transforms.checkpointing",
    "custom_rule": "wengert.transforms.custom_rule",
    "explain": "wengert.explanation",
    "visualize": "wengert.visualization",
    "jit": "wengert.transforms.jit",
    "jvp": "wengert.transforms.forward",
    "scan": "wengert.control.scan",
    "taylor": "wengert.transforms.forward",
    "vmap": "wengert.transforms.vmap",
}
_MODULES = (
    "autograd",
    "distributed",
    "extend",
    "functional",
    "graph",
    "implicit",
    "nn",
    "optim",
    "random",
    "scipy",
    "sparse",
    "testing",
    "tree",
)
LATER |= {
    "scipy.special": "wengert.scipy.special",
    "numpy.fft": "wengert.numpy.fft",
    "numpy.linalg": "wengert.numpy.linalg",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with LoadingPause():
            return importlib.import_module(f"wengert.{name}")
    if name not in _ON_FIRST_USE:
        raise missing_name("wengert", name)
    with LoadingPause():
        module = importlib.import_module(_ON_FIRST_USE[name])
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
