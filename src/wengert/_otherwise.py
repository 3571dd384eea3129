"""What is written here for names of PyTorch and JAX that are not, for errors that say so."""

from collections.abc import Callable, Mapping
from typing import NoReturn

__all__ = ["OTHERWISE", "PARAMETERS", "absent"]


def absent(module: str, otherwise: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module: its error tells what to write for the names of a table.

    >>> absent("wengert.tree", {"all": "all(leaves)"})("all")
    Traceback (most recent call last):
    AttributeError: module 'wengert.tree' has no attribute 'all'; write all(leaves)
    """

    def refuse(name: str) -> NoReturn:
        written = f"; write {otherwise[name]}" if name in otherwise else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{written}")

    return refuse


OTHERWISE = {
    # PyTorch
    "Generator": "wengert.random.key(seed)",
    "bmm": "x @ y",
    "cat": "numpy.concatenate",
    "chunk": "numpy.array_split",
    "clamp": "numpy.clip",
    "cuda": "x itself: there is one device",
    "device": "x itself: there is one device",
    "empty_cache": "nothing: there is one device",
    "from_numpy": "wengert.asarray(array)",
    "func": "wengert.grad, vmap, jvp and others by their names",
    "gather": "numpy.take_along_axis",
    "index_select": "numpy.take",
    "is_tensor": "isinstance(x, wengert.Tensor)",
    "manual_seed": "wengert.random.key(seed): random numbers are functions of keys",
    "masked_select": "x[mask]",
    "mm": "x @ y",
    "multinomial": "wengert.random.categorical, or random.choice",
    "mv": "x @ y",
    "permute": "numpy.transpose",
    "rand": "wengert.random.uniform(key, size=shape)",
    "randint": "wengert.random.integers(key, low, high, size=shape)",
    "randn": "wengert.random.normal(key, size=shape)",
    "randperm": "wengert.random.permutation(key, n)",
    "rsqrt": "1 / numpy.sqrt(x)",
    "scatter": "numpy.put_along_axis",
    "topk": "numpy.sort(x, axis)[..., -k:]",
    "unsqueeze": "numpy.expand_dims(x, axis)",
    "utils": "wengert.checkpoint, and optim.clipped(rule, norm) for clipped gradients",
    # JAX
    "block_until_ready": "nothing: results are there when a call returns",
    "closure_convert": "captured= of wengert.grad",
    "custom_derivatives": "wengert.custom_rule",
    "custom_jvp": "wengert.custom_rule, and .defjvp of what it returns",
    "custom_vjp": "wengert.custom_rule, and .defvjp of what it returns",
    "debug": "has_aux=True, and return what is to be printed",
    "device_get": "numpy.asarray(x)",
    "device_put": "x itself: there is one device",
    "disable_jit": "the function that was jitted, as f.__wrapped__",
    "experimental": "the public names of docs/public-names.md",
    "flatten_util": "wengert.tree.ravel",
    "lax": "wengert.cond, scan, while_loop, fori_loop, switch and stop_gradient by their names",
    "linear_transpose": "wengert.vjp",
    "make_jaxpr": "wengert.graph.trace(f)(x)",
    "named_call": "wengert.call",
    "pmap": "wengert.vmap: there is one device",
    "pure_callback": "a primitive of wengert.extend, which may call anything",
    "remat": "wengert.checkpoint",
    "tree_leaves": "wengert.tree.leaves",
    "tree_map": "wengert.tree.map",
    "tree_structure": "wengert.tree.structure",
    "tree_util": "wengert.tree",
    "xla_computation": "wengert.jit(f).lower(x)",
}
"""What to write, by the name."""

PARAMETERS = {
    "dim": "axis=",
    "dims": "axis=",
    "keepdim": "keepdims=",
    "unbiased": "ddof=1 (True) or ddof=0 (False)",
}
"""Likewise for parameters of functions and methods."""
