"""Let BLAS use one thread while partitions are summed up: the bits of its products depend on how many it has."""

from __future__ import annotations

import sys
import threading
from types import TracebackType

from wengert.native.lapack import OFFERED, ROUTINES, library_of


class BlasOnOneThread:
    """Be the context in which NumPy's and SciPy's libraries use one thread each; threads may enter it side by side."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entered = 0
        self.before: list[tuple[object, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            self.entered += 1
            if self.entered == 1:
                names = [ROUTINES, *[name for name in OFFERED[:1] if "scipy.linalg" in sys.modules]]
                libraries = {id(library): library for library in map(library_of, names)}.values()
                self.before = [(library, count) for library in libraries if (count := library.count()) > 1]
                for library, _ in self.before:
                    library.use(1)  # type: ignore[attr-defined]  # a Library

    def __exit__(self, _kind: type | None, _error: BaseException | None, _traceback: TracebackType | None) -> None:
        with self.lock:
            self.entered -= 1
            if not self.entered:
                for library, count in self.before:
                    library.use(count)  # type: ignore[attr-defined]  # a Library


ONE_THREAD = BlasOnOneThread()
