"""What holds for all tests.

None is timed, because other programs may use the machine too. Machine code is kept for one run. Jitted functions run
as NumPy, which compiles nothing and has its bits, unless a test is of native code or the environment has
WENGERT_NATIVE=1.
"""

import atexit
import gc
import os
import shutil
import sys
import tempfile

import pytest

# Two threads take three times as long for matrices of three rows; OpenBLAS looks when NumPy or SciPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

from tests.cases import OPTIONS

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

os.environ.setdefault("WENGERT_NATIVE", "0")

# Without bytecode each of a hundred processes that tests start would compile the library anew, for half of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers have the folder of the process that started them
    folder = tempfile.mkdtemp(prefix="wengert-cache-")
    os.environ["WENGERT_CACHE"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jitted functions as NumPy, also where all others are compiled: for tests of what native code has not."""
    monkeypatch.setattr("wengert.support.config.NATIVE", False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of these tests; CONTRIBUTING.md says when they are of use."""
    parser.addoption("--every", action="store_true", help="run all cases, also those that others stand for")
    parser.addoption("--primitive", action="append", default=[], help="run over the samples of this primitive only")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests know what was asked for."""
    OPTIONS.every = config.getoption("--every")
    OPTIONS.primitives = frozenset(config.getoption("--primitive"))


def pytest_collection_finish() -> None:
    """Leave what importing and collecting made out of garbage collections, of which some tests do hundreds."""
    gc.collect()
    gc.freeze()
