"""Traces of transformations: they end, and values that are used afterwards are refused, naming the line that made them.

While a sweep runs a function once more (`reviving`), traces older than its first run work again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, ClassVar, Self

from wengert.core.diagnostics.source_positions import position_of
from wengert.core.values.recording import has_ended
from wengert.core.values.tensor import Tensor, Trace
from wengert.errors import EscapedValueError, GraphError


class Transient(Trace):
    """Be the trace of one call of a transformation; as a context it ends with it, errors included.

    Attributes:
        label: the transformation and its function, for errors; or what returns that, if it takes time to say.
        ended: whether the call is over.
    """

    __slots__ = ("ended", "label")
    remedy: ClassVar[str] = "Return it from the function (has_aux=True), or store wengert.stop_gradient(value)"

    def __init__(self, level: int, label: str | Callable[[], str]) -> None:
        super().__init__(level)
        self.label = label
        self.ended = False

    @property
    def owner_name(self) -> str:
        """The transformation and its function, for errors."""
        return self.label if isinstance(self.label, str) else self.label()

    def end(self) -> None:
        """Refuse operations from now on: the transformation is over."""
        self.ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def made_at(self, tensor: Tensor) -> tuple[CodeType, int]:
        """Return code and instruction offset of the operation that made a Tensor of this trace."""
        raise NotImplementedError

    def made_by(self, tensor: Tensor) -> str:
        """Return the name of that operation, where the trace knows it."""
        return ""

    def require_alive(self, operands: Sequence[Any]) -> None:
        """Raise an EscapedValueError if the transformation is over."""
        if has_ended(self):
            raise self.escape_error(operands)

    def escape_error(self, operands: Sequence[Any]) -> EscapedValueError:
        """Return the error about an operand used after its transformation ended."""
        tensor = next(x for x in operands if type(x) is Tensor and x._trace is self)
        name = self.made_by(tensor)
        given = f"a value {name and f'({name}) '}that escaped, created at {position_of(*self.made_at(tensor))}"
        needed = "values of a transformation may be used only until it ends"
        return EscapedValueError(self.owner_name, given, needed, self.remedy)

    def state(self, tensor: Tensor) -> Any:
        """Refuse: what the trace knows of a Tensor means nothing outside its transformation."""
        raise pickling_error(f"a Tensor of {self.owner_name}", "Use wengert.stop_gradient first")


def pickling_error(given: str, instead: str) -> GraphError:
    """Return the error about a Tensor that cannot go to another process, where no transformation waits for it."""
    needed = "a plain Tensor is needed, because derivatives do not follow a value out of the process"
    return GraphError("pickle", given, needed, f"{instead}, or differentiate inside of the task that gets it")
