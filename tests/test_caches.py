"""What the library remembers has bounds, and is about the thing itself, not its name."""

from __future__ import annotations

import functools
import gc
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert.conversion.function_source import remember
from wengert.core.diagnostics.numpy_warnings import REGISTRIES
from wengert.core.diagnostics.source_positions import FILES, MARKS, is_own
from wengert.core.forms.labels import Labels, labelled
from wengert.core.forms.routine import core_ranks
from wengert.core.graph.identity import content
from wengert.core.memory import possible_aliases
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.frozen import freeze
from wengert.native.loader import CodeMemory
from wengert.nn.functional import _sampling
from wengert.scipy.ndimage import _interpolation
from wengert.support.caches import MOST_KNOWN, Cache
from wengert.transforms.jit import MOST_FORMS, MOST_INSTANCES


def test_what_variadic_operations_save_is_not_remembered() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    for i in range(9):
        np.stack([x if (i >> k) & 1 else 1.0 for k in range(4)])
        np.concatenate([np.reshape(x, 1) if (i >> k) & 1 else np.ones(1) for k in range(4)])
    assert not PRIMITIVES["stack"].savings
    assert not PRIMITIVES["concatenate"].savings


@pytest.mark.parametrize("cache", [REGISTRIES, FILES, Primitive("example", np.sin).savings])
def test_caches_have_bounds(cache: object) -> None:
    assert isinstance(cache, Cache)


def test_labels_of_many_lengths_are_not_all_remembered() -> None:
    labels: Labels = labelled(((2, 3), (3, 4)), ("ij", "jk"), "ik")
    for size in range(1000):
        labels.add_lane(size, (True, False))
    assert len(labels.derived_labels) <= 256


def test_marks_outlive_what_is_remembered_of_files() -> None:
    marked = next(iter(MARKS))
    for i in range(MOST_KNOWN + 1):
        assert not is_own(f"<typed {i}>")
    assert len(FILES) <= MOST_KNOWN
    assert FILES[marked] is MARKS[marked]
    assert is_own(marked)


def test_ranks_are_remembered_as_they_were() -> None:
    assert core_ranks("(n),()->()", 3) == (1, 0, 0)


@pytest.mark.filterwarnings("default")
def test_functions_of_one_name_are_warned_of_each() -> None:
    def looking(k: float) -> wg.custom_rule:
        @wg.custom_rule
        def look(x):
            return x * k if x > 0 else x

        look.defvjp(lambda x: (look(x), x), lambda x, ct: (ct * k,))
        return look

    first, second = looking(1.0), looking(2.0)
    for rule, count in ((first, 1), (first, 0), (second, 1)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            wg.vmap(rule)(np.ones(3))
        assert len([w for w in said if "lane by lane" in str(w.message)]) == count


@pytest.mark.filterwarnings("ignore:jit. .* has been traced")
def test_forms_that_were_not_used_for_long_go() -> None:
    jitted = wg.jit(lambda x: np.sum(x * x))
    w = wg.tensor(1.0, requires_grad=True)
    jitted(np.ones(0))
    forms = []
    for n in range(1, MOST_FORMS + 20):
        jitted(np.ones(n))
        forms.append(weakref.ref(next(reversed(jitted.forms.values()))))
        jitted(np.ones(n) * w)  # whose halves and form refer to each other
        if n % 50 == 0:
            jitted(np.ones(0))
    assert len(jitted.forms) == MOST_FORMS
    traced = jitted.trace_count
    jitted(np.ones(0))  # the first one, used last
    assert jitted.trace_count == traced
    del jitted
    assert sum(form() is not None for form in forms) <= MOST_FORMS  # they go at once


class Point(NamedTuple):
    x: float

    @functools.partial(wg.jit)
    def scaled(self, y: Any) -> Any:
        return self.x * y


def test_instances_that_cannot_be_referred_to_weakly_do_not_stay_for_ever() -> None:
    points = [Point(float(i)) for i in range(MOST_INSTANCES + 10)]
    method = vars(Point)["scaled"]
    for point in points:
        assert point.scaled(2.0) == point.x * 2.0
    assert len(method.kept) == MOST_INSTANCES
    traced = method.of_instance(points[-1])
    assert points[-1].scaled(3.0) == points[-1].x * 3.0
    assert method.of_instance(points[-1]) is traced
    assert traced.trace_count == 1


@pytest.mark.parametrize("cached", [_sampling.resized_taps, _interpolation.spline_bands, _interpolation.round_matrix])
def test_arrays_for_each_length_are_not_all_remembered(cached: Any) -> None:
    assert cached.cache_info().maxsize <= 64


class Model:
    @wg.jit
    def method(self, x: Any) -> Any:
        return x * 2.0


class Reader:
    def begin_anew(self) -> None:
        raise AssertionError


def of_an_instance() -> Any:
    model = Model()
    assert model.method(1.0) == 2.0
    return model


def of_converted_code() -> Any:
    return remember(compile("x + 1", "<typed by a test>", "eval"))


def of_a_large_array() -> Any:
    array = np.arange(10_000.0)
    array.flags.writeable = False
    content(array)
    return array


def of_a_constant() -> Any:
    tensor = wg.tensor(1.0)
    freeze([tensor], reader)
    return tensor


def of_memory_that_is_shared() -> Any:
    one = wg.tensor([1.0])
    possible_aliases.shared_with(one, other, "")
    return one


reader, other = Reader(), wg.tensor([2.0])


@pytest.mark.parametrize(
    "make",
    [
        of_an_instance,
        of_converted_code,
        of_a_large_array,
        of_a_constant,
        of_memory_that_is_shared,
        lambda: CodeMemory(10),
    ],
)
def test_no_line_of_python_runs_when_objects_go(make: Callable[[], Any]) -> None:
    """Where one begins, signals are handled; what that raises is lost there, and Ctrl-C with it."""
    thing, lines = make(), list[str]()
    gc.collect()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: lines.append(frame.f_code.co_name) if event == "call" else None)
    try:
        del thing
    finally:
        sys.setprofile(before)
    assert lines == []
