"""`wengert graph` and `wengert profile`: a function of a module as a picture of its graph, and what its parts take."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.cli.commands import unusable
from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.diagnostics.source_positions import is_own
from wengert.core.graph.graph import Graph
from wengert.errors import UsageError, WengertError
from wengert.pictures.picture import Picture
from wengert.transforms.jit import jit
from wengert.transforms.reverse import grad
from wengert.transforms.tracing import trace

if TYPE_CHECKING:
    from wengert.compile.profiling import Profile
    from wengert.distributed.profiles import PassProfile

SHAPE = re.compile(r"\s*([a-z]+[0-9]*)?\s*[\[(]?([\d,\s]*)[\])]?\s*")
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)
UNREADABLE = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)


def graph_of(name: str, shapes: Sequence[str], gradient: bool) -> Graph:
    """Return the graph of a function, or of its gradient by all its arguments.

    It is named `module:function` or `file.py:function`; the shapes are what each argument is like.
    """
    function, examples = function_and_examples(name, shapes, gradient)
    with report_failures(name):
        return trace(function)(*examples)


def profile_of(name: str, shapes: Sequence[str], gradient: bool, calls: int) -> Profile | PassProfile:
    """Return how long the parts of a function take on random numbers; the arguments are those of `graph_of`.

    Of a sum over partitions, what workers spend on a pass.
    """
    from wengert.distributed.totals import Total  # graphs need none of it

    function, examples = function_and_examples(name, shapes, gradient)
    generator = np.random.default_rng(0)
    arguments = map_leaves(lambda x: random_like(x, generator), examples)
    with report_failures(name):
        if isinstance(function, Total):
            for _ in range(calls):
                function(*arguments)
            return function.profile
        lowered = jit(function).lower(*arguments)
    return lowered.profile(calls)


@contextmanager
def report_failures(name: str) -> Iterator[None]:
    """Tell of what the user's function raises meanwhile by one line, as of other errors."""
    try:
        yield
    except WengertError:
        raise
    except FAILURES as error:
        calls = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_own(frame.filename)]
        place = f" (File {calls[-1].filename!r}, line {calls[-1].lineno})" if calls else ""
        raise unusable(
            f"{name!r:.80}, which raised {type(error).__name__}: {error}{place}",
            "a function of arrays of these shapes is needed",
            "Correct it, or --shapes",
        ) from error


def random_like(x: Any, generator: np.random.Generator) -> Any:
    """Return numbers between 0.5 and 1.5 like an array of ones; whole numbers are left as they are."""
    return generator.uniform(0.5, 1.5, x.shape).astype(x.dtype)[()] if x.dtype.kind in "fc" else np.array(x)


def function_and_examples(name: str, shapes: Sequence[str], gradient: bool) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function, or its gradient by all its arguments, and ones that are like them."""
    function = function_of(name)
    examples = [example(shape) for shape in shapes]
    require_arguments(name, function, examples)
    return grad(function, argnums=tuple(range(len(examples)))) if gradient else function, examples


def function_of(name: str) -> Callable[..., Any]:
    """Return the function that `module:function` names; the present folder is looked in first."""
    module, sign, path = name.partition(":") if not name.endswith(".py") else (name, "", "")
    if not sign or not module or not path:
        raise unusable(
            f"{name!r:.80}",
            "a module and a function in it are needed",
            "Write package.module:function or file.py:function",
        )
    found: Any = module_of(module)
    for part in path.split("."):
        if not hasattr(found, part):
            raise unusable(
                f"{name!r:.80}, where {module} has no {path}", "a function of the module is needed", "Correct its name"
            )
        found = getattr(found, part)
    if not callable(found):
        raise unusable(f"{name!r:.80}, which is of type {type(found).__name__}", "a function is needed", "Name one")
    function: Callable[..., Any] = found
    return function


def require_arguments(name: str, function: Callable[..., Any], examples: Sequence[Any]) -> None:
    """Raise a UsageError unless a function can be called with as many arguments as there are shapes."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of functions written in C
        return
    try:
        signature.bind(*examples)
    except TypeError:
        raise unusable(
            f"{len(examples)} --shapes for {name:.80}{signature}",
            "a shape for each argument is needed",
            "Write --shapes 3,4 5, for instance",
        ) from None


def module_of(name: str) -> ModuleType:
    """Import a module by its name or its file."""
    if name.endswith(".py"):
        return module_from(Path(name))
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise unusable(
            f"the module {name!r:.80}, which is not there",
            "a module that can be imported is needed",
            "Correct its name",
        ) from None


def module_from(path: Path) -> ModuleType:
    """Import the module in a file."""
    if not path.is_file():
        raise unusable(f"{str(path)!r:.80}, which is no file", "a file with a module is needed", "Correct its path")
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def example(text: str) -> Any:
    """Return an array, or containers of arrays, of the shape and dtype that a text describes.

    >>> example("3,4").shape, example("float32[5]").dtype, example("()")
    ((3, 4), dtype('float32'), np.float64(1.0))
    >>> {key: x.shape for key, x in example("{'w': '3,4', 'b': '4'}").items()}
    {'w': (3, 4), 'b': (4,)}
    """
    if not re.search("['\"]", text):
        return ones_of(text)
    try:
        tree = ast.literal_eval(text)
    except UNREADABLE:
        raise shape_error(text) from None
    return map_leaves(ones_of, tree)


def ones_of(text: Any) -> Any:
    """Return an array of ones of a shape and dtype."""
    if not isinstance(text, str):
        raise shape_error(repr(text))
    found = SHAPE.fullmatch(text)
    if found is None or not text.strip():
        raise shape_error(text)
    kind, axes = found.groups()
    try:
        shape = tuple(int(axis) for axis in axes.split(",") if axis.strip())
        dtype = np.dtype(kind or "float64")
        if dtype.kind not in "biufc":
            raise shape_error(text)
        return np.broadcast_to(np.ones((), dtype), shape)[()]
    except UNREADABLE:
        raise shape_error(text) from None


def shape_error(text: str) -> UsageError:
    """Return the error about a text that describes no array."""
    return unusable(
        f"--shapes {text!r:.80}",
        "shapes, with dtypes where they are not float64, are needed",
        "Write 3,4 or float32[3,4], () for a number, or {'w': '3,4', 'b': '4'} for containers",
    )


def write(option: str, path: str, picture: Picture) -> None:
    """Write a picture to the path that an option gives, as what its ending says."""
    file = Path(path)
    if file.suffix not in (".html", ".svg"):
        raise unusable(f"{option} {path!r:.80}", "a name that ends in .html or .svg is needed", "Rename it")
    try:
        file.write_text(picture.to_html() if file.suffix == ".html" else picture.to_svg(), encoding="utf-8")
    except OSError as error:
        raise unusable(
            f"{option} {path!r:.80}, which cannot be written ({error.strerror or error})",
            "a path to write to is needed",
            "Choose another",
        ) from None
