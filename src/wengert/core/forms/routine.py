"""The form of routines: what runs on some axes of each operand, with all others as lanes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import aligned, all_lead, shift
from wengert.core.forms.element_maps import lane_maps
from wengert.core.forms.form import Flags, Form, Inputs, Lanes, Names, Params, Shape, told_by
from wengert.core.forms.shape_probes import Results, dummy, grown_order, probe_strictly, strong_aval
from wengert.core.maps.box_maps import BoxMap
from wengert.core.memory.memory_layout import strides_of, strides_of_copy
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import rule_error
from wengert.core.values.aval import UNKNOWN, Aval, aval_of, shape_of
from wengert.native.lapack import on_one_thread

CORE = r"\((?:\w+\??(?:,\w+\??)*)?\)"
SIGNATURE = re.compile(f"{CORE}(?:,{CORE})*->{CORE}(?:,{CORE})*")
"""What NumPy's generalised ufuncs take, and lengths that are not known before, as in "(m),(n)->(k?)"."""

ALONE = 32, 512
"""Columns of matrices from and up to which libraries are to use one thread (up to the first they do of their own).

Two threads win nothing then, but where an inverse of 100 to 400 rows takes 0.7 of the time; and where another program
wants a processor, each waits for the other at every step: eigenvalues of 200 rows take 2.7 ms at best on one thread or
two, in the mean 10 on one and 210 on two (ADR 0045).
"""


