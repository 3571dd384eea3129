"""What is known of the machine without asking LLVM, and what decisions are made by: one record for all of Wengert."""

from __future__ import annotations

import os
import warnings
from typing import Any

from wengert.support.config import default_folder
from wengert.support.digests import digest_of
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.records import FieldRecord

PROCESSOR = os.uname().machine if os.name == "posix" else ""
PROCESSORS = ("x86_64", "aarch64", "arm64")
"""Those whose bits of floating-point conditions are known."""

INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if PROCESSOR == "x86_64" else (1, 2, 4, 8)
CONDITIONS = {"invalid": INVALID, "divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW}
"""The C library's bits of the floating-point conditions, by NumPy's names for them."""


class Machine(FieldRecord):
    """What takes how long, and what there is room for.

    How each was found stands in ADR 0043: tried on programs of `python -m benchmarks` (t), counted by the processor (c)
    or told by the system (s); those marked * are `CALIBRATED`. What a processor's vectors
    are, LLVM knows (`native.engine.Target`).
    """

    clock: float = 3000.0  # cycles in a microsecond (c*)
    line: int = 64  # bytes that caches hold together (s)
    apart: int = 128  # bytes that what threads write lies apart: one line, or two that are moved together (s)
    gap: int = 2112  # bytes behind each buffer: loads wait for stores 64 bytes apart modulo 4096, which costs 30 % (t)
    first_cache: int = 1 << 15  # bytes of a processor's nearest cache (s)
    second_cache: int = 1 << 21  # bytes of a processor's own caches (s*)
    last_cache: int = 1 << 25  # bytes beyond which memory takes as long as computing a value again (t)
    kept_arena: int = 1 << 18  # bytes to work in that are kept from call to call: more takes 0.2 us a call (t)
    shared_memory: int = 1 << 22  # bytes, at most, for what the parts of a kernel have of their own (t)
    issues: int = 4  # operations of vectors that begin in a cycle (t)
    filling: int = 16  # cycles of a part for each byte of its own, so that few go on filling and combining these (t)
    part_lanes: int = 256  # lanes of a part are a multiple of it, so that parts consist of whole steps (t)
    fewest_parts: int = 4  # below which sharing does not pay (t)
    shared_elements: int = 32_768  # from which on NumPy's loops are shared: about 8 microseconds of additions (t)
    routine: int = 100  # cycles of a step around what it computes (t)
    products: float = 1.5  # vectors that are multiplied and added in a cycle, about (c)
    product_step: int = 1000  # multiplications from which on a product of matrices is no part of a kernel (t)
    stacked_step: int = 256  # those of each product of a stack from which on it is none (t)
    phased: float = 2.4  # cycles of an element that a correlation copies phase by phase (t)
    turned: float = 1.2  # those of one that it packs so that channels lie side by side, or writes back from there (t)
    convolved: tuple[int, ...] = (1 << 15, 32)  # multiplications, and shortest array, of a convolution in kernels (t)
    written_terms: int = 16  # of a convolution, up to which each is written out, where it has both factors (t)
    turned_terms: int = 8  # terms of a column and lane that full vectors save, from which on copies for these pay (t)
    panel: int = 40_000  # bytes of the nearest cache that the panel of a product takes (t)
    packed_sides: tuple[int, ...] = (24, 48)  # shortest side of a product, and rows, from which packing pays (t)
    packed_once: tuple[int, ...] = (256, 96)  # rows beyond which it is done ahead of all blocks; rows of these then (t)
    block: tuple[int, ...] = (256, 192, 1536)  # terms, rows and columns of a product that are computed at once (t)
    dots: tuple[int, ...] = (8, 16, 32)  # vectors of terms, terms for each column, and columns of sums across lanes (t)
    transposed: tuple[int, ...] = (2, 4)  # vectors that rows fill where the transpose of a product may be sooner (t)
    dots_block: int = 1024  # terms of these that are added up at once (t)
    lapack_bands: int = 24  # bands below a diagonal from which on LAPACK is called, which works on blocks (t)
    aligned_rounds: int = 16  # of a loop, from which on it pays to copy its matrices to where lines begin (t)
    iteration: int = 64  # cycles of an iteration of a loop around those of its program (t)
    usual_rounds: int = 128  # iterations of a loop of which nobody knows how many there are (t)
    copied_words: int = 64  # bytes up to which they are copied one word after the other (t)
    recomputed: int = 6  # cycles up to which values are computed again, not read, where a loop needs several (t)
    recomputed_far: int = 40  # the same where several kernels, or very many loops, would compute it (t)
    many_loops: int = 16  # beyond which they are very many: what each computes again takes long to compile (t)
    gathered: tuple[int, ...] = (5, 15)  # cycles of a vector whose numbers lie apart, in the nearest cache and not (t)
    read_again: tuple[int, ...] = (1, 2, 8)  # cycles to read a vector of the nearest cache, the second, and memory (t)
    row: int = 3  # cycles of a row besides those of what it computes (t)
    partial: int = 6  # cycles more of one that adds less than a vector to memory, and waits for what was there (t)
    across: int = 10  # cycles to add up the numbers of a vector (t)
    worse: tuple[float, ...] = (1.25, 100.0)  # times as long, and cycles, for which another order of loops is taken (t)
    kept: int = 250  # cycles that have to be saved for one loop more, which has to be compiled (t)
    parted: int = 1000  # cycles that have to be besides if a kernel becomes two (t)
    function: int = 20  # cycles of an operation that has enough to do at once by itself (t)
    full: int = 40  # cycles of a vector from which on there is enough to do at once in one (t)
    masking: int = 8  # cycles of a step up to which masks take some of the time where masked loads do not (t)
    accumulators: int = 12  # of a loop within the lanes (c)
    tiles: tuple[int, ...] = (4, 5, 3, 2)  # how many rows are carried out together, what is tried first in front (t)
    summed_rows: int = 4  # sums of rows that are carried out together, where these read or add to the same (t)
    tiled_lanes: tuple[int, ...] = (256, 64)  # up to which rows are, and where they share nothing (t)
    tiled_operations: int = 60  # of a stage, up to which several rows have room in registers (t)
    packed_rows: int = 16  # from which it pays to copy what each of them would read with gaps (t)
    written_vectors: int = 4  # of a loop that is written out, and steps of one that has no body without masks (t)
    written_instructions: int = 600  # about, beyond which a loop is not written out (t)
    piece: int = 512  # points of a range where guards are decided from which on it has a body of its own (t)
    piece_cycles: int = 1024  # of all points of a range, from which on it has one though they are fewer (t)
    piece_steps: int = 2  # of a range beside others that have bodies of their own (t)
    piece_share: int = 64  # such ranges are at least this part of their dimension: one over it (t)
    pieces: int = 3  # such ranges, whatever their bodies hold (t)
    most_pieces: int = 48  # such ranges at most (t)
    piece_growth: int = 4  # more than a few while all bodies take at most so many times the code of one (t)
    spelled_points: tuple[int, ...] = (4, 6)  # of a spelled out dimension; of a row without lanes (t)
    spelled_rows: int = 32  # from which lanes run over them, rather than over a part of a vector (t)
    spelled: int = 200  # operations and cycles of a row up to which its points are spelled out (t)
    spelled_stages: int = 1500  # those of a row of several stages that become one (t)
    quick: int = 4000  # operations of a kernel, in all, up to which short code, soon compiled, counts for more (t)
    prefetched: int = 512  # bytes of a row from which on it is brought ahead: processors reach shorter ones (t)
    idle: float = 1.0  # what a stage computes for what it moves if it brings something ahead, see `prefetch` (t)
    compiling: tuple[float, ...] = (10_000.0, 250.0)  # microseconds to compile a graph, and for each equation (t*)
    evaluating: tuple[float, ...] = (10.0, 1.0)  # microseconds of a call of NumPy's, and of each equation (t*)
    calling: float = 12.0  # microseconds to call one of several native parts of a graph (t*)
    passing: float = 0.5e-3  # microseconds an element takes that is read from or written to memory (t*)
    numpy_cycle: float = 0.2e-3  # microseconds of NumPy for an element and a cycle of a vector natively (t)
    call_elements: int = 2048  # that NumPy's vectors pass in about the time of a call (t)
    small_residual: int = 512  # bytes below which computing it again takes longer than keeping it once (t)
    searched: int = 4096  # elements up to which two passes that other kernels may share take less than NumPy's one (t)
    compared: int = 1 << 14  # pairs of elements up to which comparing them takes less than NumPy's sort, and going (t)
    blas_alone: int = 8192  # elements of a matrix whose product with a vector OpenBLAS does not share among threads (t)
    blas_shared: int = 10_000  # elements from which on it multiplies vectors on several threads (t)

    @property
    def costly(self) -> int:
        """Cycles from which on a value of two stages of a row is kept."""
        return 2 * self.recomputed

    @property
    def row_cache(self) -> int:
        """Bytes of a row that are kept, rather than computed again."""
        return self.second_cache // 8

    @property
    def moment(self) -> float:
        """Cycles from which on work is shared, and after which calls look for signals: 20 microseconds."""
        return 20 * self.clock

    @property
    def short(self) -> float:
        """Cycles of a part, and of a call from which on other threads run Python meanwhile: 5 microseconds."""
        return 5 * self.clock


CALIBRATED = ("clock", "second_cache", "compiling", "evaluating", "calling", "passing")
"""The fields that are measured where somebody wants it."""


def read_record(path: str) -> Machine:
    """Return the record with what a file says, one of the user's own; say so if it is damaged, and ignore it."""
    if not os.path.exists(path):
        return Machine()
    with UNSTOPPED:
        import json

        from wengert.native.cache import read_trusted
    content, _ = read_trusted(path)
    try:
        values: Any = json.loads(content)
        if isinstance(values, dict) and all(is_likely(name, value) for name, value in values.items()):
            known: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in values.items()}
            return Machine(**known)
    except (ValueError, RecursionError):
        pass
    action = "Run `wengert doctor --calibrate`, which writes it anew, or remove it"
    warnings.warn(f"{path}, what was measured of this machine, is damaged and not used. {action}.", stacklevel=2)
    return Machine()


def is_likely(name: str, value: Any) -> bool:
    """Tell whether a value may be that of a field: numbers from a 64th of the usual ones to 64 times them."""
    usual = getattr(Machine, name, None) if name in CALIBRATED else None
    if isinstance(usual, tuple):
        return isinstance(value, list) and len(value) == len(usual) and all(map(is_near, value, usual))
    return usual is not None and is_near(value, usual)


def is_near(value: Any, usual: Any) -> bool:
    """Tell whether a number is of the type of another one, or whole, and not far from it."""
    return type(value) in (int, type(usual)) and bool(usual / 64 <= value <= 64 * usual)


def machine_file() -> str | None:
    """Return where what was measured is kept, beside machine code; None if nothing is kept."""
    folder = default_folder()
    return None if folder is None else os.path.join(folder, "machine.json")


PLACE = machine_file()
MACHINE = Machine() if PLACE is None else read_record(PLACE)
MEASURED = "" if Machine() == MACHINE else digest_of(repr(MACHINE).encode()).hex()[:16]
"""What tells code that was made for this record from that for the usual one."""


def whole_lines(size: int) -> int:
    """Return so many bytes, or as many more as lie before the next pair of cache lines."""
    return -(-size // MACHINE.apart) * MACHINE.apart
