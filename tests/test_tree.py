"""Containers: what is one, what is static in one, vectors of their elements, and where a leaf stands."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import pickle
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from wengert import tree
from wengert.core.containers import container_classes, tree_leaves
from wengert.core.containers.tree_leaves import DEPTH, FEW, Nested
from wengert.errors import DtypeError, ShapeError, UsageError

X = np.array([0.5, 0.25])


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Layer:
    weight: np.ndarray
    width: int = 3
    name: str | None = None
    sizes: tuple[int, ...] = (1, 2)
    mode: Literal["a", "b"] = "a"
    colour: Colour = Colour.RED
    activation: Callable[[Any], Any] = np.tanh
    anything: Any = tree.static(default=None)  # noqa: RUF009 - it makes a field
    steps: int = tree.static(False, default=0)


class Point(NamedTuple):
    a: Any
    b: Any


class Mapping(dict[str, Any]):
    pass


class Ordered(collections.OrderedDict[str, Any]):
    pass


class Sequence(list[Any]):
    def __init__(self, *args: Any, tag: str = "") -> None:
        super().__init__(*args)
        self.tag = tag


class Pair(tuple[Any, ...]):
    pass


class Attributes(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


@tree.register
class Line:
    def __init__(self, slope: Any, offset: Any) -> None:
        self.slope, self.offset = slope, offset


CONTAINERS = {
    "dict": {"w": X, "a": 1.0},
    "ordered": collections.OrderedDict(w=X, a=1.0),
    "default": collections.defaultdict(list, w=X, a=1.0),
    "deque": collections.deque([X, 1.0]),
    "mapping": Mapping(w=X, a=1.0),
    "ordered subclass": Ordered(w=X, a=1.0),
    "list subclass": Sequence([X, 1.0], tag="q"),
    "tuple subclass": Pair([X, 1.0]),
    "named tuple": Point(X, 1.0),
    "items as attributes": Attributes(w=X, a=1.0),
    "registered": Line(X, 1.0),
    "inside": {"k": [Mapping(w=X), (Line(X, 1.0),)]},
}


def total(container: Any) -> Any:
    return sum(np.sum(leaf**2) for leaf in tree.leaves(container))


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_gradients_come_in_the_same_container(container: Any) -> None:
    for transformed in (wg.grad(total), wg.jit(wg.grad(total))):
        found = transformed(container)
        assert type(found) is type(container)
        assert tree.structure(found) == tree.structure(container)
        for mine, leaf in zip(tree.leaves(found), tree.leaves(container), strict=True):
            np.testing.assert_allclose(mine, 2 * leaf)
    vector, back = tree.ravel(container)
    again = back(vector)
    assert type(again) is type(container)
    assert [type(leaf) for leaf in tree.leaves(again)] == [type(leaf) for leaf in tree.leaves(container)]


def test_what_subclasses_have_beside_items_is_kept() -> None:
    double = lambda x: 2 * x
    assert tree.map(double, Sequence([1.0], tag="q")).tag == "q"
    assert tree.map(double, collections.defaultdict(list, a=1.0))["new"] == []
    assert tree.map(double, Attributes(w=1.0)).w == 2.0
    assert list(tree.map(double, Mapping(z=1.0, a=2.0))) == ["z", "a"]
    assert tree.structure(Sequence([1.0], tag="q")) != tree.structure(Sequence([1.0], tag="r"))
    assert hash(tree.structure(Mapping(a=1.0))) == hash(tree.structure(Mapping(a=2.0)))


def test_static_fields_belong_to_the_structure() -> None:
    layer = Layer(X, name="first")
    assert [type(leaf) for leaf in tree.leaves(layer)] == [np.ndarray, int]  # the weight and the steps
    assert tree.structure(layer) != tree.structure(dataclasses.replace(layer, width=4))
    assert tree.structure(layer) == tree.structure(dataclasses.replace(layer, steps=4))
    traced = []

    def run(layer: Layer) -> Any:
        traced.append(layer.width)
        return layer.activation(layer.weight) * layer.width

    jitted = wg.jit(run)
    for width in (3, 4, 3):
        np.testing.assert_array_equal(jitted(dataclasses.replace(layer, width=width)), np.tanh(X) * width)
    assert traced == [3, 4]
    gradient = wg.grad(lambda layer: np.sum(layer.weight) * layer.width, argnums=0)(
        dataclasses.replace(layer, steps=0.0)  # type: ignore[arg-type]  # a leaf that is differentiated is a float
    )
    assert (gradient.width, gradient.name, gradient.steps) == (3, "first", 0.0)


@pytest.mark.parametrize(
    ("container", "text"),
    [
        (Layer(X, anything=[1]), "tree: Layer.anything, which is static, is of type list; what hashes"),
        (Layer(X, anything=X), "tree: Layer.anything, which is static, is of type ndarray; what hashes"),
        (Sequence([X], tag=[]), "tree: Sequence.tag, which is static, is of type list; what hashes"),  # type: ignore[arg-type]
    ],
)
def test_static_data_that_may_change_is_refused(container: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        wg.jit(lambda x: x)(container)


NESTED = st.recursive(
    st.one_of(st.none(), st.floats(-2, 2), st.just(X), st.just(np.ones((2, 1), np.float32))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Point, inner, inner),
    ),
    max_leaves=8,
)


@given(NESTED)
def test_the_way_there_and_back(container: Any) -> None:
    vector, back = tree.ravel(container)
    again = back(vector)
    assert tree.structure(again) == tree.structure(container)
    for mine, leaf in zip(tree.leaves(again), tree.leaves(container), strict=True):
        assert type(mine) is type(leaf)
        assert np.asarray(mine).dtype == np.asarray(leaf).dtype
        np.testing.assert_array_equal(mine, leaf)
    assert tree.structure(container).unflatten(tree.leaves(container)) is not None or container is None


def test_ravel_gives_scalars_back_as_what_they_were() -> None:
    given = [np.float64(2.0), np.float32(1.0), np.array(3.0), 4.0, np.complex128(5.0)]
    found = tree.ravel(given)[1](np.arange(5.0))
    assert [type(x) for x in found] == [np.float64, np.float32, np.ndarray, float, np.complex128]


def test_ravel_in_all_modes() -> None:
    parameters = {"a": 1.0, "b": X}
    vector, back = tree.ravel(parameters)

    def loss(vector: Any) -> Any:
        return back(vector)["a"] ** 3 * np.sum(back(vector)["b"] ** 2)

    expected = np.concatenate([[3 * np.sum(X**2)], 2 * X])
    for grad in (wg.grad(loss), wg.jit(wg.grad(loss)), wg.grad(wg.jit(loss)), wg.jacfwd(loss)):
        np.testing.assert_allclose(grad(vector), expected)
    lanes = wg.vmap(lambda v: back(v)["b"])(np.stack([vector, 2 * vector]))
    np.testing.assert_array_equal(lanes, [X, 2 * X])
    length = lambda p: np.sum(tree.ravel(p)[0] ** 2)
    assert wg.grad(length)(parameters)["a"] == wg.jit(wg.grad(length))(parameters)["a"] == 2.0
    assert isinstance(tree.ravel([wg.tensor(1.0), X])[0], wg.Tensor)
    complex_vector = back(vector * 1j)
    assert complex_vector["a"] == 1j
    assert complex_vector["b"].dtype == complex


def test_functions_of_several_trees() -> None:
    assert tree.map(lambda p, g: p - g, {"a": [1.0]}, {"a": [0.25]}) == {"a": [0.75]}
    assert tree.map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]
    assert tree.leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert repr(tree.structure({"a": [1.0, None]})) == "Structure({'a': [*, None]})"
    assert repr(tree.structure(1.0)) == "Structure(*)"
    assert repr(tree.structure(Point(1.0, 2.0))) == "Structure(Point(a=*, b=*))"
    assert pickle.loads(pickle.dumps(CONTAINERS["registered"])).offset == 1.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tree.map(None, [1.0]), DtypeError, "tree.map: None as the function; something that can be called"),
        (
            lambda: tree.map(max, [1.0], (1.0,)),
            UsageError,
            r"tree.map: Structure\(\[\*\]\) and Structure\(\(\*,\)\); containers of one structure are needed",
        ),
        (lambda: tree.structure([1.0]).unflatten([]), UsageError, "tree.unflatten: 0 leaves; 1 are needed"),
        (lambda: tree.ravel({"a": [1]}), DtypeError, r"tree.ravel: a leaf of type int at tree\['a'\]\[0\]; floats"),
        (lambda: tree.ravel("x"), DtypeError, "tree.ravel: a leaf of type str; floats"),
        (lambda: tree.ravel(np.arange(2)), DtypeError, "tree.ravel: an array of dtype int64; floats"),
        (lambda: tree.ravel([1.0])[1](X), ShapeError, r"tree.ravel: shape \(2,\) for the way back; shape \(1,\)"),
        (lambda: tree.register(dict), UsageError, "tree.register: dict, which is a container already"),
        (lambda: tree.register(Line), UsageError, "tree.register: Line, which is a container already"),
        (lambda: tree.register(3), UsageError, "tree.register: 3; a class, and both functions or none"),
        (lambda: tree.register(Colour, static="name"), UsageError, "static='name'; a list of names .* Write ..name"),
        (lambda: tree.register(Colour, max, min, static=["a"]), UsageError, "take_apart beside static attributes"),
        (
            lambda: tree.register(Colour, take_apart=max),
            UsageError,
            "tree.register: one of take_apart and put_together",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def first(parameters: Any, *more: Any) -> Any:
    return np.sum(parameters["w"])


DEEP = {"w": X, "layers": [1.0, {"b": Line(2.0, "two")}]}


@pytest.mark.parametrize(
    "transformed",
    [
        wg.grad(first),
        wg.value_and_grad(first),
        lambda p: wg.vjp(first, p),
        lambda p: wg.jvp(first, (p,), (p,)),
        wg.jacfwd(first),
        wg.jacrev(first),
        wg.hvp,
        lambda p: wg.taylor(first, (p,), (p,), 2),
    ],
)
def test_errors_say_where_a_leaf_stands(transformed: Callable[..., Any]) -> None:
    with pytest.raises(DtypeError, match=r"an argument of type str at .*\['layers'\]\[1\]\['b'\].offset; floats"):
        transformed(DEEP) if transformed is not wg.hvp else wg.hvp(first, (DEEP,), (DEEP,))


def test_a_parameter_has_its_name() -> None:
    with pytest.raises(DtypeError, match=r"grad: the integer 3 at parameters\['k'\]; a float or complex number"):
        wg.grad(first)({"w": X, "k": 3})
    with pytest.raises(DtypeError, match=r"grad: the integer 3 at argument 1\[0\]; a float or complex number"):
        wg.grad(first, argnums=1)({"w": X}, [3])
    with pytest.raises(DtypeError, match=r"grad: the integer 3; a float or complex number"):
        wg.grad(first, argnums=1)({"w": X}, 3)


@dataclasses.dataclass
class Settings:
    rate: float = 0.5
    sizes: Any = (2, 3)
    name: Any = 1.0


def test_an_error_about_an_attribute_names_static_fields() -> None:
    written = "or hold it in a dataclass, in a field that is wengert.tree.static()"
    text = rf"the integer 2 at s\.sizes\[0\]; .*\. Write 2\.0, or leave it out of argnums, {re.escape(written)}\.$"
    with pytest.raises(DtypeError, match=text):
        wg.grad(lambda s: s.rate)(Settings())
    with pytest.raises(
        DtypeError, match=rf"of type str at s\[0\]\.name; .*Leave it out of argnums, {re.escape(written)}"
    ):
        wg.grad(lambda s: s[0].rate)([Settings(sizes=None, name="a")])


def test_classes_with_functions_of_their_own() -> None:
    @tree.register(take_apart=lambda s: ((s.value,), s.unit), put_together=lambda unit, parts: Quantity(parts[0], unit))
    class Quantity:
        def __init__(self, value: Any, unit: str) -> None:
            self.value, self.unit = value, unit

    found = wg.grad(lambda q: q.value**2)(Quantity(3.0, "m"))
    assert (found.value, found.unit) == (6.0, "m")


SEQUENCES = st.recursive(
    st.floats(allow_nan=False),
    lambda inside: st.lists(inside, max_size=FEW + 2) | st.lists(inside, max_size=3).map(tuple),
    max_leaves=20,
)


@tree.register(static=["bend", "name"])
class Bent:
    def __init__(self, weight: Any, bend: Any = np.tanh) -> None:
        self.weight, self.bend, self.name = weight, bend, "bent"

    def __call__(self, x: Any) -> Any:
        return np.sum(self.bend(self.weight * x))


def test_attributes_of_registered_classes_may_be_static() -> None:
    layer, x = Bent(np.zeros(2)), np.array([1.0, 2.0])
    calls = wg.jit(wg.grad(lambda layer, x: layer(x)))
    for gradient in (wg.grad(lambda layer, x: layer(x))(layer, x), calls(layer, x), pickle.loads(pickle.dumps(layer))):
        assert (gradient.name, gradient.bend) == ("bent", np.tanh)
    assert np.array_equal(calls(layer, x).weight, x)
    assert np.array_equal(calls(Bent(np.zeros(2), np.cosh), x).weight, [0.0, 0.0])
    assert calls.trace_count == 2
    assert len(tree.leaves(layer)) == 1
    layer.name = ["changes"]  # type: ignore[assignment]  # that is the mistake
    with pytest.raises(UsageError, match=r"Bent\.name, which is static, is of type list"):
        tree.leaves(layer)


def test_paths_say_how_one_writes_each_leaf() -> None:
    class Measured:
        def __init__(self, value: Any, unit: str) -> None:
            self.value, self.unit = value, unit

    tree.register(Measured, static=["unit"])
    held = {"a": [X, (1.0, Measured(2.0, "m"))], "none": None, "bent": {3: Bent(4.0)}, "set": Settings()}
    rest = ["['a'][0]", "['a'][1][0]", "['a'][1][1].value", "['bent'][3].weight", "['set'].rate"]
    rest += ["['set'].sizes[0]", "['set'].sizes[1]", "['set'].name"]
    assert tree.paths(held) == rest
    assert tree.paths(held, "held") == ["held" + path for path in rest]
    assert len(rest) == len(tree.leaves(held))
    assert tree.paths((1.0, [2.0]), "x") == ["x[0]", "x[1][0]"]
    assert tree.paths((1.0, [2.0]), "x", lambda x: isinstance(x, list)) == ["x[0]", "x[1]"]
    assert (tree.paths(1.0), tree.paths(1.0, "x"), tree.paths([])) == ([""], ["x"], [])


class Slotted:
    __slots__ = ("__hidden", "unset", "values")

    def __init__(self, values: Any, hidden: Any) -> None:
        self.values, self.__hidden = values, hidden

    def __call__(self) -> Any:
        return np.sum(self.values) * self.__hidden


@tree.register(static=["name"])
class Named(Slotted):
    def __init__(self, values: Any, hidden: Any, name: str) -> None:
        super().__init__(values, hidden)
        self.name = name


tree.register(Slotted)


def test_attributes_may_lie_in_slots() -> None:
    for kind, more in ((Slotted, ()), (Named, ("name",))):
        for gradient in (wg.grad(lambda s: s()), wg.jit(wg.grad(lambda s: s()))):
            found = gradient(kind(X, 2.0, *more))
            assert type(found) is kind
            np.testing.assert_array_equal(found.values, np.full_like(X, 2.0))
            assert found() == 2.0 * X.size * np.sum(X)
            assert not hasattr(found, "unset")
            assert not more or found.name == "name"
    with pytest.raises(DtypeError, match=r"of type str at s\.values"):
        wg.grad(lambda s: s())(Slotted("text", 1.0))
    with pytest.raises(UsageError, match="Bare, whose instances have no attributes of their own"):
        tree.register(type("Bare", (), {"__slots__": ()}))


def test_classes_are_registered_by_position_as_elsewhere() -> None:
    class Scaled:
        def __init__(self, value: Any, unit: str) -> None:
            self.value, self.unit = value, unit

    tree.register(Scaled, lambda s: ((s.value,), s.unit), lambda unit, children: Scaled(children[0], unit))
    assert wg.grad(lambda s: s.value**2)(Scaled(3.0, "m")).value == 6.0


@given(SEQUENCES)
def test_tuples_and_lists_are_taken_apart_as_others_are(container: Any) -> None:
    optree, whole = container_classes.load_optree(), {"": container, "none": None}
    leaves, structure = tree_leaves.flatten(container)
    assert leaves == optree.tree_leaves(container) == tree_leaves.flatten(whole)[0]
    assert tree_leaves.unflatten(structure, leaves) == container
    if structure is not None:
        assert repr(tree.Structure(structure)) == f"Structure({str(optree.tree_structure(container))[11:-1]})"
        named = [accessor.codify("x") for accessor in tree_leaves.accessors_of(structure)]
        assert named == [accessor.codify("x") for accessor in optree.tree_accessors(container)]
        assert tree.structure(container) == tree.structure(container, is_leaf=lambda _: False)
        assert pickle.loads(pickle.dumps(structure)) == structure


def test_optree_is_for_containers_that_are_others_or_large_or_deep() -> None:
    few: Any = [1.0]
    for _ in range(DEPTH):
        few = [few, 2.0]
    known = [(), [], (1.0,), [1.0] * 100, [(1.0,)] * FEW, few]
    others = [few * FEW, [few], ({},), (None,), [(1.0,)] * (FEW + 1), collections.deque([1.0]), (1.0, {"a": 2.0})]
    for container in known + others:
        structure = tree_leaves.flatten(container)[1]
        assert (type(structure) is Nested) is (container in known)
        assert all(structure != tree_leaves.flatten(other)[1] for other in known + others if other is not container)
        with pytest.raises(ValueError, match="leaves"):
            tree_leaves.unflatten(structure, [0.0] * (structure.num_leaves + 1))
    assert tree_leaves.flatten([1.0, (2.0, 3.0)], lambda x: type(x) is tuple) == (
        [1.0, (2.0, 3.0)],
        Nested(list, (None,) * 2),
    )


@pytest.mark.parametrize(
    ("found", "text"), [(2.0, "a float"), ((1.0, 2.0, 3.0), "a tuple of 3"), ((1.0, None), "a tuple of 2")]
)
def test_a_class_is_taken_apart_as_children_and_static_data(found: Any, text: str) -> None:
    class Wrong:
        pass

    tree.register(Wrong, lambda _: found, lambda _data, _children: Wrong())
    with pytest.raises(UsageError, match=f"take_apart of Wrong returned {text}; a pair of children and static data"):
        wg.grad(lambda _: 0.0)(Wrong())


def test_what_a_cached_property_of_a_registered_class_has_computed_is_no_leaf() -> None:
    @tree.register
    class Scale:
        def __init__(self, root: Any) -> None:
            self.root = root

        @functools.cached_property
        def square(self) -> Any:
            return self.root**2

    class Louder(Scale):
        @property
        def loud(self) -> Any:
            return 2.0 * self.square

    tree.register(Louder)
    scale = Louder(3.0)
    assert (scale.loud, tree.leaves(scale), tree.paths(scale, "s")) == (18.0, [3.0], ["s.root"])
    for gradient_of in (wg.grad(lambda s: s.loud), wg.jit(wg.grad(lambda s: s.loud))):
        assert vars(gradient_of(scale)) == {"root": 12.0}
    assert vars(scale) == {"root": 3.0, "square": 9.0}


def test_a_registered_class_may_say_that_the_value_of_a_cached_property_is_a_setting() -> None:
    @tree.register(static=["count"])
    class Counted:
        def __init__(self, size: float) -> None:
            self.size = size

        @functools.cached_property
        def count(self) -> int:
            return 1

    counted = Counted(2.0)
    vars(counted)["count"] = 5
    assert vars(wg.grad(lambda c: c.size * c.count)(counted)) == {"size": 5.0, "count": 5}
