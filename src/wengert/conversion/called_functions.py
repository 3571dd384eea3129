"""`convert`: functions whose control flow follows traced values, and the functions that they call."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Callable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from wengert.control.code_owners import is_library, is_wengerts
from wengert.conversion.function_source import (
    bind_code,
    compile_definition,
    conversion_error,
    definition_of,
    is_converted,
)
from wengert.conversion.numpy_calls import DISPATCHED, called_in_place, method_in_place, traced_among
from wengert.conversion.repeatable_calls import repeatable
from wengert.conversion.statement_rewriting import rewrite
from wengert.conversion.syntax_nodes import moved_parts, names_read, stays_unconverted
from wengert.conversion.traced_numbers import ITERATORS, make_iterating
from wengert.core.containers.container_classes import is_dataclass
from wengert.core.values.protocols import array_function
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.support.attributes import class_attribute, unwrap, with_closure
from wengert.support.caches import WeakIdentityMap
from wengert.support.function_contents import captured_by, content_of, reach
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.whole_number_bounds import not_alike
from wengert.traces.written_out import ROLLING

SUSPENDED = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
BUILTINS: dict[Any, Callable[..., Any]] = {}
"""What is called in place of functions of Python's; `operations` enters them."""


class Runtime:
    """Hold what converted code calls, by name: in a class of the library, in which nobody looks for users' state."""


RUNTIME = Runtime()
"""`operations` enters what it holds, by which functions are therefore converted first."""

_CODES: WeakIdentityMap[CodeType, CodeType] = WeakIdentityMap()


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same, and whose control flow may also follow traced values.

    Where no traced value decides, it does what Python does. The functions of the user that it calls are converted
    when they are called. The result shares globals, defaults and closure cells with the original.

    Args:
        function: a function, method, partial, object with `__call__`, or one that a transformation returned.

    Raises:
        UsageError: its source is not available, or it is a coroutine, or a generator that yields where errors are
            handled.
    """
    if isinstance(function, MethodType):
        return MethodType(convert(function.__func__), function.__self__)
    if isinstance(function, functools.partial):
        args, keywords = convert_arguments(function.func, function.args, function.keywords)
        found = type(function)(convert(function.func), *args, **keywords)
        vars(found).update(vars(function))
        return found
    if not isinstance(function, FunctionType):
        return convert_object(function)
    if is_converted(function.__code__):
        return function
    if is_wengerts(function.__code__):
        return convert_transformed(function)
    return bind_code(function, convert_code(function), RUNTIME, function.__closure__ or ())


def convert_object(function: Any) -> Callable[..., Any]:
    """Return what stands for an object with `__call__`."""
    call = class_attribute(type(function), "__call__")
    if isinstance(call, FunctionType) and not is_wengerts(call.__code__):
        return MethodType(convert(call), function)
    raise conversion_error(
        function,
        f"it is a {type(function).__name__}, whose source is not available",
        "a Python function is needed to convert it",
    )


READERS = frozenset({"eval", "exec", "locals"})
"""Python's functions that read the variables of the function that calls them, which branches and loops share.

Where they stand outside of these they see the same, but `locals`, which also sees what conversion added."""


def convert_code(function: FunctionType) -> CodeType:
    """Return the converted code of a function; remembered as long as the code before lives."""
    code = function.__code__
    found = _CODES.get(code)
    if found is not None:
        return found
    if code.co_flags & SUSPENDED:
        raise conversion_error(function, "it is a coroutine", "an ordinary function is needed to convert it")
    definition = definition_of(function)
    if isinstance(definition, ast.FunctionDef) and stays_unconverted(definition):
        raise conversion_error(function, "it yields inside of `with` or `try`", "a `yield` outside of these is needed")
    readers = set(names_read([definition], READERS)) - {*function.__globals__}
    parts = code.co_qualname.split(".")
    owner = parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""
    converted = rewrite(definition, owner)
    if reader := next(iter(readers & {"locals", *names_read(moved_parts(converted), readers)}), ""):
        given = f"it calls {reader}, which reads variables by their names, in what becomes a function"
        raise conversion_error(function, given, "a decision in a function without that call is needed")
    result = _CODES[code] = compile_definition(converted, code)
    return result


def convert_transformed(function: FunctionType) -> FunctionType:
    """Return a function that a transformation returned, around what it transforms, converted."""
    if not reaches_user(function):
        return function
    cells = function.__closure__ or ()
    contents = map(content_of, cells)
    return with_closure(
        function, [CellType(callee(x)) if is_of_user(x) else cell for x, cell in zip(contents, cells, strict=True)]
    )


def reaches_user(function: Any) -> bool:
    """Tell whether a function is the user's, or one of the library around one."""
    return isinstance(function, FunctionType | MethodType | functools.partial) and is_of_user(function)