class Routine(Form):
    """A routine on some axes of each operand, its core, with all other axes broadcast: LAPACK, sorting, searching.

    Attributes:
        signature: the core axes, as generalised ufuncs write them: "(n,n),(n,m)->(n,m)". What it says of the last
            operand holds for any further ones.
        axis: the parameter that tells where the only core axis stands, or those for several; without one they are last.
        stacked: whether the evaluation takes stacks of operands with core axes.
        waking: whether libraries wake threads for matrices of any size, as SciPy's exponentials and general solutions
            do: where another program wants a processor, 10,000 us for the 40 of a system of 24 rows.
        like: `like(*operands, **params)`: what the result is like, as `Like` has it, where identities are no example.
        links: `links(position of the operand, its core shape, core shape of the result, params)`: maps from the operand
            to the result, of one stack, where not every element depends on all; None where each does.

    >>> from wengert.core.primitives.declare import constant
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> rank = constant("example.rank", np.linalg.matrix_rank, form=Routine("(m,n)->()"))
    >>> wg.vmap(lambda x: apply(rank, x))(np.stack([np.eye(2), np.ones((2, 2))]))
    array([2, 1])
    """

    signature: str
    axis: str | Names = ()
    stacked: bool = True
    waking: bool = False
    like: Callable[..., Any] | None = None
    links: Callable[[int, Shape, Shape, Params], Sequence[BoxMap] | None] | None = None

    def require_sound(self, name: str) -> None:
        """Require that the signature is one."""
        if not SIGNATURE.fullmatch(str(self.signature).replace(" ", "")):
            needed = 'core axes of operands and results are needed, as NumPy writes them: "(n,n),(n)->(n)"'
            raise rule_error(name, f"the signature {self.signature!r} of its form", needed)

    def evaluation(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """Let libraries use one thread for matrices that are no larger than `ALONE` says."""
        return self.rule(evaluate, 0)

    def rule(self, rule: Callable[..., Any], leading: int) -> Callable[..., Any]:
        """Let libraries use one thread in a rule, too, which has so many arguments before the operands."""
        ranks = core_ranks(self.signature, 1 + self.signature.partition("->")[0].count("),"))
        if self.axis or self.links is not None or 2 not in ranks or hasattr(rule, "is_alone"):  # no library's then
            return rule
        place, least = leading + ranks.index(2), 1 if self.waking else ALONE[0]

        @functools.wraps(rule)
        def run(*arguments: Any, **params: Any) -> Any:
            shape: Any = getattr(arguments[place], "shape", ())
            if len(shape) < 2 or shape[-1] <= least or max(shape[-2:]) > ALONE[1]:
                return rule(*arguments, **params)
            return on_one_thread(rule, arguments, params)

        vars(run)["is_alone"] = True
        return run

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Ask with stacks of two, where there is one operand in C order; core axes are of full length."""
        if self.like is not None:
            return told_by(self.like, inputs, params)
        axis = None if len(inputs) > 1 or not self.stacked or strides_of(inputs[0]) else self.core(inputs[0], params)
        if axis is None:
            try:
                return super().results(primitive, list(map(without_elements, inputs)), params)
            except np.linalg.LinAlgError:  # the examples make a singular system
                return super().results(primitive, list(map(with_random_elements, inputs, range(len(inputs)))), params)
        shape, dtype, _ = aval_of(inputs[0])
        small = [n if i in axis else min(n, 2) for i, n in enumerate(shape)]
        given = dummy(Aval(tuple(small), dtype))
        try:
            found = probe_strictly(primitive.strict, [given], params)
        except np.linalg.LinAlgError:
            found = probe_strictly(primitive.strict, [with_identities(given)], params)
        stack = [n for i, n in enumerate(shape) if i not in axis]
        avals = []
        for aval in map(strong_aval, found):
            if len(aval.shape) == len(shape):  # the core axes are there, of lengths of their own
                lengths = [aval.shape[i] if i in axis else n for i, n in enumerate(shape)]
            elif len(aval.shape) == len(stack):
                lengths = stack
            else:
                return super().results(primitive, inputs, params)
            avals.append(Aval(tuple(lengths), aval.dtype))
        return tuple(avals), grown_order(found, tuple(avals))

    def core(self, operand: Any, params: Params) -> tuple[int, ...] | None:
        """Return the core axes of an only operand, counted from 0; None if it has not got them."""
        (count,) = core_ranks(self.signature, 1)
        return self.core_axes(len(aval_of(operand).shape), count, params) if count else None

    def core_axes(self, rank: int, count: int, params: Params) -> tuple[int, ...] | None:
        """Return where so many core axes stand among all, counted from 0; None where there are not as many."""
        names = (self.axis,) if isinstance(self.axis, str) else self.axis
        axes = [params[name] for name in names] if names and count else list(range(rank - count, rank))
        return tuple([axis % rank for axis in axes]) if None not in axes and count <= rank else None

    def shapes(self, shapes: Sequence[Shape], params: Params) -> Sequence[Shape] | None:
        """Put the core axes of the results where those of the operands stand, with their lengths."""
        operands, results = cores(self.signature, len(shapes))
        lengths: dict[str, int] = {}
        stacks = []
        for shape, core in zip(shapes, operands, strict=True):
            axes = self.core_axes(len(shape), len(core), params)
            if axes is None or len(axes) != len(core) or not self.stacked or "?" in self.signature:
                return None
            lengths.update(zip(core, [shape[i] for i in axes], strict=True))
            stacks.append([n for i, n in enumerate(shape) if i not in axes])
        stack = np.broadcast_shapes(*map(tuple, stacks))
        found = []
        for core in results:
            axes = self.core_axes(len(stack) + len(core), len(core), params)
            if axes is None or len(axes) != len(core):
                return None
            whole = list(stack)
            for i, name in sorted(zip(axes, core, strict=True)):
                whole.insert(i, lengths.get(name, UNKNOWN))
            found.append(tuple(whole))
        return found

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Let the batch axis be one more axis of the stacks."""
        cores = core_ranks(self.signature, len(operands))
        if not self.stacked:
            cored = any(flag and core for flag, core in zip(batched, cores, strict=True))
            return None if cored else (operands, [(primitive, params)])
        if self.axis:
            names = (self.axis,) if isinstance(self.axis, str) else self.axis
            params = {**params, **{name: shift(params[name]) for name in names}}
            if any(cores):  # the core axis is counted from the front of each: all have the batch axis before it
                return all_lead(size, operands, batched), [(primitive, params)]
        return operands if len(operands) == 1 else aligned(operands, batched, cores), [(primitive, params)]

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Depend on what the links say, or on all of the same stack."""
        shape = shape_of(operands[position])
        names, results = cores(self.signature, len(operands))
        axes = self.core_axes(len(shape), len(names[position]), params)
        own = results[which] if which < len(results) else ()
        if "?" in self.signature:  # which need not be there
            ranks = core_ranks(self.signature, len(operands))
            lanes = max(len(shape_of(x)) - rank for x, rank in zip(operands, ranks, strict=True))
            own = own[: max(len(out.shape) - lanes, 0)]
        out_axes = self.core_axes(len(out.shape), len(own), params) if len(own) <= len(out.shape) else None
        if axes is None or out_axes is None or len(axes) != len(names[position]) or len(out_axes) != len(own):
            return None
        core = None
        if self.links is not None:
            inner, outer = (tuple([own[i] for i in at]) for own, at in ((shape, axes), (out.shape, out_axes)))
            core = self.links(position, inner, outer, params)
        return lane_maps((shape, axes), (out.shape, out_axes), core)


def without_elements(value: Any) -> Any:
    """Return an example for literal floats, which may not go together with examples of the other operands."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return dummy(aval_of(value), strides_of(value))
    return value


def with_random_elements(value: Any, seed: int) -> Any:
    """Return an example of random floats, with which systems of every structure have solutions: near to an identity.

    It is laid out as a copy, because elements of what is broadcast are one. Each operand has a seed of its own: two
    equal matrices have but one eigenvalue relative to each other.
    """
    literal = isinstance(value, np.ndarray) and value.dtype.kind not in "fc"
    found = value if literal else with_identities(dummy(aval_of(value), strides_of_copy(value)))
    if isinstance(found, np.ndarray) and found.dtype.kind in "fc":
        found += np.random.default_rng(seed).normal(size=found.shape) / (10 * found.size)
    return found


def with_identities(example: Any) -> Any:
    """Return an example whose square matrices are identities: those of whole numbers, which may be indices, are 0."""
    if isinstance(example, np.ndarray) and example.ndim > 1 and example.shape[-1] == example.shape[-2]:
        example[...] = np.eye(example.shape[-1])
    return example


@functools.lru_cache(maxsize=256)
def cores(signature: str, count: int) -> tuple[tuple[Names, ...], tuple[Names, ...]]:
    """Return the names of the core axes of each of some operands, and of each result.

    >>> cores("(n,n),(n)->(n)", 3)
    ((('n', 'n'), ('n',), ('n',)), (('n',),))
    """
    operands, results = [
        tuple([tuple(re.findall(r"\w+", core)) for core in re.findall(r"\((.*?)\)", side)])
        for side in signature.split("->")
    ]
    return (operands + operands[-1:] * count)[:count], results


@functools.lru_cache(maxsize=256)
def core_ranks(signature: str, count: int) -> tuple[int, ...]:
    """Return how many core axes each of some operands has.

    >>> core_ranks("(n,n),(n)->(n)", 3)
    (2, 1, 1)
    """
    return tuple(map(len, cores(signature, count)[0]))
