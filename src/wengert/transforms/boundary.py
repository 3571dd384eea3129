"""The boundary of a transformation: what users pass is what they get back.

Inside, every differentiated leaf is a Tensor; outside, floats come back as floats, ndarrays as ndarrays and Tensors
as Tensors, in the containers they came in.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.control.repeated_containers import watch_repeated
from wengert.core.containers.tree_leaves import flatten, place_of
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.diagnostics.source_positions import function_called, is_own
from wengert.core.memory.buffers import lend
from wengert.core.memory.views import current, lasting, share
from wengert.core.primitives.signatures import NONE
from wengert.core.values.aval import aval_of, is_number
from wengert.core.values.dispatch import is_weak, plain_array, weaken
from wengert.core.values.interop import remedy_for, type_shown
from wengert.core.values.tensor import Tensor, Trace, check_dtype, constant_tensor, make_tensor
from wengert.errors import DtypeError, GraphError, UsageError, WengertError, placed
from wengert.support.attributes import attribute, function_name, signature, unwrap
from wengert.traces.transient import Transient

DOUBLE = np.dtype(np.float64)
A_TENSOR = constant_tensor(np.float64(0.0))
"""An example of results that come as Tensors, of whatever type they are."""


def name_of(transformation: str, function: Callable[..., Any]) -> str:
    """Return the name of a transformed function for errors, with the place of its definition.

    A function of the library's own, which users do not know, has the name of what they called.
    """
    owner = attribute(function, "__self__")
    if isinstance(owner, type):  # the class that the user wrote, which may inherit the method: `Function.apply`
        return f"{transformation}({owner.__qualname__}.{function.__name__})"
    inner = unwrap(function)
    name, code = function_name(inner), attribute(inner, "__code__")
    if code is None:
        return f"{transformation}({name})"
    if is_own(code.co_filename) and (called := function_called()):
        return called
    return f'{transformation}({name}, File "{code.co_filename}", line {code.co_firstlineno})'


def resolve_positions(name: str, argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return the positions that `argnums` names, counted from the front."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    wanted = require_positions(name, argnums)
    for position in wanted:
        if not -count <= position < count:
            given = f"argnums={argnums} with {count} positional arguments"
            needed = "positions of arguments that were passed are needed"
            raise UsageError(name, given, needed, "Pass the differentiated arguments by position")
    chosen = tuple(position % count for position in wanted)
    if len(set(chosen)) < len(chosen):
        raise UsageError(name, f"argnums={argnums}", "each position once is needed", "Leave out the repeated one")
    return chosen


def require_positions(name: str, argnums: int | Sequence[int]) -> tuple[int, ...]:
    """Return the positions in `argnums`; a UsageError tells who passed the arguments of the function in their place."""
    if type(argnums) is int:
        return (argnums,)
    wanted = tuple(argnums) if isinstance(argnums, Iterable) and not isinstance(argnums, Tensor) else (argnums,)
    if not all(isinstance(position, int | np.integer) for position in wanted):
        given = f"argnums={argnums!r:.80}"
        action = f"Pass argnums=0 or argnums=(0, 1), for instance; {name}(f) is a function, to be called with arguments"
        raise UsageError(name, given, "the position of an argument, or several of them, is needed", action)
    return wanted


def require_sequences(name: str, primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    """Raise a UsageError unless primals and tangents are sequences with an entry for each argument."""
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, list | tuple):
            needed = "a tuple with an entry for each argument of the function is needed"
            action = f"Write {name}(fun, (x,), (direction,)) for a function of one argument"
            raise UsageError(name, f"{what} of type {type(given).__name__}", needed, action)


class Narrowed:
    """Be a function of chosen arguments of another one alone; the others are as given.

    >>> Narrowed(divmod, (7, 2), [1])(3)
    (2, 1)
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], chosen: Sequence[int], kwargs: Mapping[str, Any] = NONE
    ) -> None:
        self.function = self.__wrapped__ = function
        self.args = args
        self.chosen = chosen
        self.kwargs = kwargs
        self.__qualname__ = function_name(function)

    def __call__(self, *selection: Any) -> Any:
        """Call the function."""
        everything = list(self.args)
        for position, value in zip(self.chosen, selection, strict=True):
            everything[position] = value
        with watch_repeated(self.__qualname__, (self.args, self.kwargs), (everything, self.kwargs)):
            return self.function(*everything, **self.kwargs)


