"""Records: objects that are known by their fields, as frozen dataclasses and named tuples, in no time to define."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, dataclass_transform

from wengert.errors import UsageError

FIELD: Any = type(vars(namedtuple("FIELD", "first"))["first"])
"""What reads a field of a tuple by its place: in C, as for those of Python."""


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

    It is what a frozen dataclass is. Each of those is compiled when it is defined, which takes 0.5 ms: three dozen took
    a twelfth of the time of a first gradient. To make one takes as long, to replace fields a third.

    >>> class Point(FieldRecord):
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0) == Point(x=1.0), hash(Point(1.0)) == hash(Point(1.0, 0.0))
    (Point(x=1.0, y=0.0), True, True)
    """

    _template: ClassVar[Mapping[str, Any]] = {}
    _required: ClassVar[int] = 0
    _identity: ClassVar[attrgetter[Any]] = attrgetter("__class__")

    def __init_subclass__(cls) -> None:
        names = (*cls._template, *cls.__annotations__)
        cls._template = {name: getattr(cls, name, None) for name in names}
        cls._required = sum([not hasattr(cls, name) for name in names])
        cls._identity = attrgetter("__class__", *names)

    def __init__(self, *values: Any, **named: Any) -> None:
        if named or not self._required <= len(values) <= len(self._template):
            self.check_given(values, named)
        own = vars(self)
        own.update(self._template)  # so that fields come first, in their order, whatever is kept beside them later
        own.update(zip(self._template, values, strict=False), **named)

    def check_given(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Raise a UsageError unless each field, but for those that have a value, is given once, and nothing else."""
        names = tuple(self._template)
        further = names[len(values) :]
        absent = [name for name in further[: max(0, self._required - len(values))] if name not in named]
        if absent or len(values) > len(names) or not named.keys() <= {*further}:
            needed = f"the fields {', '.join(names) or 'none'} are needed"
            action = "Give each of them once; those that have a value may be left out"
            raise UsageError(type(self).__name__, f"{len(values)} values and the names {list(named)}", needed, action)

    def replace(self, **changes: Any) -> Self:
        """Return a record with other values of some fields; raise a UsageError for names of others."""
        if not changes.keys() <= self._template.keys():
            unknown = [name for name in changes if name not in self._template]
            needed = f"names of its fields are needed: {', '.join(self._template)}"
            raise UsageError(type(self).__name__, f"{', '.join(unknown)} to be replaced", needed, "Correct the names")
        made = object.__new__(type(self))
        vars(made).update(zip(self._template, vars(self).values(), strict=False), **changes)
        return made

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._identity(self) == self._identity(other)

    def __hash__(self) -> int:
        return hash(self._identity(self))

    def __repr__(self) -> str:
        pairs = zip(self._template, values_of(self), strict=True)
        return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in pairs])})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is a record, which stays as it is")

    __delattr__ = __setattr__  # type: ignore[assignment]  # without a value


def fields_of(kind: type[FieldRecord]) -> tuple[str, ...]:
    """Return the names of the fields of a class of records, in their order."""
    return tuple(kind._template)


def values_of(record: FieldRecord) -> tuple[Any, ...]:
    """Return the values of the fields of a record, in their order."""
    return tuple(vars(record).values())[: len(record._template)]


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # the same, to whoever reads the code
else:

    class TupleClass(type):
        """Be a class of tuples whose annotated fields have names."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> TupleClass:
            """Return the class, whose instances have room for the fields and nothing else."""
            if bases == (tuple,) or bases[0]._fields:
                return super().__new__(cls, name, bases, members)
            fields = tuple(members["__annotations__"])
            defaults = {field: members[field] for field in fields if field in members}
            places = {field: FIELD(place, f"Field {place}.") for place, field in enumerate(fields)}
            own = {"__slots__": (), "__match_args__": fields, "_fields": fields, "_field_defaults": defaults}
            own["_last"] = tuple(defaults.values())
            return super().__new__(cls, name, bases, {**members, **places, **own})

        @property
        def __signature__(cls) -> Any:
            """The fields as parameters: what `inspect.signature` shows."""
            from inspect import Parameter, Signature

            kind: Any = cls
            parameters = [
                Parameter(
                    field,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=kind._field_defaults.get(field, Parameter.empty),
                    annotation=kind.__annotations__.get(field, Parameter.empty),
                )
                for field in kind._fields
            ]
            return Signature(parameters)

    class NamedTuple(tuple, metaclass=TupleClass):
        """Be a tuple whose fields have names: those annotated in a class, in their order, the last ones with defaults.

        It is what `typing.NamedTuple` is. Each of those is compiled when it is defined, which takes 0.2 ms: a third of
        a hundred took a tenth of the time of importing the library.

        >>> class Span(NamedTuple):
        ...     first: int
        ...     count: int = 1
        >>> Span(3), Span(3) == (3, 1), Span(count=2, first=0)._replace(first=5)
        (Span(first=3, count=1), True, Span(first=5, count=2))
        """

        __slots__ = ()
        _fields: ClassVar[tuple[str, ...]] = ()
        _field_defaults: ClassVar[Mapping[str, Any]] = {}
        _last: ClassVar[tuple[Any, ...]] = ()

        def __new__(cls, *values: Any, **named: Any) -> Self:
            """Return the tuple of values of the fields, in their order or by name."""
            absent = len(cls._fields) - len(values)
            if named or absent:
                values = (
                    by_name(cls, values, named)
                    if named or not 0 < absent <= len(cls._last)
                    else values + cls._last[-absent:]
                )
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Self:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__}: {len(made)} values; {len(cls._fields)} are needed")
            return made

        def _replace(self, **changes: Any) -> Self:
            made = tuple.__new__(type(self), map(changes.pop, self._fields, self))
            if changes:
                raise TypeError(f"{type(self).__name__} has no fields {', '.join(changes)}")
            return made

        __replace__ = _replace  # what `copy.replace` asks for

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Return what copies and what is read from a file are made of."""
            return tuple(self)

        def __repr__(self) -> str:
            pairs = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in pairs])})"


def by_name(kind: Any, values: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of all fields of a class of tuples; raise a TypeError where they are not these."""
    further, given = kind._fields[len(values) :], named
    if len(named) < len(further):
        given = {**{name: x for name, x in kind._field_defaults.items() if name in further}, **named}
    if len(given) == len(further) and len(values) <= len(kind._fields):
        try:
            return values + tuple([given[name] for name in further])
        except KeyError:
            pass  # a name that is none of the fields stands for one of them
    told = f"{len(values)} values and the names {list(named)}"
    raise TypeError(f"{kind.__name__}: {told}; one for each of {', '.join(kind._fields)} is needed")
