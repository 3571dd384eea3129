"""What a transformation cannot do as plain NumPy does is an error that the function of the user cannot hide."""

import contextlib
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError, TracedTruthError

MODES = {
    "jit": lambda f: wg.jit(f)(3.0),
    "grad": lambda f: wg.grad(f)(3.0),
    "jvp": lambda f: wg.jvp(f, (3.0,), (1.0,)),
    "vmap": lambda f: wg.vmap(f)(np.array([3.0, 4.0])),
    "taylor": lambda f: wg.taylor(f, (3.0,), (1.0,), 2),
    "trace": lambda f: wg.graph.trace(f)(3.0),
    "jit(grad)": lambda f: wg.jit(wg.grad(f))(3.0),
    "grad(jit)": lambda f: wg.grad(wg.jit(f))(3.0),
    "jit(vmap)": lambda f: wg.jit(wg.vmap(f))(np.array([3.0, 4.0])),
    "grad(checkpoint)": lambda f: wg.grad(wg.checkpoint(f))(3.0),
    "cond": lambda f: wg.jit(lambda v: wg.cond(v > 0, f, lambda u: u * 1.0, v))(3.0),
    "scan": lambda f: wg.jit(lambda v: wg.scan(lambda c, _: (f(c), c), v, np.ones(2)))(3.0),
    "while_loop": lambda f: wg.jit(lambda v: wg.while_loop(lambda c: c < 9, f, v))(3.0),
    "call": lambda f: wg.jit(lambda v: wg.call(f, v))(3.0),
}


def caught_by_except(v):
    try:
        y = float(v)
    except Exception:  # noqa: BLE001 - which is what is tested
        y = -1.0
    return y + v


def caught_by_manager(v):
    with contextlib.suppress(Exception):
        return v * float(v)
    return v


def caught_by_finally(v):
    for _ in range(1):
        try:
            return v * float(v)
        finally:
            break  # noqa: B012 - which is what is tested
    return v


@together("mode", MODES)
@together("function", [caught_by_except, caught_by_manager, caught_by_finally])
def test_a_refusal_that_the_function_catches_is_raised_in_the_end(mode, function):
    with pytest.raises(GraphError, match=r"float") as info:
        MODES[mode](function)
    if function is caught_by_finally:  # which conversion rewrites so that the error is not caught
        return
    assert "The function caught this error and went on" in info.value.__notes__[-1]


def test_a_decision_inside_of_try_is_converted():
    @wg.jit
    def f(v):
        try:
            if v > 0:
                return v * 2.0
            return v
        except Exception:  # noqa: BLE001 - which is what is tested
            return v * 100.0

    assert f(3.0) == 6.0
    assert f(-3.0) == -3.0


def test_a_refusal_inside_of_an_inner_transformation_is_raised_by_the_outer_one():
    def f(v):
        try:
            return wg.jit(lambda u: u * float(u))(v)
        except Exception:  # noqa: BLE001 - which is what is tested
            return v

    with pytest.raises(TracedTruthError, match=r"float\(u\)"):
        wg.jit(f)(3.0)
    with pytest.raises(TracedTruthError, match=r"float\(u\)"):
        wg.grad(f)(3.0)


def test_functions_without_derivatives_are_not_given_up_silently():
    def f(v):
        try:
            return np.sum(np.emath.sqrt(v))
        except TypeError:
            return np.sum(v)

    with pytest.raises(TypeError, match=r"sqrt"):
        wg.grad(f)(np.eye(2))


def test_writes_into_an_ndarray_are_not_given_up_silently():
    def f(v):
        total = np.zeros(2)
        try:
            total += v
        except Exception:  # noqa: BLE001 - which is what is tested
            total = v * 0.0
        return np.sum(total)

    with pytest.raises(TypeError, match=r"a result that is a Tensor"):
        wg.grad(f)(np.ones(2))
    assert wg.jit(f)(np.ones(2)) == 2.0


def test_errors_that_plain_numpy_raises_may_be_caught():
    def f(v):
        try:
            return np.sum(v @ np.ones((3, 3)))
        except ValueError:
            return np.sum(v * 2.0)

    x = np.ones(2)
    np.testing.assert_array_equal(wg.grad(f)(x), [2.0, 2.0])
    assert wg.jit(f)(x) == 4.0
    assert wg.vmap(f)(np.ones((2, 2))).tolist() == [4.0, 4.0]


def test_on_the_tape_a_number_may_be_asked_for():
    x = wg.tensor(3.0, requires_grad=True)
    (caught_by_except(x)).backward()
    assert x.grad.item() == 1.0


def test_an_error_in_one_lane_does_not_decide_for_the_others():
    def inverse(a):
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return np.zeros_like(a)

    def element(row, i):
        try:
            return row[i]
        except IndexError:
            return row[0]

    both = np.stack([np.eye(2), np.ones((2, 2))])
    with pytest.raises(GraphError, match=r"LinAlgError \(Singular matrix\) in one of the lanes at .*np.linalg.inv"):
        wg.vmap(inverse)(both)
    with pytest.raises(GraphError, match=r"IndexError .* in one of the lanes"):
        wg.vmap(element)(np.ones((2, 3)), np.array([0, 5]))
    with pytest.raises(np.linalg.LinAlgError):
        wg.vmap(np.linalg.inv)(both)
    np.testing.assert_array_equal(wg.vmap(inverse)(both[:1]), both[:1])


def test_what_was_caught_before_the_next_try_is_forgotten():
    def f(v):
        y = v if v > 0 else -v
        return wg.jit(lambda u: u if u > 1 else u * 2.0)(y)

    assert wg.jit(f)(3.0) == 3.0
    assert wg.jit(f)(-0.5) == 1.0


