"""The variables that a branch or a loop hands on: closure cells, globals and attributes, read and set by name."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from wengert._tree import flatten
from wengert.conversion.names import HIDDEN
from wengert.conversion.rewriting import RESULT, RETURNED
from wengert.core.tensor import Tensor
from wengert.errors import GraphError

__all__ = [
    "UNBOUND",
    "Place",
    "Site",
    "Undefined",
    "attribute_of",
    "identity",
    "is_undefined",
    "places_of",
    "shown",
    "variable",
]


class Unbound:
    """Be the content of a variable that has none."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND: Final = Unbound()


class Undefined:
    """Stand for a value that a traced statement left undefined: whatever is done with it raises.

    Attributes:
        reason: the error's text.
    """

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error."""
        raise GraphError(self._reason)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__array_") and name.endswith("__"):
            raise GraphError(self._reason)
        self.refuse()

    __array__ = __array_ufunc__ = __array_function__ = refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __len__ = __iter__ = __contains__ = refuse
    __getitem__ = __setitem__ = __delitem__ = __call__ = __enter__ = __exit__ = __format__ = refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = __divmod__ = refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = refuse
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rxor__ = refuse
    __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = refuse
    __eq__ = __ne__ = refuse
    __hash__ = object.__hash__


class Site(NamedTuple):
    """Hold where a statement stands and the names it changes, each with lines in its body and in its `else`."""

    line: int
    names: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


class Place:
    """Read and set a variable.

    Attributes:
        name: what the user calls it.
        hidden: whether conversion added it.
        returned: whether it tells that the function has returned.
        lines: where it is set, in the body and in the `else`.
    """

    def __init__(self, name: str, lines: tuple[tuple[int, ...], tuple[int, ...]], function: FunctionType) -> None:
        self.hidden = name.startswith(HIDDEN)
        self.returned = name == RETURNED
        self.name = "the returned value" if name == RESULT else "an early exit" if self.hidden else name
        self.lines = lines
        self.code = function.__code__

    def read(self) -> Any:
        """Return the value, or UNBOUND."""
        raise NotImplementedError

    def write(self, value: Any) -> None:
        """Set the value; UNBOUND takes it away."""
        raise NotImplementedError

    def where(self, half: int) -> str:
        """Return the source line that sets it last in the body (0) or the `else` (1)."""
        lines = self.lines[half]
        return line_text(self.code.co_filename, lines[-1], self.code.co_qualname) if lines else ""


def line_text(filename: str, line: int, function: str) -> str:
    """Return a line of source as tracebacks show it."""
    return f'\n  File "{filename}", line {line}, in {function}: {linecache.getline(filename, line).strip()}'


class Cell(Place):
    """Be a variable of the converted function or of one around it."""

    cell: CellType

    def read(self) -> Any:
        """Return the value, or UNBOUND."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNBOUND

    def write(self, value: Any) -> None:
        """Set the value."""
        if value is not UNBOUND:
            self.cell.cell_contents = value
        elif self.read() is not UNBOUND:
            del self.cell.cell_contents


class Global(Place):
    """Be a global variable."""

    space: dict[str, Any]

    def read(self) -> Any:
        """Return the value, or UNBOUND."""
        return self.space.get(self.name, UNBOUND)

    def write(self, value: Any) -> None:
        """Set the value."""
        if value is not UNBOUND:
            self.space[self.name] = value
        else:
            self.space.pop(self.name, None)


class Attribute(Place):
    """Be an attribute of an object that a variable holds."""

    root: Place
    path: Sequence[str]

    def holder(self) -> Any:
        """Return the object whose attribute it is."""
        value = self.root.read()
        for name in self.path[:-1]:
            value = getattr(value, name, UNBOUND)
        return value

    def read(self) -> Any:
        """Return the value, or UNBOUND."""
        return getattr(self.holder(), self.path[-1], UNBOUND)

    def write(self, value: Any) -> None:
        """Set the value."""
        holder = self.holder()
        if value is not UNBOUND:
            setattr(holder, self.path[-1], value)
        elif hasattr(holder, self.path[-1]):
            delattr(holder, self.path[-1])


def places_of(site: Site, *functions: FunctionType) -> list[Place]:
    """Return the variables that a statement changes.

    Args:
        site: their names.
        functions: what the parts of the statement became; their closures hold the variables.
    """
    cells: dict[str, CellType] = {}
    for function in functions:
        cells.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found = []
    for name, *lines in site.names:
        root, *path = name.split(".")
        place = variable(root, cells, (lines[0], lines[1]), functions[0])
        if path:
            attribute = Attribute(name, (lines[0], lines[1]), functions[0])
            attribute.root, attribute.path = place, path
            if not settable(attribute):
                continue
            place = attribute
        found.append(place)
    return found


def attribute_of(value: Any, name: str, function: FunctionType) -> Attribute:
    """Return an attribute of an object; `function` says where its class stands."""
    found = Attribute(f"{type(value).__name__}.{name}", ((), ()), function)
    found.root, found.path = Fixed(value), (name,)
    return found


class Fixed(Place):
    """Be an object that no variable of the statement holds."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def read(self) -> Any:
        """Return it."""
        return self.value


def identity(place: Place) -> Any:
    """Return what tells places apart, whatever they are called; None for one that only the library knows."""
    if isinstance(place, Cell):
        return id(place.cell)
    if isinstance(place, Attribute):
        return id(place.holder()), place.path[-1]
    if isinstance(place, Global):
        return id(place.space), place.name
    return None


def settable(place: Attribute) -> bool:
    """Tell whether an attribute belongs to an object that keeps it, not to an array."""
    return not isinstance(place.holder(), Tensor | np.ndarray | Unbound | Undefined | ModuleType)


def variable(
    name: str, cells: dict[str, CellType], lines: tuple[tuple[int, ...], tuple[int, ...]], function: FunctionType
) -> Place:
    """Return a variable by name."""
    if name in cells:
        cell = Cell(name, lines, function)
        cell.cell = cells[name]
        return cell
    found = Global(name, lines, function)
    found.space = function.__globals__
    return found


def shown(value: Any) -> str:
    """Return what an error says of a value: shape and dtype of arrays, the type of others."""
    if isinstance(value, Undefined) or value is UNBOUND:
        return "undefined"
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, int | float | complex):
        return f"the Python number {value!r}"
    if hasattr(value, "dtype") and hasattr(value, "shape") and (type(value) is Tensor or not callable(value)):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    leaves, structure = flatten(value)
    if structure is None:
        return f"of type {type(value).__name__}"
    inside = ", ".join(map(shown, leaves))
    return f"a {type(value).__name__} of ({inside})"


def is_undefined(value: Any) -> bool:
    """Tell whether a variable that holds a value has none that can be used."""
    return value is UNBOUND or isinstance(value, Undefined)
