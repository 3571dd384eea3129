"""What networks are made of: `wengert.nn.functional`."""

from typing import TYPE_CHECKING, NoReturn

from wengert.nn import functional
from wengert.support.hints import missing_name, written_elsewhere

__all__ = ["functional"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        if name[0].isupper():
            hint = "layers are functions of wengert.nn.functional, on Tensors that a class of yours holds"
            written = written_elsewhere(name)
            hint += f": write {written}" if written else ""
            raise AttributeError(f"module 'wengert.nn' has no attribute {name!r}; {hint}")
        raise missing_name("wengert.nn", name)
