"""What the library remembers has bounds, and is about the thing itself, not its name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import wengert as wg
from wengert.core.cache import MOST_KNOWN, Cache
from wengert.core.complaints import REGISTRIES
from wengert.core.labels import Labels, labelled
from wengert.core.primitive import PRIMITIVES, Primitive
from wengert.core.routine import core_ranks
from wengert.core.source import FILES, MARKS, is_own


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
        labels.lifted(size, (True, False))
    assert len(labels.derived) <= 256


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