FIXED = "fix it in a lambda around the function"
LEFT_OUT = {"jvp": "give None for its tangent", **dict.fromkeys(("hvp", "linearize", "taylor", "vjp"), FIXED)}
"""How one leaves an argument out of what is differentiated; elsewhere by argnums."""


def differentiable_leaf(name: str, leaf: Any) -> Any:
    """Return a leaf of a differentiated argument as an array, Tensor or number whose dtype has derivatives."""
    if type(leaf) is ndarray and leaf.dtype is DOUBLE:  # as most are
        return leaf
    if type(leaf) is Tensor:
        check_dtype(name, leaf.dtype)
        return leaf
    left_out = LEFT_OUT.get(name, "leave it out of argnums")
    if not isinstance(leaf, np.ndarray | np.generic | numbers.Number) or isinstance(leaf, bool):
        of_user = type(leaf).__module__ != "builtins"
        raise DtypeError(
            name,
            f"an argument of type {type_shown(leaf)}",
            "floats, arrays or Tensors (or containers of them) are needed to differentiate",
            remedy_for(
                leaf,
                f"Make its class a container by wengert.tree.register, or {left_out}"
                if of_user
                else left_out[0].upper() + left_out[1:],
            ),
        )
    if isinstance(leaf, int):
        needed = "a float or complex number is needed to differentiate"
        raise DtypeError(name, f"the integer {leaf}", needed, f"Write {leaf}.0, or {left_out}")
    if isinstance(leaf, np.ndarray):
        leaf = plain_array(name, leaf)
    if not isinstance(leaf, np.ndarray | np.generic) and not is_number(leaf):
        leaf = np.asarray(leaf)[()]
    check_dtype(name, aval_of(leaf).dtype)
    return leaf


def selected_leaves(
    name: str, function: Callable[..., Any], position: int, argument: Any, leaves: list[Any]
) -> list[Any]:
    """Return the leaves of a differentiated argument, each by `differentiable_leaf`; an error says where a leaf is."""
    found: list[Any] = []
    try:
        for leaf in leaves:
            found.append(differentiable_leaf(name, leaf))
    except DtypeError as error:
        if argument is leaf:
            raise
        place = place_of(argument, len(found), parameter_name(function, position))
        found_there = placed(error, place)
        if "." in place:  # an attribute
            text = f"{str(found_there)[:-1]}, or hold it in a dataclass, in a field that is wengert.tree.static()."
            found_there = type(found_there)(text)
        raise found_there from None
    return found


def place_error(
    error: WengertError, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], leaf: Any
) -> WengertError:
    """Return an error about a leaf of the arguments of a function that also says where it stands, if there are more."""
    named = [(parameter_name(function, i), value) for i, value in enumerate(args)]
    for name, value in (*named, *kwargs.items()):
        for i, found in enumerate(flatten(value)[0]):
            if found is leaf and (value is not leaf or len(args) + len(kwargs) > 1):
                return placed(error, place_of(value, i, name))
    return error


def selected_arguments(
    name: str, function: Callable[..., Any], chosen: Sequence[int], arguments: Sequence[Any]
) -> list[Any]:
    """Return the leaves of the chosen arguments, as `selected_leaves` does those of one."""
    return [
        leaf
        for position, argument in zip(chosen, arguments, strict=True)
        for leaf in selected_leaves(name, function, position, argument, flatten(argument)[0])
    ]


