"""NumPy's names in every library, so that a benchmark is written once against `xp`.

Where a library has NumPy's names its own module is taken, so that looking a name up costs what it costs its users.
"""

from __future__ import annotations

import functools
import importlib
from types import SimpleNamespace
from typing import Any

__all__ = ["namespace"]

MODULES = {"wengert": "wengert.numpy", "numpy": "numpy", "autograd": "autograd.numpy", "jax": "jax.numpy"}


@functools.cache
def namespace(library: str) -> Any:
    """Return a library's functions under NumPy's names, as far as the library has them."""
    if library == "torch":
        return torch_namespace()
    if library == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    return importlib.import_module(MODULES[library])


def torch_namespace() -> Any:
    """Return PyTorch's functions under NumPy's names; nearly all are its own, without a wrapper that costs."""
    torch = importlib.import_module("torch")
    functions = {name: found for name in dir(torch) if callable(found := getattr(torch, name))}
    doubles = {name: functools.partial(functions[name], dtype=torch.float64) for name in ("ones", "zeros", "eye")}
    functions |= doubles | {
        "linalg": torch.linalg,
        "fft": torch.fft,
        "asarray": functools.partial(torch.as_tensor, dtype=torch.float64),
        "float32": torch.float32,
        "newaxis": None,
        "copy": torch.clone,
        "astype": torch.Tensor.to,
        "power": torch.pow,
        "max": torch.amax,
        "min": torch.amin,
        "std": functools.partial(torch.std, correction=0),
        "var": functools.partial(torch.var, correction=0),
        "transpose": torch.permute,
        "expand_dims": torch.unsqueeze,
        "split": torch.tensor_split,
        "repeat": torch.repeat_interleave,
        "flip": lambda x, axis: torch.flip(x, (axis,)),
        "pad": lambda x, width: torch.nn.functional.pad(x, (width, width) * x.ndim),
        "sort": lambda x, axis=-1: torch.sort(x, axis).values,
        "take": lambda x, index, axis: torch.index_select(x, axis, index),
        "take_along_axis": torch.take_along_dim,
        "cross": torch.linalg.cross,
    }
    return SimpleNamespace(**functions)
