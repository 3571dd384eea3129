"""What is written here for names of PyTorch and JAX that are not, for errors that say so."""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NoReturn, TypeVar

from wengert.support.attributes import attribute, function_name, unwrapped

__all__ = ["OTHERWISE", "PARAMETERS", "Otherwise", "absent", "lacking", "said_of", "telling", "unexpected"]

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def said_of(name: str, otherwise: Mapping[str, str]) -> str:
    """Return what errors say about a name that a module has not: what to write by a table, or where it is.

    >>> said_of("remat", OTHERWISE), said_of("relu", OTHERWISE), said_of("nothing", {})
    ('; write wengert.checkpoint', '; it is wengert.nn.functional.relu', '')
    """
    from wengert._places import PLACES

    if name in otherwise:  # first: `save` is numpy's, too
        return f"; write {otherwise[name]}"
    places = (f"; it is wengert.{module}.{name}" for module, names in PLACES.items() if name in names.split())
    return next(places, "")


def absent(module: str, otherwise: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module: its error tells what to write for the names of a table, and of others.

    >>> absent("wengert.tree", {"all": "all(leaves)"})("all")
    Traceback (most recent call last):
    AttributeError: module 'wengert.tree' has no attribute 'all'; write all(leaves)
    """

    def refuse(name: str) -> NoReturn:
        raise AttributeError(f"module {module!r} has no attribute {name!r}{said_of(name, {**OTHERWISE, **otherwise})}")

    return refuse


def telling(**otherwise: str) -> Callable[[F], F]:
    """Let errors about parameters that a function has elsewhere, but not here, tell what to write.

    Those that it does have are left out of the table, which is looked at when Python has refused a call: to look
    before would take a third of the time of this frame. Functions that take any parameter are asked before.

    >>> telling(axis_name="in_axes=")(lambda x: x)(1, axis_name="i")
    Traceback (most recent call last):
    TypeError: <lambda>() got an unexpected keyword argument 'axis_name'; write in_axes=
    >>> telling(jac="nothing: it is derived")(lambda **options: options)(jac=True)
    Traceback (most recent call last):
    TypeError: <lambda>() got an unexpected keyword argument 'jac'; write nothing: it is derived
    """

    def tells(function: F) -> F:
        table = otherwise.keys() - parameters_of(function)
        takes_any = bool(getattr(code_of(function), "co_flags", 0) & inspect.CO_VARKEYWORDS)

        def refused(kwargs: Mapping[str, Any]) -> TypeError:
            name = next(name for name in kwargs if name in table)
            return unexpected(function_name(function, "__name__"), name, otherwise)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if takes_any and not table.isdisjoint(kwargs):
                raise refused(kwargs)
            try:
                return function(*args, **kwargs) if kwargs else function(*args)  # lest a dictionary is made
            except TypeError:
                if table.isdisjoint(kwargs):
                    raise
                raise refused(kwargs) from None

        return call  # type: ignore[return-value]  # it has the type of the function

    return tells


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, without what `inspect.signature` takes for the rest."""
    code = code_of(function)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the code of what decorators have wrapped; None where it is in C."""
    found: CodeType | None = attribute(unwrapped(function), "__code__")
    return found


def unexpected(label: str, name: str, otherwise: Mapping[str, str]) -> TypeError:
    """Return Python's error about a parameter that a function has not, which tells what to write if a table knows.

    >>> unexpected("Tensor.sum", "dim", {"dim": "axis="})
    TypeError("Tensor.sum() got an unexpected keyword argument 'dim'; write axis=")
    """
    written = f"; write {otherwise[name]}" if name in otherwise else ""
    return TypeError(f"{label}() got an unexpected keyword argument {name!r}{written}")


class Otherwise:
    """Be a name that objects of a class have not, which says how the same is written; for `hasattr` it is not there."""

    def __init__(self, owner: str, name: str, written: str) -> None:
        self.text = f"{owner!r} object has no attribute {name!r}; write {written}"
        self.__doc__ = f"Not here: write {written}."

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Raise an AttributeError for an object."""
        if instance is None:
            return self
        raise AttributeError(self.text)


def lacking(**otherwise: str) -> Callable[[C], C]:
    """Let objects of a class tell what to write for names that they have not.

    >>> lacking(savefig="picture.save(name)")(type("Picture", (), {}))().savefig
    Traceback (most recent call last):
    AttributeError: 'Picture' object has no attribute 'savefig'; write picture.save(name)
    """

    def tells(kind: C) -> C:
        for name, written in otherwise.items():
            setattr(kind, name, Otherwise(kind.__name__, name, written))
        return kind

    return tells


OTHERWISE = {
    # PyTorch
    "Generator": "wengert.random.key(seed)",
    "as_tensor": "wengert.asarray(data)",
    "bmm": "x @ y",
    "cat": "numpy.concatenate",
    "chunk": "numpy.array_split",
    "clamp": "numpy.clip",
    "DataLoader": "slices of arrays: x[i:i + 32]",
    "Module": "a class of your own, with its Tensors as attributes",
    "Parameter": "wengert.tensor(data, requires_grad=True)",
    "cuda": "x itself: there is one device",
    "device": "x itself: there is one device",
    "empty_cache": "nothing: there is one device",
    "from_numpy": "wengert.asarray(array)",
    "func": "wengert.grad, vmap, jvp and others by their names",
    "gather": "numpy.take_along_axis",
    "gradcheck": "wengert.testing.check_grads(f, x)",
    "index_select": "numpy.take",
    "init": "wengert.tensor(numbers, requires_grad=True), with numbers of numpy.random or wengert.random",
    "is_tensor": "isinstance(x, wengert.Tensor)",
    "load": "wengert.optim.load(file)",
    "manual_seed": "wengert.random.key(seed): random numbers are functions of keys",
    "masked_select": "x[mask]",
    "mm": "x @ y",
    "multinomial": "wengert.random.categorical, or random.choice",
    "mv": "x @ y",
    "permute": "numpy.transpose",
    "rand": "wengert.random.uniform(key, size=shape)",
    "rand_like": "wengert.random.uniform(key, size=x.shape)",
    "randint": "wengert.random.integers(key, low, high, size=shape)",
    "randn": "wengert.random.normal(key, size=shape)",
    "randn_like": "wengert.random.normal(key, size=x.shape)",
    "randperm": "wengert.random.permutation(key, n)",
    "rsqrt": "1 / numpy.sqrt(x)",
    "save": "wengert.optim.save(file, containers)",
    "scatter": "numpy.put_along_axis",
    "set_default_dtype": "dtype= where arrays are made",
    "topk": "numpy.sort(x, axis)[..., -k:]",
    "unsqueeze": "numpy.expand_dims(x, axis)",
    "utils": "wengert.checkpoint, optim.clipped(rule, norm) for clipped gradients, slices x[i:i + 32] for batches",
    "amp": "x.astype(np.float32) where less precision will do",
    "autocast": "x.astype(np.float32) where less precision will do",
    "compile": "wengert.jit(f)",
    "distributions": "wengert.scipy.stats",
    "export": "wengert.graph.save(wengert.graph.trace(f)(x), path)",
    "functional_call": "a function whose argument the parameters are",
    "fx": "wengert.graph.trace(f)(x)",
    "grad_and_value": "wengert.value_and_grad, which gives the value first",
    "onnx": "wengert.graph.save(wengert.graph.trace(f)(x), path)",
    "script": "wengert.jit(f)",
    "tensor_split": "numpy.array_split",
    "vhp": "wengert.hvp(f, (x,), (v,))",
    "Size": "tuple",
    # JAX
    "associative_scan": "wengert.scan, or numpy.cumsum and the like",
    "block_until_ready": "nothing: results are there when a call returns",
    "closure_convert": "captured= of wengert.grad",
    "config": "nothing: numbers are float64 as NumPy's are; switches are variables of the environment",
    "custom_derivatives": "wengert.custom_rule",
    "custom_gradient": "wengert.custom_rule, and .defvjp of what it returns",
    "custom_jvp": "wengert.custom_rule, and .defjvp of what it returns",
    "custom_linear_solve": "wengert.custom_rule, or numpy.linalg.solve",
    "custom_root": "a step of Newton's method from what the solver found, or wengert.custom_rule",
    "custom_vjp": "wengert.custom_rule, and .defvjp of what it returns",
    "debug": "has_aux=True, and return what is to be printed",
    "debug_nans": "wengert.autograd.detect_anomaly()",
    "device_get": "numpy.asarray(x)",
    "device_put": "x itself: there is one device",
    "devices": "nothing: there is one device",
    "disable_jit": "the function that was jitted, as f.__wrapped__",
    "eval_shape": "wengert.graph.trace(f)(x).outputs",
    "experimental": "the public names of docs/public-names.md",
    "flatten_util": "wengert.tree.ravel",
    "initializers": "numbers of numpy.random or wengert.random, scaled as you need them",
    "jet": "wengert.taylor",
    "jnp": "numpy itself, or wengert.numpy for arrays that can be written to",
    "lax": "wengert.cond, scan, while_loop, fori_loop, switch and stop_gradient by their names",
    "linear_transpose": "wengert.vjp",
    "make_jaxpr": "wengert.graph.trace(f)(x)",
    "map": "wengert.vmap(f)(xs), or wengert.tree.map",
    "named_call": "wengert.call",
    "named_scope": "wengert.call",
    "pmap": "wengert.vmap: there is one device",
    "pure_callback": "a primitive of wengert.extend, which may call anything",
    "ops": "numpy.add.at(sums, segments, x) for segment_sum, numpy.maximum.at for segment_max",
    "remat": "wengert.checkpoint",
    "segment_max": "numpy.maximum.at(found, segments, x)",
    "segment_min": "numpy.minimum.at(found, segments, x)",
    "segment_sum": "numpy.bincount(segments, weights=x), or numpy.add.at(sums, segments, x)",
    "tree_leaves": "wengert.tree.leaves",
    "tree_map": "wengert.tree.map",
    "tree_structure": "wengert.tree.structure",
    "tree_util": "wengert.tree",
    "xla_computation": "wengert.jit(f).lower(x)",
    "Array": "wengert.Tensor",
    "ShapeDtypeStruct": "numpy.empty(shape, dtype)",
    "clear_caches": "wengert cache clear, on the command line",
    "profiler": "wengert.jit(f).lower(x).profile()",
    # autograd
    "defjvp": "wengert.custom_rule, and .defjvp of what it returns",
    "defvjp": "wengert.custom_rule, and .defvjp of what it returns",
    "egrad": "wengert.elementwise_grad",
    "hessian_vector_product": "wengert.hvp(f, (x,), (v,))",
    "holomorphic_grad": "wengert.grad(f, holomorphic=True)",
    "make_jvp": "wengert.jvp(f, (x,), (v,))",
    "make_vjp": "wengert.vjp(f, x), which gives the value first",
    "multigrad_dict": "wengert.grad(f) of a dictionary, the first argument",
    "primitive": "wengert.custom_rule",
    "defjvps": "wengert.custom_rule, and .defjvp of what it returns",
    "deriv": "wengert.elementwise_grad",
    # other libraries and lessons
    "GradientTape": "wengert.grad(f), or .backward() of Tensors that require grad",
    "Dual": "wengert.jvp(f, (x,), (direction,))",
    "Tape": "wengert.grad(f), or .backward() of Tensors that require grad",
    "Variable": "wengert.tensor(data, requires_grad=True)",
    "curl": "wengert.jacobian(f), and differences of its elements",
    "derivative": "wengert.grad, or wengert.elementwise_grad of arrays",
    "diff": "wengert.grad of functions, numpy.diff of samples",
    "divergence": "numpy.trace(wengert.jacobian(f)(x))",
    "gradient": "wengert.grad of functions, numpy.gradient of samples",
    "gradients": "wengert.grad",
    "laplacian": "numpy.trace(wengert.hessian(f)(x))",
    "function": "wengert.jit(f)",
}
"""What to write, by the name."""

PARAMETERS = {
    "correction": "ddof=",
    "dim": "axis=",
    "dims": "axis=",
    "keepdim": "keepdims=",
    "unbiased": "ddof=1 (True) or ddof=0 (False)",
    "as_tuple": "nothing: there is an array of indices for each axis",
    "end_dim": "x.reshape(shape) for x.flatten",
    "start_dim": "x.reshape(*x.shape[:start_dim], -1) for x.flatten",
}
"""Likewise for PyTorch's parameters of functions and methods."""