def parameter_name(function: Callable[..., Any], position: int) -> str:
    """Return what a function calls an argument; its number where that cannot be known.

    >>> parameter_name(lambda x, y: x, 1), parameter_name(dict, 1)
    ('y', 'argument 1')
    """
    if isinstance(function, Narrowed):
        return parameter_name(function.function, function.chosen[position])
    try:
        found = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"argument {position}"
    fits = position < len(found) and found[position].kind in (
        Parameter.POSITIONAL_ONLY,
        Parameter.POSITIONAL_OR_KEYWORD,
    )
    return found[position].name if fits else f"argument {position}"


def require_argument(name: str, value: Any) -> None:
    """Raise a DtypeError if an argument to be differentiated is None, which has nothing to differentiate."""
    if value is None:
        differentiable_leaf(name, value)


def declare_holomorphic(arguments: Sequence[Any], instead: str) -> str:
    """Return what to do about complex results: what `instead` says where the arguments are real."""
    if any(aval_of(x).dtype.kind == "c" for x in arguments):
        return "Pass holomorphic=True for a complex differentiable function"
    return f"{instead}, or pass complex arguments and holomorphic=True"


def require_complex(name: str, what: str, leaves: Sequence[Any], needed: bool, action: str) -> None:
    """Raise a DtypeError unless all leaves are complex, or all are real if `needed`, which is declared, is false."""
    require_field(name, what, leaves, needed, action, f" with holomorphic={needed}")


def require_real(name: str, what: str, leaves: Sequence[Any], action: str) -> None:
    """Raise a DtypeError unless all leaves are real, where nobody may declare otherwise."""
    require_field(name, what, leaves, False, action, "")


def require_field(name: str, what: str, leaves: Sequence[Any], needed: bool, action: str, declared: str) -> None:
    """Raise a DtypeError unless all leaves are complex, or all are real."""
    for leaf in leaves:
        dtype = aval_of(leaf).dtype
        if (dtype.kind == "c") != needed:
            given = f"{what} of dtype {dtype}{declared}"
            raise DtypeError(name, given, f"a {'complex' if needed else 'real'} one is needed", action)


def inner_value(value: Any) -> Any:
    """Return an array or Tensor as the value that a Tensor one level above may hold."""
    if type(value) is not Tensor:
        return value
    found = lasting(value)
    if found._trace is None:
        inner = lend(found)
        return np.asarray(inner) if hasattr(found, "_array") else inner
    snapshot = make_tensor(found._value, found._trace, found._node)
    snapshot._kept = found._kept = True
    return snapshot


def result_below(value: Any, trace: Trace) -> Any:
    """Return a result as seen one level below a trace."""
    if type(value) is not Tensor:
        return value
    return trace.value_below(alive_result(value, trace))


def alive_result(value: Tensor, trace: Trace) -> Tensor:
    """Return what a Tensor stands for that the function under a trace returned.

    Raises:
        EscapedValueError: it belongs to another transformation, which is over: to a branch, for instance.
    """
    found = current(value)
    if isinstance(found._trace, Transient) and found._trace is not trace:
        found._trace.require_alive((found,))
    return found


def result_example(leaves: Sequence[Any]) -> Any:
    """Return what results should look like, given the differentiated leaves.

    Tensors if any leaf is one; Python numbers if all are; arrays and NumPy scalars otherwise.
    """
    for leaf in leaves:
        if type(leaf) is Tensor:
            return leaf
    if leaves and all(isinstance(leaf, float | complex) and not isinstance(leaf, np.generic) for leaf in leaves):
        return 0.0
    return None


def split_aux(name: str, result: Any) -> tuple[Any, Any]:
    """Split the result of a function with auxiliary output."""
    if not isinstance(result, tuple) or len(result) != 2:
        given = f"has_aux=True and a function that returned a {type(result).__name__}"
        raise UsageError(name, given, "a pair (output, auxiliary) is needed", "Return a tuple of two")
    return result


