"""Sample calls of primitives: one line of data each, from which all tests of a rule are generated."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

from tests.samples.base import Sample

__all__ = ["SAMPLES"]


def collected() -> list[Sample]:
    """Return the samples of every module of this package."""
    topics = [info.name for info in pkgutil.iter_modules(__path__)]
    modules = [(topic, importlib.import_module(f"{__name__}.{topic}")) for topic in topics]
    return [replace(sample, topic=topic) for topic, module in modules for sample in getattr(module, "SAMPLES", ())]


SAMPLES = collected()