def is_of_user(function: Any) -> bool:
    """Tell whether what is there to be called is a function that reaches the user, or an object of the user's."""
    return any(map(is_users_own, reach([function], called_within)))


def is_users_own(function: Any) -> bool:
    """Tell whether what is there to be called is a function of the user's, or an object with one for its calls."""
    if isinstance(function, MethodType | functools.partial | type):
        return False
    call = function if isinstance(function, FunctionType) else class_attribute(type(function), "__call__")
    return isinstance(call, FunctionType) and not is_library(call.__code__)


def called_within(function: Any) -> list[Any]:
    """Return what a function of the library, a method or a partial may call."""
    if isinstance(function, MethodType):
        return [function.__func__]
    if isinstance(function, functools.partial):
        return [function.func, *called_arguments(function)]
    return captured_by(function) if isinstance(function, FunctionType) and is_wengerts(function.__code__) else []


def called_arguments(function: functools.partial[Any]) -> list[Any]:
    """Return the arguments of a partial that it may call: functions, and objects where it calls its parameter."""
    calls = parameters_called(function.func)
    names = unwrap(function.func).__code__.co_varnames if calls else ()
    given = [*zip(names, function.args, strict=False), *function.keywords.items()] if calls else []
    inside = (*function.args, *function.keywords.values())
    functions = [x for x in inside if isinstance(x, FunctionType | MethodType | functools.partial)]
    return [*functions, *(x for name, x in given if name in calls)]


def callee(function: Any) -> Any:
    """Return what is called in place of a function: for one of the user, its converted form."""
    if ROLLING.strict:
        function = repeatable(function)
    kind = type(function)
    if kind is FunctionType:
        return BUILTINS.get(function) or convert_called(function)
    if kind is MethodType:
        inner = convert_called(function.__func__) if type(function.__func__) is FunctionType else function.__func__
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if kind is BuiltinFunctionType or kind is type:
        replaced = BUILTINS.get(function)
        if replaced is not None:
            return replaced
        if type(getattr(function, "__self__", None)) is np.ndarray:
            return method_in_place(function)
        return function if kind is BuiltinFunctionType else constructor(function)
    if issubclass(kind, functools.partial):  # what a transformation returned, too
        return function if is_settled(function) else convert(function)
    if issubclass(kind, DISPATCHED):
        return called_in_place(function)
    if issubclass(kind, np.vectorize):
        return functools.partial(call_vectorized, function)
    call = class_attribute(kind, "__call__")
    if call is type.__call__:  # a class with a metaclass, such as an abstract one
        return constructor(function)
    if type(call) is FunctionType and not is_library(call.__code__):
        inner = convert_called(call)
        return function if inner is call else MethodType(inner, function)
    return function


