"""What Python calls where there is native code: it tries its variants, and is Python for the rest.

    class Jitted(Entry):
        def __call__(self, *args, **kwargs): ...  # when no variant suits: compute the result, perhaps `add` a variant

    jitted.add(Variant([ArrayKind(float64, (10,))], NumberKind(float), Callee(address)))

Where this interpreter is not as native code needs it, there are no variants, and Python does all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wengert.native.availability import UnavailableError
from wengert.native.entries.kinds import NOTHING
from wengert.support.function_protocol import LikeFunction

if TYPE_CHECKING:
    from wengert.native.entries.callee import Callee
    from wengert.native.entries.kinds import ArrayKind, Beside, Kind


class PythonVariant:
    """Be one way to call a kernel, which cannot be had here.

    Raises:
        UnavailableError: always.
    """

    def __init__(
        self,
        arguments: Sequence[Kind],
        result: Kind,
        callee: Callee,
        names: Sequence[str] = (),
        beside: Beside = NOTHING,
        more: Sequence[ArrayKind] = (),
    ) -> None:
        raise UnavailableError("the objects of this interpreter are not known")


class PythonEntry(LikeFunction):
    """Be something to call that has no variants."""

    def add(self, variant: PythonVariant) -> None:
        """Try a variant from now on, before the others; one that was not used for long may be forgotten."""

    def variants(self) -> list[PythonVariant]:
        """Return the variants, in the order in which they are tried."""
        return []

    def forget(self) -> None:
        """Forget all variants."""


def entry_classes() -> tuple[Any, Any]:
    """Return the classes of entries and variants that serve here."""
    if sys.implementation.name != "cpython" or os.name != "posix":
        return PythonEntry, PythonVariant
    try:
        from wengert.native.entries.native_entry import NativeEntry, NativeVariant, probe

        probe()
    except UnavailableError:  # it has no lock, or objects of other layouts
        return PythonEntry, PythonVariant
    return NativeEntry, NativeVariant


if TYPE_CHECKING:  # both sorts have the same methods
    Entry = PythonEntry
    Variant = PythonVariant
else:
    Entry, Variant = entry_classes()
