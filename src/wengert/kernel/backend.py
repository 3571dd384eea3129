"""Back ends: what carries out programs, on a processor or anything else, behind one interface.

    code = backend.render(program)  # to be read, with all that is needed to build it
    image = backend.build(code)  # to be run here
    data = backend.pack(image, beside)  # the same as numbers, strings and bytes, which another process unpacks
    outputs = backend.load(image)(inputs)

`compile.programs.using` says which of them carries out graphs. `evaluation.Evaluator` is one that needs nothing;
`compile.programs.Processor` is used otherwise. A further one is a folder with a class that derives from this.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from wengert.kernel.kernel import Program

Code = TypeVar("Code")
Image = TypeVar("Image")

Loaded = Callable[[Sequence[Any]], Sequence[Any]]
"""A program as a function of arrays: of its inputs, of their dtypes and shapes, in C order, to its outputs.

Of rows that grow the first length is any; an array that is one row as often as may be stands for as many as are read.
"""


class Backend(Protocol[Code, Image]):
    """Carry out programs.

    Attributes:
        name: what tells its images from those of others where they are kept.
    """

    name: str

    @abstractmethod
    def render(self, program: Program) -> Code:
        """Return a program, which has passed the checker and is scheduled, in the language of the back end.

        Raises:
            NotImplementedError: it has something for which there are no words.
        """

    @abstractmethod
    def build(self, code: Code) -> Image:
        """Return what was rendered as it can be loaded.

        Raises:
            UnavailableError: what builds it is absent.
        """

    @abstractmethod
    def load(self, image: Image) -> Loaded:
        """Return a program as a function.

        Raises:
            UnavailableError: it cannot be run here.
        """

    def pack(self, image: Image, _beside: Mapping[bytes, int]) -> Any:
        """Return an image as plain data, to be kept; of what is kept beside, the number may stand there."""
        return image

    def unpack(self, data: Any, _beside: Sequence[Any] = ()) -> Image:
        """Return the image that plain data are, with the bytes that lie beside, which nobody writes, as arrays."""
        image: Image = data
        return image

    def compile_program(self, program: Program) -> Loaded:
        """Return a program, which is scheduled, as a function."""
        return self.load(self.build(self.render(program)))
