"""The variables that a branch or a loop hands on: closure cells, globals and attributes, read and set by name."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterable
from enum import Enum
from operator import is_not
from typing import Any, ClassVar, NoReturn

import numpy as np

from wengert.core.containers.container_classes import is_container
from wengert.core.containers.tree_leaves import flatten
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError
from wengert.support.attributes import attribute
from wengert.support.function_contents import UNBOUND
from wengert.support.records import NamedTuple

HIDDEN = "wengert_"
"""What the names that conversion adds begin with, and end with an underscore."""
OPERATIONS = f"{HIDDEN}operations_"
"""The free variable through which converted code reaches the library."""
RESULT = f"{HIDDEN}result_"
RETURNED = f"{HIDDEN}returned_"

Contents = dict[Any, Any]


class Undefined:
    """Stand for a value that a traced statement left undefined: whatever is done with it raises.

    Attributes:
        reason: the error's text.
    """

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "_reason", reason)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error."""
        raise GraphError(self._reason)

    def with_value(self, value: Any, truth: Any) -> HalfDefined:
        """Return what the variable is that has a value where a traced truth holds."""
        return HalfDefined(self._reason, value, truth)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__array_") and name.endswith("__"):
            raise GraphError(self._reason)
        self.refuse()

    __array__ = __array_ufunc__ = __array_function__ = refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __len__ = __iter__ = __contains__ = refuse
    __setattr__ = __delattr__ = refuse
    __getitem__ = __setitem__ = __delitem__ = __call__ = __enter__ = __exit__ = __format__ = refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = __divmod__ = refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = refuse
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rxor__ = refuse
    __round__ = __trunc__ = __reversed__ = __next__ = refuse
    __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = refuse
    __eq__ = __ne__ = __hash__ = __str__ = refuse


class HalfDefined(Undefined):
    """Stand for a variable that a traced statement gives a value on some paths alone.

    Attributes:
        value: what it has there, zeros elsewhere.
        truth: whether it has it, a traced truth.
    """

    __slots__ = ("_truth", "_value")

    def __init__(self, reason: str, value: Any, truth: Any) -> None:
        super().__init__(reason)
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_truth", truth)

    def halves(self) -> tuple[Any, Any]:
        """Return the value, and whether it is one."""
        return self._value, self._truth

    def without_value(self) -> Undefined:
        """Return what the variable is where paths are not told apart, as from one iteration to the next."""
        return Undefined(self._reason)


class StatementSite(NamedTuple):
    """Hold where a statement stands and the names it changes, each with lines in its body and in its `else`.

    `halves` are those that are read where only some paths give them a value.
    """

    line: int
    names: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    halves: tuple[str, ...] = ()


class Holder:
    """Read and set the contents of something.

    Attributes:
        target: it.
        name: what the user calls it.
        variable: whether an entry may be missing or undefined: of variables and attributes, not of containers.
    """

    variable: ClassVar[bool] = False

    def __init__(self, target: Any, name: str) -> None:
        self.target = target
        self.name = name

    def contents(self) -> Contents:
        """Return a copy of the contents, by key."""
        raise NotImplementedError

    def restore(self, contents: Contents) -> None:
        """Let it have these contents and no others."""
        raise NotImplementedError

    def write(self, key: Any, value: Any) -> None:
        """Set one entry; UNBOUND takes it away."""
        contents = self.contents()
        if value is UNBOUND:
            contents.pop(key, None)
        else:
            contents[key] = value
        self.restore(contents)

    def differs(self, one: Contents, other: Contents) -> bool:
        """Tell whether contents are not the same objects under the same keys in the same order."""
        return len(one) != len(other) or any(map(is_not, one.values(), other.values())) or list(one) != list(other)

    def entry_name(self, key: Any) -> str:
        """Return what the user calls an entry."""
        return f"{self.name}[{key!r}]"


class VariablePlace:
    """Be an entry of a holder: a variable, an attribute, an item.

    Attributes:
        spelled: its name in the program.
        name: what the user calls it.
        hidden: whether conversion added it.
        returned: whether it tells that the function has returned.
        lines: the source lines that set it last, in the body and in the `else`.
    """

    def __init__(self, holder: Holder, key: Any, lines: tuple[str, str]) -> None:
        name = holder.entry_name(key)
        self.holder = holder
        self.key = key
        self.spelled = name
        self.hidden = name.startswith(HIDDEN)
        self.returned = name == RETURNED
        self.name = "the returned value" if name == RESULT else "an early exit" if self.hidden else name
        self.lines = lines

    @property
    def variable(self) -> bool:
        """Whether it may be undefined."""
        return self.holder.variable

    @property
    def identity(self) -> tuple[int, Any]:
        """What tells places apart, whatever they are called."""
        return id(self.holder.target), self.key

    def read(self) -> Any:
        """Return the value, or UNBOUND."""
        return self.holder.contents().get(self.key, UNBOUND)

    def write(self, value: Any) -> None:
        """Set the value; UNBOUND takes it away."""
        self.holder.write(self.key, value)

    def where(self, half: int) -> str:
        """Return the source line that sets it last in the body (0) or the `else` (1)."""
        return self.lines[half]


def line_text(filename: str, line: int, function: str) -> str:
    """Return a line of source as tracebacks show it."""
    return f'\n  File "{filename}", line {line}, in {function}: {linecache.getline(filename, line).strip()}'


def value_text(value: Any) -> str:
    """Return what an error says of a value: shape and dtype of arrays, the type of others."""
    if isinstance(value, Undefined) or value is UNBOUND:
        return "undefined"
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, int | float | complex):
        return f"the Python number {value!r}"
    shape, dtype = attribute(value, "shape"), attribute(value, "dtype")
    if type(shape) is tuple and dtype is not None and (type(value) is Tensor or not callable(value)):
        return f"{dtype}[{','.join(map(str, shape))}]"
    leaves, structure = flatten(value)
    if structure is None:
        return f"of type {type(value).__name__}"
    if isinstance(value, dict):
        items = [(k, f"a {type(x).__name__}" if is_container(type(x)) else value_text(x)) for k, x in value.items()]
        inside = ", ".join(f"{key!r}: {text}" for key, text in items)
    else:
        inside = ", ".join(map(value_text, leaves))
    return f"a {type(value).__name__} of ({inside})"


def suggest_instead(values: Iterable[Any], otherwise: str) -> str:
    """Return what to write in place of values of which a traced statement cannot choose one, by what they are."""
    values = list(values)
    if any(isinstance(x, str | bytes | Enum) for x in values):
        return "Write truths or whole numbers in place of text and of members of enumerations"
    if any(x is None for x in values):
        return "Write a value of the same kind in place of None, and beside it a truth that says whether there is one"
    if all(inspect.isroutine(x) or isinstance(x, np.ufunc) for x in values):
        return "Call each in its branch, and choose between what they return"
    if all(isinstance(x, dict) for x in values) and len({tuple(x) for x in values}) > 1:
        return "Build them with the same keys in the same order"
    return otherwise


def require_defined(value: Any) -> Any:
    """Return a value that is looked at from outside, as by `is`; raise if a traced statement left it undefined."""
    if isinstance(value, Undefined):
        value.refuse()
    return value


def is_undefined(value: Any) -> bool:
    """Tell whether a variable that holds a value has none that can be used."""
    return value is UNBOUND or isinstance(value, Undefined)