def call_vectorized(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call what `numpy.vectorize` made; of traced values that of Tensors, with the function that it calls converted."""
    if (traced := traced_among((*args, *kwargs.values()))) is None:
        return function(*args, **kwargs)
    settings = function.otypes, None, function.excluded, function.cache, function.signature
    made = array_function(traced, np.vectorize, (Tensor,), (callee(function.pyfunc), *settings), {})
    return made(*args, **kwargs)


def constructor(kind: type[Any]) -> Callable[..., Any]:
    """Return what makes an instance of a class: for one of the user's, by its `__init__` converted.

    That of a dataclass has no source; its `__post_init__` is converted.
    """
    if class_attribute(kind, "__new__") is not object.__new__:
        return kind
    initialise = class_attribute(kind, "__init__")
    inner = convert_method(initialise)
    if inner is not initialise:

        def construct(*args: Any, **kwargs: Any) -> Any:
            instance = object.__new__(kind)
            inner(instance, *args, **kwargs)
            return instance

        return construct
    finish = class_attribute(kind, "__post_init__") if is_dataclass(kind) and kind.__dictoffset__ else None
    inner_finish = convert_method(finish)
    if inner_finish is finish:
        return kind

    def construct_dataclass(*args: Any, **kwargs: Any) -> Any:
        instance = object.__new__(kind)

        def finish_instance(*variables: Any) -> None:
            del vars(instance)["__post_init__"]
            inner_finish(instance, *variables)

        vars(instance)["__post_init__"] = finish_instance  # which its `__init__` finds first
        initialise(instance, *args, **kwargs)
        return instance

    return construct_dataclass


def convert_method(method: Any) -> Any:
    """Return a method converted, if it is a function of the user's and can be."""
    if type(method) is not FunctionType or is_library(method.__code__):
        return method
    return convert_called(method)


def user_method(kind: type, name: str) -> Any:
    """Return the method of a class converted; None if it has none, or none of the user's."""
    found = class_attribute(kind, name)
    inner = convert_method(found)
    return None if inner is found else inner


def callee_in_for(function: Any) -> Any:
    """Return what is called in place of a function whose result a `for` statement goes through and nobody else has."""
    return make_iterating(function) if type(function) is type and function in ITERATORS else callee(function)


def is_settled(function: functools.partial[Any]) -> bool:
    """Tell whether a partial has nothing to convert."""
    inner = function.func
    return not (isinstance(inner, FunctionType | MethodType) or is_of_user(inner)) or callee(inner) is inner


def convert_called(function: FunctionType) -> Callable[..., Any]:
    """Return a function converted, if it is the user's and can be."""
    code = function.__code__
    if is_converted(code):
        return function
    if code.co_flags & SUSPENDED:
        return as_it_is(function)
    if is_wengerts(code):
        return make_passing(convert_transformed(function))
    if is_library(code):
        return function
    before = refusal_count()
    try:
        return convert(function)
    except UsageError:  # its source is not there: it may not need to be converted
        forgive(before)
        return as_it_is(function)


def as_it_is(function: FunctionType) -> FunctionType:
    """Return a function of the user's that cannot be converted; what it calls is not known."""
    if ROLLING.strict:
        raise not_alike(f"a call of {function.__name__}")
    return function


def make_passing(function: Any) -> Callable[..., Any]:
    """Return a function of the library that gets the user's functions among its arguments converted."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = convert_arguments(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def convert_arguments(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of a function of the library with the user's functions among them converted.

    Objects that can be called may be data as well; they are converted where the function says that it calls them.
    """
    calls = parameters_called(function)
    names = unwrap(function).__code__.co_varnames[: len(args)] if calls else ()

    def pass_argument(name: str | None, value: Any) -> Any:
        return callee(value) if (name in calls and is_of_user(value)) or reaches_user(value) else value

    positional = itertools.starmap(pass_argument, itertools.zip_longest(names, args))
    return tuple(positional), {name: pass_argument(name, x) for name, x in kwargs.items()}


def parameters_called(function: Any) -> frozenset[str]:
    """Return the names of the parameters of a function of the library that it calls, as their annotations say."""
    function = unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or not is_wengerts(code):
        return frozenset()
    kinds = function.__annotations__.items()
    return frozenset(name for name, kind in kinds if str(kind).startswith(("Callable[", "Function")))
