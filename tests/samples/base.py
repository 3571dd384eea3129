"""The form of a sample, and ways to make its arrays."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Fixed", "Sample", "fixed", "integers", "normal", "positive", "sample", "spaced", "uniform"]


@dataclass(frozen=True)
class Fixed:
    """Hold an argument that is not differentiated."""

    value: Any


@dataclass(frozen=True)
class Sample:
    """Hold a call: every float array (or list of them) among `args` is differentiated unless it is `Fixed`.

    `primitive` is the name of the primitive exercised, `order` the highest derivative that exists at these points,
    `topic` the module that has it.
    """

    primitive: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    order: int
    topic: str = ""

    @property
    def name(self) -> str:
        """A readable identifier."""
        shapes = ",".join(
            str(np.shape(a)) if isinstance(a, np.ndarray | float) else type(a).__name__ for a in self.args
        )
        function = getattr(self.function, "__name__", "call")
        return f"{self.primitive}-{function}-{shapes}-{','.join(f'{k}={v}' for k, v in self.kwargs.items())}"


def sample(primitive: str, function: Callable[..., Any], *args: Any, order: int = 2, **kwargs: Any) -> Sample:
    """Return the sample call `function(*args, **kwargs)` of a primitive."""
    return Sample(primitive, function, args, kwargs, order)


def fixed(value: Any) -> Fixed:
    """Return an argument that is not differentiated."""
    return Fixed(value)


def _generator(kind: str, shape: tuple[int, ...], seed: int) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{kind}{shape}{seed}".encode()))


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return standard normal numbers."""
    return _generator("normal", shape, seed).normal(size=shape)


def uniform(low: float, high: float, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return uniform numbers of an interval."""
    return _generator("uniform", shape, seed).uniform(low, high, size=shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return uniform numbers between 0.5 and 2."""
    return uniform(0.5, 2.0, *shape, seed=seed)


def spaced(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return distinct numbers, at least 0.1 apart, in random order: for sorts and maxima."""
    size = int(np.prod(shape))
    order = _generator("spaced", shape, seed).permutation(size)
    return (order * 0.3 - 0.13 * size + 0.1).reshape(shape)


def integers(low: int, high: int, *shape: int, seed: int = 0) -> Fixed:
    """Return random integers as an argument that is not differentiated."""
    return Fixed(_generator("integers", shape, seed).integers(low, high, size=shape))
