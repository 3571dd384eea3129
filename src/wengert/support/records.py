"""Records: objects that are known by their fields, as frozen dataclasses are, whose classes take no time to define."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, dataclass_transform

from wengert.errors import UsageError


class Record:
    """Be equal to others of the class whose fields are equal. Fields are set when it is made, and never again.

    >>> class Point(Record):
    ...     def __init__(self, x):
    ...         self.x = x
    >>> Point(1) == Point(1) != Point(2), Point(1)
    (True, Point(x=1))
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={value!r}" for name, value in vars(self).items()])
        return f"{type(self).__name__}({fields})"


@dataclass_transform(frozen_default=True)
class FieldRecord:
    """Hold what is given for the annotated fields of a class, in their order; fields with a value may be left out.

    It is what a frozen dataclass is. Each of those is compiled when it is defined, which takes 0.4 ms: a dozen took a
    tenth of the time of importing the library.

    >>> class Point(FieldRecord):
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0) == Point(x=1.0), hash(Point(1.0)) == hash(Point(1.0, 0.0))
    (Point(x=1.0, y=0.0), True, True)
    """

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.fields = (*cls.fields, *cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        found = dict(zip(self.fields, values, strict=False)) | named
        absent = [name for name in self.fields if name not in found and not hasattr(type(self), name)]
        if absent or len(found) < len(values) + len(named) or not found.keys() <= {*self.fields}:
            needed = f"the fields {', '.join(self.fields) or 'none'} are needed"
            action = "Give each of them once; those that have a value may be left out"
            raise UsageError(type(self).__name__, f"{len(values)} values and the names {list(named)}", needed, action)
        vars(self).update(found)

    def replace(self, **changes: Any) -> Self:
        """Return a record with other values of some fields; raise a UsageError for names of others."""
        unknown = [name for name in changes if name not in self.fields]
        if unknown:
            needed = f"names of its fields are needed: {', '.join(self.fields)}"
            raise UsageError(type(self).__name__, f"{', '.join(unknown)} to be replaced", needed, "Correct the names")
        return type(self)(*[changes.get(name, value) for name, value in zip(self.fields, self.values(), strict=True)])

    def values(self) -> tuple[Any, ...]:
        """Return the values of the fields, in their order."""
        return tuple([getattr(self, name) for name in self.fields])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __repr__(self) -> str:
        pairs = zip(self.fields, self.values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is a record, which stays as it is")

    __delattr__ = __setattr__  # type: ignore[assignment]  # without a value
