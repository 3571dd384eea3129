"""docs/supported.md says what may be done with each function: of all functions, and as it is."""

import re
from functools import cache

import numpy as np
import pytest

from tests.cases import some_of, together
from tools import supported

CASES = [(module, name) for module in supported.MODULES for name in supported.functions(module)]


@cache
def rows() -> dict[tuple[str, str], str]:
    """The lines of the page, by module and function."""
    parts = re.split(r"^## ([\w.]+)$", supported.PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        (module, re.match(r"\| `(\w+)`", line)[1]): line
        for module, text in zip(parts[::2], parts[1::2], strict=True)
        for line in text.splitlines()
        if line.startswith("| `")
    }


def test_the_page_has_every_function():
    assert set(rows()) == set(CASES), "run `python -m tools.supported`"


@pytest.mark.filterwarnings("ignore")
@together("module, name", some_of(some_of(CASES, "supported"), "of these"))
def test_the_page_is_true(module, name):
    with np.errstate(all="ignore"):
        assert rows()[module, name] == str(supported.row(module, name)), "run `python -m tools.supported`"
