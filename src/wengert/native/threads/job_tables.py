"""What the threads of a team have in memory: the present job, and a place for each. `jobs` has the functions."""

from __future__ import annotations

from wengert.native.structs import I8, I32, I64, POINTER, VOID, Array, OwnLine, Pointer, Signature, Struct

REFUSED = -1
"""What dispatching a job returns where nothing was done."""

JOB = Signature(VOID, (POINTER, I64, I64))
"""A job's function: its argument, the first part to do, and the first one not to do."""

DISPATCH = Signature(I64, (POINTER, Pointer(JOB), POINTER, I64, I64))
"""What runs a job: the team's memory, and the job: its function, its argument, how many parts, and their grain."""

SHARED = Struct(
    "Shared",
    dispatch=Pointer(DISPATCH),  # for those who have a job
    busy=I64,  # 1 while a job runs
    recruited=I64,  # 1 once there are workers
    threads=I64,  # at most, the dispatching one included
    patience=I64,  # how often a worker looks for work before it sleeps
    unheard=I64,  # jobs in a row for which workers slept and were not woken
    function=Pointer(JOB),  # the present job
    argument=POINTER,
    count=I64,
    grain=I64,
    regions=I64,
    processor=I32,  # where the dispatcher was
    raised=I64,  # the floating-point conditions met
    environment=OwnLine(Array(I8, 128)),  # the dispatcher's rounding and the like, of a C type that is opaque here
)
"""What all threads of a team share; a PLACE for the dispatcher and one for each worker follow."""

PLACE = Struct(
    "Place",
    state=I64,  # IDLE, CALLED or RUNNING
    team=Pointer(SHARED),  # whose place it is
    number=I64,  # which it is; the dispatcher's is 0
    processor=I32,  # where it was when it began its last job
    asleep=I64,  # 1 if the worker sleeps, or is about to
    next=OwnLine(I64),  # how many parts of the region have been taken
    mutex=OwnLine(Array(I8, 128)),  # to sleep on, of C types that are opaque here
    condition=OwnLine(Array(I8, 128)),
)
"""Where a thread works."""

INNER_LOOP = Signature(VOID, (Pointer(Pointer(I8)), Pointer(I64), Pointer(I64), POINTER))
"""An inner loop: addresses of operands and result, number of elements, strides, data."""

LOOP = Struct(
    "Loop",
    function=Pointer(INNER_LOOP),
    data=POINTER,
    size=I64,  # bytes of an element
    operands=I64,
)
