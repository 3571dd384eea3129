"""Containers: nested dictionaries, lists, tuples and dataclasses, with arrays and numbers as leaves.

Every function that takes or gives arrays takes or gives containers of them. What is a container: `dict`, `list`,
`tuple` and their subclasses, named tuples, dataclasses, and classes that `register` names. `None` is a container
without leaves. Of a dataclass, fields annotated as integers, strings, enumerations, types or functions (and unions and
tuples of these) are static: they belong to the structure and are no leaves; `static` marks other fields.

>>> import numpy as np
>>> import wengert as wg
>>> parameters = {"weights": np.ones((2, 2)), "bias": np.zeros(2)}
>>> vector, back = wg.tree.ravel(parameters)
>>> vector
array([0., 0., 1., 1., 1., 1.])
>>> back(2 * vector)["weights"]
array([[2., 2.],
       [2., 2.]])
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wengert.core.containers import container_classes as _containers
from wengert.core.containers import tree_leaves as _tree
from wengert.core.diagnostics.argument_checks import as_items, require_callable
from wengert.core.values.aval import aval_of
from wengert.core.values.interop import remedy_for, type_shown
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError, placed
from wengert.support.hints import names_on_demand

__all__ = ["Structure", "leaves", "map", "paths", "ravel", "register", "static", "structure"]

if not TYPE_CHECKING:  # checkers know the names
    __getattr__ = names_on_demand("wengert.tree")

Kind = TypeVar("Kind", bound=type[Any])
IsLeaf = Callable[[Any], bool] | None


class Structure:
    """What containers are without their leaves; two of the same structure compare equal, and hash alike.

    Attributes:
        size: the number of leaves.

    >>> structure([1.0, {"a": 2.0}]) == structure([3.0, {"a": None}])
    False
    >>> structure((1.0, 2.0)).unflatten([5.0, 6.0])
    (5.0, 6.0)
    """

    __slots__ = ("_definition",)

    def __init__(self, definition: Any) -> None:
        self._definition = definition

    @property
    def size(self) -> int:
        """Return the number of leaves."""
        return 1 if self._definition is None else int(self._definition.num_leaves)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return containers of this structure around leaves.

        Args:
            leaves: one for each leaf, in the order of `wengert.tree.leaves`.

        Raises:
            UsageError: there are more or fewer.

        >>> structure({"b": 0.0, "a": 0.0}).unflatten([1.0, 2.0])
        {'b': 2.0, 'a': 1.0}
        """
        given = as_items("tree.unflatten", "leaves", leaves)
        if len(given) != self.size:
            action = "Take them from containers of the same structure"
            raise UsageError("tree.unflatten", f"{len(given)} leaves", f"{self.size} are needed", action)
        return _tree.unflatten(self._definition, given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and bool(self._definition == other._definition)

    def __hash__(self) -> int:
        return hash(self._definition)

    def __repr__(self) -> str:
        return f"Structure({'*' if self._definition is None else _tree.structure_text(self._definition)})"


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of nested containers; those of dictionaries in the order of their sorted keys.

    Args:
        tree: the containers.
        is_leaf: tells of containers that they are leaves.

    Returns:
        The leaves.

    Raises:
        UsageError: the containers contain themselves.

    >>> leaves({"b": 1.0, "a": [2.0, None, 3.0]})
    [2.0, 3.0, 1.0]
    """
    return flatten_named("leaves", tree, is_leaf)[0]


def paths(tree: Any, name: str = "", is_leaf: IsLeaf = None) -> list[str]:
    """Return how one writes each leaf, as `parameters["layers"][2].width`: what leads to it in each container.

    Args:
        tree: the containers.
        name: what they are called; it stands in front.
        is_leaf: tells of containers that they are leaves.

    Returns:
        One text for each leaf, in the order of `leaves`.

    Raises:
        UsageError: the containers contain themselves.

    >>> parameters = {"layers": [{"weight": 1.0, "bias": 2.0}]}
    >>> paths(parameters, "parameters")
    ["parameters['layers'][0]['bias']", "parameters['layers'][0]['weight']"]
    >>> structure(parameters).unflatten([path.endswith("['weight']") for path in paths(parameters)])
    {'layers': [{'weight': True, 'bias': False}]}
    """
    return _tree.places_in(flatten_named("paths", tree, is_leaf)[1], name)


def structure(tree: Any, is_leaf: IsLeaf = None) -> Structure:
    """Return what containers are without their leaves.

    Args:
        tree: the containers.
        is_leaf: tells of containers that they are leaves.

    Returns:
        The structure, which compares, hashes, and puts other leaves together.

    Raises:
        UsageError: the containers contain themselves.

    >>> structure([1.0, (2.0, 3.0)])
    Structure([*, (*, *)])
    """
    return Structure(flatten_named("structure", tree, is_leaf)[1])


def flatten_named(name: str, tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], Any]:
    """Return leaves and structure of containers; `is_leaf` is looked at first."""
    if is_leaf is None:
        return _tree.flatten(tree)
    require_callable(f"tree.{name}", is_leaf, "is_leaf")
    return _tree.flatten(tree, lambda x: bool(is_leaf(x)))


def map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the same containers around the function's results for each leaf.

    Args:
        function: of one leaf of each tree.
        tree: the containers.
        rest: more of the same structure.
        is_leaf: tells of containers that they are leaves.

    Returns:
        Containers of the structure of `tree`.

    Raises:
        UsageError: structures differ.
        DtypeError: `function` cannot be called.

    >>> map(lambda p, g: p - 0.1 * g, {"w": 1.0, "b": [2.0]}, {"w": 10.0, "b": [20.0]})
    {'w': 0.0, 'b': [0.0]}
    """
    require_callable("tree.map", function)
    columns = [flatten_named("map", tree, is_leaf)]
    for other in rest:
        columns.append(_tree.flatten(other, is_leaf))
        if columns[-1][1] != columns[0][1]:
            given = f"{Structure(columns[0][1])} and {Structure(columns[-1][1])}"
            raise UsageError("tree.map", given, "containers of one structure are needed", "Build them alike")
    return _tree.unflatten(
        columns[0][1], [function(*row) for row in zip(*(found for found, _ in columns), strict=True)]
    )


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return all elements of all leaves as one vector, and the function that leads back.

    For what asks for a vector: solvers of SciPy, line searches, covariance matrices. Both directions can be
    differentiated, traced and batched.

    Args:
        tree: containers of numbers, arrays of any shape, or Tensors; floats or complex numbers of any precision,
            whose common dtype the vector has.

    Returns:
        vector: of shape (n,), an ndarray, or a Tensor if some leaf is one.
        back: takes a vector of shape (n,), and returns containers like `tree`, each leaf of its shape; of its dtype
            also, but for complex vectors in the place of real leaves.

    Raises:
        DtypeError: some leaf has no elements that are real or complex numbers.

    >>> import numpy as np
    >>> vector, back = ravel({"a": 1.0, "b": np.array([[2.0, 3.0]])})
    >>> vector
    array([1., 2., 3.])
    >>> back(vector + 1.0)
    {'a': 2.0, 'b': array([[3., 4.]])}
    """
    return ravel_named("tree.ravel", "tree", tree)


def ravel_named(name: str, label: str, tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return all elements as one vector, and the way back, as `ravel` does; errors name the function and argument."""
    found, definition = _tree.flatten(tree)
    avals = []
    for index, leaf in enumerate(found):
        try:
            avals.append(leaf_aval(name, leaf))
        except DtypeError as error:
            raise error if definition is None else placed(error, _tree.place_of(tree, index, label)) from None
    shapes = tuple([aval.shape for aval in avals])  # tuples, which are compared by what is in them: see FlatProblem
    dtypes = tuple([aval.dtype for aval in avals])
    forms = tuple([type(leaf) for leaf in found])
    sizes = tuple([math.prod(shape) for shape in shapes])
    vector = np.concatenate([np.ravel(leaf) for leaf in found]) if found else np.zeros(0)

    def back(vector: Any) -> Any:
        if np.shape(vector) != (sum(sizes),):
            given = f"shape {np.shape(vector)} for the way back"
            needed = f"shape ({sum(sizes)},) is needed"
            raise ShapeError(name, given, needed, "Pass a vector with the elements of all leaves")
        parts, start = [], 0
        for shape, dtype, size, form in zip(shapes, dtypes, sizes, forms, strict=True):
            part = np.reshape(vector[start : start + size], shape)
            start += size
            if part.dtype != dtype and (part.dtype.kind == dtype.kind or dtype.kind == "c"):
                part = part.astype(dtype)
            parts.append(as_leaf_type(part, form))
        return _tree.unflatten(definition, parts)

    return vector, back


def as_leaf_type(part: Any, form: type[Any]) -> Any:
    """Return an element as the Python number or NumPy scalar that the leaf was; what is traced stays a Tensor."""
    if not isinstance(part, np.ndarray | np.generic):
        return part
    if form in (float, complex):
        return part.item()
    return np.asarray(part)[()] if issubclass(form, np.generic) else part


def leaf_aval(name: str, leaf: Any) -> Any:
    """Return shape and dtype of a leaf of real or complex numbers; raise a DtypeError for any other."""
    kind = None
    if isinstance(leaf, np.ndarray | np.generic | float | complex | Tensor):
        aval = aval_of(leaf)
        kind = aval.dtype.kind
    if kind not in ("f", "c"):
        given = f"an array of dtype {aval.dtype}" if kind else f"a leaf of type {type_shown(leaf)}"
        raise DtypeError(
            name,
            given,
            "floats or complex numbers are needed",
            remedy_for(
                leaf, "Convert it, mark its field as static (wengert.tree.static), or keep it out of the containers"
            ),
        )
    return aval


def register(
    kind: Kind | None = None,
    take_apart: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    put_together: Callable[[Any, Sequence[Any]], Any] | None = None,
    *,
    static: Sequence[str] = (),
) -> Any:
    """Let instances of a class be containers; to be called, or written above the class.

    Without functions, the attributes in an instance's `__dict__` and `__slots__` are its children, in the order of
    their names, and `__init__` does not run when a copy is put together. What a `functools.cached_property` has
    computed is no child: a copy computes it anew.

    Args:
        kind: the class.
        take_apart: takes an instance; returns its children, and static data that compare and hash.
        put_together: takes static data and children; returns an instance.
        static: the names of attributes that are no children, such as a name or a function; they compare and hash.

    Returns:
        The class.

    Raises:
        UsageError: `kind` is no class, is a container already, or only one of the functions is given, or these and
            static attributes.

    >>> import wengert as wg
    >>> @wg.tree.register
    ... class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> gradient = wg.grad(lambda line, x: line.slope * x + line.offset)(Line(2.0, 1.0), 5.0)
    >>> gradient.slope, gradient.offset
    (5.0, 1.0)
    >>> import numpy as np
    >>> @wg.tree.register(static=["bend"])
    ... class Layer:
    ...     def __init__(self, weight, bend):
    ...         self.weight, self.bend = weight, bend
    >>> wg.grad(lambda layer, x: layer.bend(layer.weight * x))(Layer(0.0, np.tanh), 3.0).weight
    3.0
    """
    if kind is None:
        return lambda found: register(found, take_apart, put_together, static=static)
    if isinstance(static, str):
        raise UsageError("tree.register", f"static={static!r}", "a list of names is needed", f"Write [{static!r}]")
    if take_apart is not None and static:
        action = "Let take_apart return what is static as its second result"
        raise UsageError("tree.register", "take_apart beside static attributes", "one of them is needed", action)
    if not isinstance(kind, type) or (take_apart is None) != (put_together is None):
        given = f"{kind!r:.60}" if not isinstance(kind, type) else "one of take_apart and put_together"
        needed = "a class, and both functions or none, are needed"
        raise UsageError("tree.register", given, needed, "Write @wengert.tree.register above the class")
    if _containers.is_container(kind):
        given = f"{kind.__name__}, which is a container already"
        action = "Leave it out, or mark static fields with wengert.tree.static"
        raise UsageError("tree.register", given, "another class is needed", action)
    if take_apart is None and not kind.__dictoffset__ and not _containers.slots_of(kind):
        given = f"{kind.__name__}, whose instances have no attributes of their own"
        needed = "functions that take one apart and put one together are needed"
        raise UsageError("tree.register", given, needed, "Pass take_apart and put_together")
    if take_apart is None or put_together is None:
        _containers.register_attributes(kind, frozenset(static))
    else:
        _containers.register(
            kind, check_pair(kind, take_apart), lambda data, children: put_together(data, list(children))
        )
    return kind


def check_pair(kind: type[Any], take_apart: Callable[[Any], Any]) -> Callable[[Any], tuple[list[Any], Any]]:
    """Return a function that takes an instance apart; raise a UsageError unless it gives a pair."""

    def parts(instance: Any) -> tuple[list[Any], Any]:
        found = take_apart(instance)
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Iterable)):
            what = f"a tuple of {len(found)}" if isinstance(found, tuple) else f"a {type(found).__name__}"
            given = f"take_apart of {kind.__name__} returned {what}"
            needed = "a pair of children and static data is needed"
            raise UsageError("tree", given, needed, "Return ((child, ...), static), with None for no data")
        return list(found[0]), found[1]

    return parts


def static(value: bool = True, **options: Any) -> Any:
    """Mark a field of a dataclass: it belongs to the structure and holds no leaves.

    A traced function is traced anew for other static values, so they have to compare and hash.

    Args:
        value: False makes a leaf of a field that its annotation would make static, such as a counter under `jit`.
        options: those of `dataclasses.field`, such as `default`.

    Returns:
        The field.

    >>> import dataclasses
    >>> import wengert as wg
    >>> @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     scale: float = wg.tree.static(default=2.0)
    >>> wg.tree.leaves(Layer(3.0))
    [3.0]
    """
    return dataclasses.field(metadata={**options.pop("metadata", {}), _containers.STATIC: value}, **options)
