"""Methods with PyTorch's names mean what PyTorch means; other names of PyTorch's say how the same is written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.compile.translation import Translation
from wengert.core.graph.graph import Graph
from wengert.errors import DtypeError
from wengert.numpy._torch_methods import METHODS
from wengert.pictures.picture import Picture
from wengert.support.hints import MissingAttribute, hints
from wengert.transforms.custom_rule import CustomRule
from wengert.transforms.jit import Jitted

X = np.array([[0.3, -0.6, 0.9], [0.5, 0.2, -0.4]])
CALLS: dict[str, tuple[Any, Any]] = {
    "clone": (lambda x: x.clone(), lambda x: x.copy()),
    "view": (lambda x: x.view(3, -1), lambda x: x.reshape(3, -1)),
    "view of a shape": (lambda x: x.view((6,)), lambda x: x.reshape(6)),
    "view of nothing": (lambda x: x.view(), lambda x: x),
    "permute": (lambda x: x.permute(1, 0), lambda x: x.T),
    "permute by a tuple": (lambda x: x.permute((1, 0)), lambda x: x.T),
    "norm": (lambda x: x.norm(), lambda x: np.sqrt(np.sum(x**2))),
    "norm of order 1": (lambda x: x.norm(1), lambda x: np.sum(abs(x))),
    "norm along an axis": (lambda x: x.norm(dim=1, keepdim=True), lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
    "norm by NumPy's names": (
        lambda x: x.norm(axis=1, keepdims=True),
        lambda x: np.linalg.norm(x, axis=1, keepdims=True),
    ),
    "norm along axes": (lambda x: x.norm(3, dim=(0, 1)), lambda x: np.sum(abs(x) ** 3) ** (1 / 3)),
    "norm kept": (lambda x: x.norm("fro", (0, 1), True), lambda x: np.sqrt(np.sum(x**2))[None, None]),
    "norm of a scalar": (lambda x: x[0, 1].norm(), lambda x: abs(x[0, 1])),
    "softmax": (lambda x: x.softmax(-1), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "softmax by name": (lambda x: x.softmax(dim=0), lambda x: np.exp(x) / np.exp(x).sum(0)),
    "softmax by NumPy's name": (lambda x: x.softmax(axis=0), lambda x: np.exp(x) / np.exp(x).sum(0)),
    "log_softmax by NumPy's name": (lambda x: x.log_softmax(axis=0), lambda x: x - np.log(np.exp(x).sum(0))),
    "log_softmax": (lambda x: x.log_softmax(0), lambda x: x - np.log(np.exp(x).sum(0))),
    "sigmoid": (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "add": (lambda x: x.add(x, alpha=2), lambda x: 3 * x),
    "sub": (lambda x: x.sub(1.0, alpha=2), lambda x: x - 2),
    "mul": (lambda x: x.mul(x).div(2.0), lambda x: x * x / 2),
    "pow": (lambda x: x.abs().pow(2), lambda x: x * x),
    "clamp": (lambda x: x.clamp(max=0.4), lambda x: np.minimum(x, 0.4)),
    "mm": (lambda x: x.mm(x.T), lambda x: x @ x.T),
    "chain": (lambda x: x.exp().log1p().neg().sin().square(), lambda x: np.sin(np.log1p(np.exp(x))) ** 2),
    "comparison": (lambda x: x * x.gt(0.2), lambda x: np.where(x > 0.2, x, 0.0)),
}


@together("name", CALLS)
def test_they_mean_what_pytorch_means_in_every_mode(name: str) -> None:
    method, meaning = CALLS[name]

    def total(x: Any) -> Any:
        return np.sum(method(wg.asarray(x)) * 1.5)

    def expected(x: Any) -> Any:
        return np.sum(meaning(x) * 1.5)

    np.testing.assert_allclose(method(wg.asarray(X)).numpy(), meaning(X), rtol=1e-14)
    leaf = wg.tensor(X, requires_grad=True)
    total(leaf).backward()
    slope = wg.grad(expected)(X)
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(wg.grad(total)(X), slope, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(wg.jit(wg.grad(total))(X), slope, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(wg.vmap(wg.grad(total))(X[None])[0], slope, rtol=1e-12, atol=1e-15)


def test_numbers_and_views() -> None:
    x = wg.tensor(X)
    assert (x.numel(), type(x.numel())) == (6, int)
    y = x.view(6)
    y[0] = 9.0
    assert x[0, 0] == 9.0
    with pytest.raises(ValueError, match="Unable to avoid creating a copy while reshaping"):
        x.T.view(6)
    text = "view: the dtype float32; a shape is needed, because elements are not read as others. Convert them with "
    text += ".astype."
    with pytest.raises(DtypeError, match="^" + re.escape(text) + "$"):
        x.view(np.float32)
    with pytest.raises(DtypeError, match=r"Write numpy\.stack\(\[x\.real, x\.imag\], axis=-1\), and reshape it\.$"):
        (x * 1j).view(float)
    with pytest.raises(DtypeError, match=r"others\. Write x\[\.\.\., ::2\] \+ 1j \* x\[\.\.\., 1::2\]\.$"):
        x.view(complex)


def test_unary_and_binary_methods_are_numpys_functions() -> None:
    x = wg.tensor(X)
    for name, method in METHODS.items():
        if isinstance(method, MissingAttribute) or method.__name__ != name or "numpy." not in (method.__doc__ or ""):
            continue
        function = getattr(np, re.findall(r"numpy\.(\w+)", method.__doc__)[0])
        with np.errstate(all="ignore"):
            args = () if "another" not in method.__doc__ else (x.T if name in ("mm", "mv", "matmul") else x,)
            found, expected = getattr(x, name)(*args), function(x, *args)
        assert type(found) is wg.Tensor
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@together("name", hints("attributes", "Tensor"))
def test_other_names_say_how_the_same_is_written(name: str) -> None:
    x = wg.tensor(X)
    assert not hasattr(x, name)
    text = f"'Tensor' object has no attribute {name!r}; write {hints('attributes', 'Tensor')[name]}"
    with pytest.raises(AttributeError, match="^" + re.escape(text) + "$"):
        getattr(x, name)


@together(
    "name, written",
    {
        "squeeze_": "x = x.squeeze(axis)",
        "relu_": "x[...] = wengert.nn.functional.relu(x)",
        "eq_": "x[...] = x == y",
        "bitwise_and": "np.bitwise_and(x)",
    }.items(),
)
def test_methods_in_place_and_of_numpy_say_how_they_are_written(name: str, written: str) -> None:
    with pytest.raises(
        AttributeError, match="^" + re.escape(f"'Tensor' object has no attribute {name!r}; write {written}") + "$"
    ):
        getattr(wg.tensor(X), name)


def test_hints_about_attributes_are_of_names_that_classes_refuse() -> None:
    classes = (wg.Tensor, Graph, Picture, Translation, Jitted, CustomRule, wg.optim.Optimizer)
    refused = {kind.__name__: {k for k, x in vars(kind).items() if isinstance(x, MissingAttribute)} for kind in classes}
    known = {kind: set(names) for kind, names in hints("attributes").items() if kind != "distribution"}
    instead = {name for name in refused["Tensor"] - known["Tensor"] if name.endswith("_") or hasattr(np, name)}
    assert refused == {**known, "Tensor": known["Tensor"] | instead}


def test_what_is_to_be_written_exists() -> None:
    for written in hints("attributes", "Tensor").values():
        for path in re.findall(r"(?:np|wengert)((?:\.\w+)+)", written):
            found: Any = np if "np" + path in written else wg
            for part in path.split(".")[1:]:
                found = getattr(found, part)
        for member in re.findall(r"\bx\.(\w+)", written):
            assert hasattr(wg.Tensor, member)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("zeros", "numpy.zeros"),
        ("linspace", "numpy.linspace"),
        ("det", "numpy.linalg.det"),
        ("Function", "autograd.Function"),
        ("relu", "nn.functional.relu"),
        ("minimize", "optim.minimize"),
        ("check_grads", "testing.check_grads"),
    ],
)
def test_names_of_modules_say_where_they_are(name: str, place: str) -> None:
    text = f"module 'wengert' has no attribute {name!r}; it is wengert.{place}"
    with pytest.raises(AttributeError, match="^" + re.escape(text) + "$"):
        getattr(wg, name)
    with pytest.raises(AttributeError, match=r"^module 'wengert' has no attribute 'nothing'$"):
        wg.nothing  # noqa: B018 - asked for its error


def test_arrays_are_made_in_the_form_of_anything() -> None:
    wnp = wg.numpy
    for plain in (2.0, 1j, True, np.float64(2.0), np.ones(2), [1.0]):
        for made in (wnp.zeros(3, like=plain), wnp.array([1.0, 2.0], like=plain), wnp.eye(2, like=plain)):
            assert type(made) is np.ndarray
        assert wnp.full((2,), 3, dtype=np.float32, like=plain).dtype == np.float32
    x = wg.tensor(2.0, requires_grad=True)
    for made in (wnp.zeros(3, like=x), wnp.array([x, 2.0], like=1.0), wnp.full(2, x, like=1.0), wnp.zeros(3)):
        assert type(made) is wg.Tensor

    def powers(x: Any) -> Any:
        y = wnp.ones(4, like=x)
        for i in range(3):
            y[i + 1] = y[i] * x
        return y

    assert type(powers(2.0)) is np.ndarray
    np.testing.assert_array_equal(powers(2.0), [1.0, 2.0, 4.0, 8.0])
    slope = [0.0, 1.0, 4.0, 12.0]
    for run in (wg.jacobian(powers), wg.jit(wg.jacobian(powers)), wg.jacfwd(powers)):
        np.testing.assert_array_equal(run(2.0), slope)
    np.testing.assert_array_equal(wg.vmap(wg.jacobian(powers))(np.array([2.0]))[0], slope)
    powers(x)[3].backward()
    assert x.grad == 12.0


def test_an_option_by_both_names_is_an_error() -> None:
    with pytest.raises(TypeError, match="multiple values for keyword argument 'dim'"):
        wg.tensor(X).norm(axis=0, dim=1)


@together("name", hints("modules", "wengert.autograd"))
def test_names_of_pytorchs_autograd_say_how_the_same_is_written(name: str) -> None:
    text = f"module 'wengert.autograd' has no attribute {name!r}; write {hints('modules', 'wengert.autograd')[name]}"
    with pytest.raises(AttributeError, match="^" + re.escape(text) + "$"):
        getattr(wg.autograd, name)


@pytest.mark.parametrize(
    ("call", "written"),
    [
        (lambda x: x.max(dim=0), "axis="),
        (lambda x: x.sum(dim=0), "axis="),
        (lambda x: x.sort(dim=0), "axis="),
        (lambda x: x.mean(axis=0, keepdim=True), "keepdims="),
        (lambda x: x.var(unbiased=False), "ddof=1 (True) or ddof=0 (False)"),
        (lambda x: x.std(correction=0), "ddof="),
        (lambda x: wg.numpy.sum(x, dim=0), "axis="),
        (lambda x: wg.numpy.stack([x, x], dim=0), "axis="),
        (lambda x: wg.numpy.median(x, dim=0), "axis="),
        (lambda x: wg.numpy.roll(x, 1, dims=0), "axis="),
        (lambda x: wg.numpy.linalg.norm(x, dim=0), "axis="),
        (lambda x: wg.scipy.special.logsumexp(x, keepdim=True), "keepdims="),
    ],
)
def test_parameters_of_pytorchs_say_what_they_are_called(call: Any, written: str) -> None:
    text = re.compile(r"\(\) got an unexpected keyword argument '\w+'; write " + re.escape(written) + "$")
    for x in (wg.tensor(np.ones((2, 2)), requires_grad=True), wg.tensor(np.ones((2, 2)))):
        with pytest.raises(TypeError, match=text):
            call(x)
    for transformation in (wg.grad, wg.jit, wg.vmap, lambda f: wg.jit(wg.grad(f))):
        with pytest.raises(TypeError, match=text) as error:
            transformation(lambda x: call(x).sum())(np.ones((2, 2)))
        assert not hasattr(error.value, "__notes__")


@pytest.mark.parametrize(
    "call", [lambda x: np.sum(x, dim=0), lambda x: np.stack([x, x], dim=0), lambda x: np.median(x, dim=0)]
)
def test_numpys_own_errors_about_parameters_of_pytorchs_get_a_note(call: Any) -> None:
    for transformation in (wg.grad, wg.jit, wg.vmap, lambda f: wg.jit(wg.grad(f))):
        with pytest.raises(TypeError, match="got an unexpected keyword argument") as error:
            transformation(lambda x: call(x).sum())(np.ones((2, 2)))
        note = "Functions and methods of Wengert have NumPy's parameters: write axis= for dim=."
        assert error.value.__notes__ == [note]


def test_parameters_that_nobody_has_are_plain_errors() -> None:
    with pytest.raises(TypeError, match=r"^Tensor.sum\(\) got an unexpected keyword argument 'nonsense'$"):
        wg.tensor(X).sum(nonsense=0)  # type: ignore[arg-type]  # that is the mistake
    assert np.array_equal(wg.numpy.std(X, correction=1), np.std(X, ddof=1))


def test_permute_takes_the_axes_by_name() -> None:
    assert wg.tensor(np.ones((2, 3))).permute(dims=(1, 0)).shape == (3, 2)


def test_parameters_of_the_users_own_functions_are_no_concern() -> None:
    def own(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match="got an unexpected keyword argument") as error:
        wg.grad(lambda x: own(x, dim=0))(1.0)  # type: ignore[call-arg]  # that is the mistake
    assert not hasattr(error.value, "__notes__")
