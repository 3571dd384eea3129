"""What networks are made of: `wengert.nn.functional`."""

from typing import TYPE_CHECKING, NoReturn

from wengert._otherwise import OTHERWISE, said_of
from wengert.nn import functional

__all__ = ["functional"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        said = "; layers are functions of wengert.nn.functional, on Tensors that a class of yours holds"
        if not name[0].isupper():
            said = said_of(name, OTHERWISE)
        raise AttributeError(f"module 'wengert.nn' has no attribute {name!r}{said}")