def as_given(value: Any, example: Any) -> Any:
    """Return a value in the form of an example: Tensor, ndarray, NumPy scalar or Python number.

    What is a Python number by itself stays one.
    """
    if type(value) is ndarray is type(example):
        return value
    if is_number(value) and type(example) is not Tensor:
        return value
    if is_weak(example):
        value = weaken(value)
    if type(value) is Tensor and value._trace is not None:
        return share(value)
    if type(example) is Tensor:
        return share(constant_tensor(value))
    found = value._value if type(value) is Tensor else value
    if example is None:
        return found[()] if isinstance(found, np.ndarray) and found.ndim == 0 else found
    if isinstance(example, np.generic):
        return found[()] if isinstance(found, np.ndarray) else found
    if isinstance(example, np.ndarray):
        return np.asarray(found)
    return found.item() if isinstance(found, np.ndarray | np.generic) and found.ndim == 0 else found


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (*POSITIONAL, inspect.Parameter.KEYWORD_ONLY)


def as_tuple(parameter: str, value: Any, kind: type) -> tuple[Any, ...]:
    """Return one value or several of a type as a tuple."""
    found = tuple(value) if isinstance(value, list | tuple | set | frozenset | range) else (value,)
    if not all(isinstance(item, kind) and not isinstance(item, bool) for item in found):
        needed = "positions of arguments" if kind is int else "names of arguments"
        given = f"{shown(value)} for {parameter}"
        raise UsageError("jit", given, f"{needed} are needed", "Pass one or a tuple of them")
    return found


def static_arguments(
    fun: Callable[..., Any], positions: tuple[int, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the positions and the names of all static arguments, whichever of the two they were given by.

    Raises:
        UsageError: the function has no such argument.
    """
    parameters = parameters_of(fun) if positions or names else None
    if parameters is None:
        return positions, names
    known_positions(fun, "static_argnums", positions)
    named = [p.name for p in parameters if p.kind in NAMED]
    for name in names:
        if name not in named and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            given = f"{name!r} in static_argnames of a function of ({', '.join(named)})"
            raise UsageError("jit", given, "the name of one of its arguments is needed", "Correct it")
    order = [p.name for p in parameters if p.kind in POSITIONAL]
    by_name = [order.index(name) for name in names if name in order]
    by_position = [order[i] for i in positions if 0 <= i < len(order)]
    return tuple(dict.fromkeys([*positions, *by_name])), tuple(dict.fromkeys([*names, *by_position]))


def known_positions(fun: Callable[..., Any], parameter: str, positions: tuple[int, ...]) -> tuple[int, ...]:
    """Return positions of arguments.

    Raises:
        UsageError: the function has no argument at one of them.
    """
    parameters = parameters_of(fun) if positions else None
    if parameters is None or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return positions
    count = sum(p.kind in POSITIONAL for p in parameters)
    for i in positions:
        if not -count <= i < count:
            given = f"{i} in {parameter} of a function of {count} argument{'s'[: count != 1]} by position"
            needed = "the position of one of them, from 0, is needed"
            raise UsageError("jit", given, needed, "Correct it, or name the argument in static_argnames")
    return positions


def reject_static_donations(fun: Callable[..., Any], donated: tuple[int, ...], static: tuple[int, ...]) -> None:
    """Raise a UsageError if an argument is to be donated that is static, whichever end its position counts from."""
    parameters = (parameters_of(fun) if donated and static else None) or ()
    is_open = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    count = 0 if is_open else sum(p.kind in POSITIONAL for p in parameters)
    for i in donated:
        if any(i == k or (count and (i - k) % count == 0) for k in static):
            given = f"argument {i} in donate_argnums, which is static"
            raise UsageError("jit", given, "an argument that holds arrays is needed", "Leave it out of one of them")


def parameters_of(fun: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    """Return the parameters of a function; None where they are not known, as for some that are written in C."""
    try:
        return list(signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def note_refusals(name: str, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a jitted function whose refusals tell of the `jit` of the public function, which its users can reach."""

    def run(*args: Any) -> Any:
        try:
            return compiled(*args)
        except GraphError as error:
            error.add_note(f"{name} traces its functions; with jit=False they are called as they are.")
            raise

    return run
