"""Calls of routines and products by steps of programs: which function is called, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping

from wengert.emission.external_functions import ROUTINES
from wengert.emission.products.product_functions import PRODUCTS
from wengert.emission.products.product_plans import ProductPlan
from wengert.kernel.kernel import Buffer, Invoke, Product
from wengert.native.engine import Target
from wengert.native.structs import Struct
from wengert.support.machine import whole_lines
from wengert.support.records import NamedTuple


class KernelCall(NamedTuple):
    """Say what function a step calls, and how.

    Attributes:
        name: of the function, which is a KERNEL.
        arguments: the buffers whose addresses it gets.
        fields: what it is given besides, by name.
        work: bytes of memory that it needs.
        may_fail: whether it also gets the address of a byte that says that it failed.
    """

    name: str
    arguments: tuple[str, ...]
    fields: Mapping[str, int]
    work: int
    may_fail: bool

    @property
    def is_shared(self) -> bool:
        """Whether threads share it: the parts of a stack, or the blocks of one problem."""
        return self.fields.get("parts", 1) > 1 or self.fields.get("blocks", 1) > 1


def routine_of(step: Invoke | Product, buffers: Mapping[str, Buffer], target: Target) -> KernelCall:
    """Return what a step calls."""
    if isinstance(step, Invoke):
        return KernelCall(step.name, step.arguments, dict(step.fields), step.work, may_fail=True)
    dtype = buffers[step.into].dtype
    plan = ProductPlan(step, dtype.itemsize, target)
    arguments = (*step.reads, step.into)
    name = f"{PRODUCTS}.matrices.{dtype.name}"
    return KernelCall(name, arguments, plan.fields, plan.work, may_fail=False)


def fields_of(routine: KernelCall) -> Struct:
    """Return what a routine is given, as a structure."""
    return ROUTINES[routine.name.partition(".")[0]].fields


def start_of_work(routine: KernelCall) -> int:
    """Return the whole lines that what a routine is given takes, behind which its memory may begin."""
    return whole_lines(fields_of(routine).size)


def given_bytes(routine: KernelCall, work: int) -> bytes:
    """Return the bytes of what a routine is given, whose memory lies so many bytes from their beginning."""
    return bytes(fields_of(routine).ctype(**routine.fields, work=work))


def contents_of(routine: KernelCall) -> tuple[int, bytes]:
    """Return how far from the beginning of an arena a routine's memory lies that has it alone, and what it is given."""
    start = start_of_work(routine)
    return start, given_bytes(routine, start)
