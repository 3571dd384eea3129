"""What Python calls where there is native code: it tries its variants, and is Python for the rest.

    class Jitted(Entry):
        def __call__(self, *args, **kwargs): ...  # when no variant suits: compute the result, perhaps `add` a variant

    jitted.add(Variant([ArrayKind(float64, (10,))], NumberKind(float), Callee(address)))

Calls are native where this interpreter is as it should be, and go through ctypes elsewhere, at a microsecond or more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # both sorts behave alike
    from wengert.native.ctypes_entry import CtypesEntry, CtypesVariant

    Entry = CtypesEntry
    Variant = CtypesVariant


def entry_classes() -> tuple[Any, Any]:
    """Return the classes of entries and variants that serve here."""
    try:
        from wengert.native.native_entry import NativeEntry, NativeVariant, probe

        probe()
    except (AttributeError, ImportError, OSError, RuntimeError):  # another interpreter, or one without a lock
        from wengert.native.ctypes_entry import CtypesEntry, CtypesVariant

        return CtypesEntry, CtypesVariant
    return NativeEntry, NativeVariant


if not TYPE_CHECKING:
    Entry, Variant = entry_classes()
