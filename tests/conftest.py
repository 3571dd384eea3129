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
from collections.abc import Generator

import pytest

# Two threads take three times as long for matrices of three rows; OpenBLAS looks when NumPy or SciPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

from tests.cases import OPTIONS, a_third

os.environ.setdefault("WENGERT_NATIVE", "0")

# Without bytecode each of a hundred processes that tests start would compile the library anew, for half of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.set_threshold(20_000, 10, 10)  # to parse all files of the package took 2,000 collections of the young

PLACES: dict[str, int] = {}
"""The places of files, in the order in which their tests run."""

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
    if OPTIONS.every:
        config.option.markexpr = ""
    settings.register_profile("untimed", deadline=None, max_examples=a_third(100))
    settings.load_profile("untimed")
    OPTIONS.primitives = frozenset(config.getoption("--primitive"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin with other files, which others find rewritten: that takes most of the time."""
    report = yield
    if collector.nodeid == "tests" and report.result:
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        first = len(report.result) * worker // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        PLACES.update({node.nodeid: i for i, node in enumerate(report.result)})
        report.result = [*report.result[first:], *report.result[:first]]
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests back into the order that all workers have."""
    items.sort(key=lambda item: PLACES.get(item.nodeid.split("::")[0], 0))


def pytest_collection_finish() -> None:
    """Leave what importing and collecting made out of garbage collections, of which some tests do hundreds."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(nextitem: pytest.Item | None, item: pytest.Item) -> None:
    """Leave what the tests of a file have kept out of later collections, which took a tenth of the time of all."""
    if nextitem is not None and nextitem.path != item.path:
        gc.freeze()