def iterated(x):
    total, pairs = np.sum(x), enumerate(x)
    try:
        for i, v in pairs:
            if v > 0.5:
                break
            total = total + i
    except ValueError:
        total = total * 0.0
    return total


def masked(x):
    y = x * 1.0
    try:
        y *= np.median(y[y > 0.5])
    except ValueError:
        y = y * 0.0
    return np.sum(y)


def asserting(x):
    y = x * 1.0
    try:
        if x[0] > 0.5:
            raise LookupError
    except (LookupError, wg.errors.GraphError):
        assert x[1] < 0.0
    return np.sum(y)


def test_what_is_asserted_after_a_refusal_was_caught_is_not_asked():
    x = np.array([0.2, 0.7])
    assert asserting(x) == np.sum(x)
    with pytest.raises(wg.errors.GraphError, match="LookupError"):
        wg.jit(asserting)(x)


def test_errors_about_the_use_of_the_library_are_refusals_too():
    x = np.array([0.2, 0.7, 0.1])
    for function, transformed in (
        (iterated, wg.jit(iterated)),
        (iterated, wg.grad(wg.jit(iterated))),
        (masked, lambda x: wg.vmap(masked)(np.stack([x, x]))),
        (masked, lambda x: wg.jit(wg.vmap(wg.grad(masked)))(np.stack([x, x]))),
    ):
        function(x)
        with pytest.raises(wg.errors.UsageError, match="needed") as raised:
            transformed(x)
        assert "The function caught this error" in raised.value.__notes__[0]


# Numbers taken out, and looked up

POINT = np.array([2.0, 1.0])
TRANSFORMATIONS: dict[str, Any] = {
    "grad": lambda f: wg.grad(f)(POINT),
    "jvp": lambda f: wg.jvp(f, (POINT,), (POINT,)),
    "linearize": lambda f: wg.linearize(f, POINT),
    "taylor": lambda f: wg.taylor(f, (POINT,), (POINT,), 1),
    "second": lambda f: wg.hessian(f)(POINT),
    "vmap": lambda f: wg.vmap(f)(np.stack([POINT, POINT])),
    "jit": lambda f: wg.jit(f)(POINT),
}


@together("mode", TRANSFORMATIONS)
@together(
    "function",
    [
        lambda x: x[0].item() * x[0],
        lambda x: x.tolist()[0] * x[0],
        lambda x: np.frombuffer(x.tobytes())[0] * x[0],
        lambda x: {2.0: 5.0}.get(x[0], 1.0) * x[0],
        lambda x: len(set(x)) * x[0],
        lambda x: len(dict.fromkeys(x * x)) * x[0],
    ],
)
def test_numbers_are_not_taken_out_of_what_is_transformed(function: Any, mode: str) -> None:
    with pytest.raises(GraphError):
        TRANSFORMATIONS[mode](function)


@pytest.mark.parametrize("name", ["item", "tolist", "tobytes"])
def test_what_takes_numbers_out_says_what_to_do(name: str) -> None:
    text = (
        f"{name}: a Tensor that a transformation is differentiating; a plain value is needed, because a Python number "
        f"would silently lose the gradient. Leave {name} out, use wengert.numpy functions in place of math, or apply "
        "wengert.stop_gradient first."
    )
    with pytest.raises(GraphError) as error:
        wg.grad(lambda x: getattr(x, name)() and x[0])(POINT)
    assert str(error.value) == text


def test_a_look_up_of_what_is_differentiated_says_what_to_do() -> None:
    with pytest.raises(GraphError) as error:
        wg.grad(lambda x: {2.0: 5.0}.get(x[0], 1.0) * x[0])(POINT)
    text, _, place = str(error.value).partition("\n  ")
    assert text == (
        "hash: a Tensor that a transformation is differentiating, looked up or stored by its value; a plain number is "
        "needed. Convert it with int() or round(), or compare with == what it may be."
    )
    assert place.startswith(f'File "{__file__}"')


@pytest.mark.parametrize("mode", ["grad", "jvp", "linearize", "taylor"])
def test_scalars_that_are_not_differentiated_are_found_by_value_as_numpys(mode: str) -> None:
    def function(x: Any) -> Any:
        total = {0: 3.0, 1: 4.0}[np.argmax(x)] + {True: 5.0}[x[0] > 1.0] + {2.0: 6.0}[wg.stop_gradient(x[0])]
        total += len({np.argmax(x), np.argmax(x), np.argmin(x)}) + (np.argmin(x) in {1}) + {2: 7.0}[round(x[0])]
        return total * x[0]

    assert TRANSFORMATIONS[mode](function) is not None
    np.testing.assert_array_equal(wg.grad(function)(POINT), [24.0, 0.0])
    assert function(POINT) == 48.0


def test_plain_tensors_and_leaves_are_found_by_identity() -> None:
    one, other, leaf = wg.tensor(2.0), wg.tensor(2.0), wg.tensor(2.0, requires_grad=True)
    found = {one: "one", other: "other", leaf: "leaf"}
    assert (found[one], found[other], found[leaf]) == ("one", "other", "leaf")
    assert wg.grad(lambda x: x * len(found[leaf]))(1.0) == 4.0
    placeholder = wg.graph.placeholder("x")
    assert {placeholder: 1}[placeholder] == 1


@pytest.mark.parametrize("dtype", [object, str])
@pytest.mark.parametrize("transform", [wg.grad, wg.jit, lambda f: wg.jit(wg.grad(f)), wg.jacfwd])
def test_conversions_to_what_no_gradient_follows(transform: Any, dtype: Any) -> None:
    with pytest.raises(GraphError, match=r"^astype: dtype .* for a Tensor that is being differentiated or traced; "):
        transform(lambda v: np.sum(v.astype(dtype).astype(float)) + v[0])(np.array([0.7, -1.3]))
