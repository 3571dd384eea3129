"""The protocol by which threads share a job: a function, its argument, how many parts there are, and a grain of them.

The parts are cut into as many regions as threads take part. A thread begins with the region of its own place, so that
it finds in its cache what it wrote there last time, takes it grain by grain, and then helps with the others. Whoever
does a part, the result must be the same; so the dispatching thread waits for workers that have begun, never for one
that has not. What a job is gets written before its workers are called and read after they have answered.

A place is IDLE until the dispatcher calls its worker; the worker makes it RUNNING and in the end IDLE again, unless
the dispatcher withdrew the call first: each step from CALLED is an exchange, so only one of the two happens. What is
stored before a call or an answer is seen after it. A worker that is about to sleep says so and then looks for a call
once more; the dispatcher calls and then looks who sleeps. Both happen in one order for all (`seq_cst`), so that one of
them sees the other. Which thread takes which parts orders nothing (`monotonic`).

A thread that waits for one whose turn it is on the same processor would wait until its own turn ends, for some
milliseconds. So the dispatcher and the workers note where they run, and whoever waits there for the other gives way to
it; elsewhere it does not, since other programs would take that turn.

The first job makes the workers. So a forked process, which has none of its parent's, has its own when it has a job for
them, once the team's memory has been made anew (`Team.begin`).
"""

from __future__ import annotations

import signal as signals

from wengert.native.builder import Builder
from wengert.native.functions import NativeFunction, external, native
from wengert.native.structs import BOOL, I8, I32, I64, POINTER, VOID, Array, Pointer, Signature
from wengert.native.threads.job_tables import DISPATCH, JOB, PLACE, REFUSED, SHARED
from wengert.native.values import Value
from wengert.support.machine import CONDITIONS, PROCESSOR

IDLE, CALLED, RUNNING = 0, 1, 2
FEW = 2  # grains to a region at least
OFTEN = 64  # looks for work between two at the processor: about a microsecond
MANY = 16  # grains of a job that wakes sleepers at once; smaller ones do at every fourth try
ALL = sum(CONDITIONS.values())

make_thread = external("pthread_create", I32, POINTER, POINTER, POINTER, POINTER)
forget_thread = external("pthread_detach", I32, I64)
make_mutex = external("pthread_mutex_init", I32, POINTER, POINTER)
make_condition = external("pthread_cond_init", I32, POINTER, POINTER)
fill_signals = external("sigfillset", I32, POINTER)
mask_signals = external("pthread_sigmask", I32, I32, POINTER, POINTER)
lock = external("pthread_mutex_lock", I32, POINTER)
unlock = external("pthread_mutex_unlock", I32, POINTER)
wait = external("pthread_cond_wait", I32, POINTER, POINTER)
signal = external("pthread_cond_signal", I32, POINTER)
hold_environment = external("feholdexcept", I32, POINTER)
set_environment = external("fesetenv", I32, POINTER)
clear_conditions = external("feclearexcept", I32, I32)
raise_conditions = external("feraiseexcept", I32, I32)
met_conditions = external("fetestexcept", I32, I32)
processor = external("sched_getcpu", I32)
give_way = external("sched_yield", I32)
x86_pause = external("llvm.x86.sse2.pause", VOID)
arm_hint = external("llvm.aarch64.hint", VOID, I32)


def pause(b: Builder) -> None:
    """Wait politely for a moment."""
    if PROCESSOR == "x86_64":
        b.do(x86_pause)
    else:
        b.do(arm_hint, 1)


def make_way(b: Builder, other: Value) -> None:
    """Let the other have its turn, if it is on this processor."""
    with b.when(b.call(processor).equals(other)):
        b.do(give_way)


def place_of(team: Value, number: Value) -> Value:
    """Return the place with a number."""
    return team.at(1).to(PLACE).at(number)


@native(I64, *DISPATCH.parameters)
def dispatch(b: Builder, memory: Value, function: Value, argument: Value, count: Value, grain: Value) -> None:
    """Run a job on the threads of a team; return the floating-point conditions met.

    REFUSED if another job runs, or if this one is too small to be shared: then nothing has been done.
    """
    team = memory.to(SHARED)
    regions = b.least(team.get("threads"), count // (grain * FEW))
    b.give_if(regions < 2, REFUSED)
    b.give_if(team.field("busy").compare_exchange(0, 1, "seq_cst").equals(False), REFUSED)
    with b.when(team.get("recruited").equals(0)):
        b.do(recruit, team)
    team.set("function", function)
    team.set("argument", argument)
    team.set("count", count)
    team.set("grain", grain)
    team.set("regions", regions)
    team.set("processor", b.call(processor))
    team.set("raised", 0)
    b.do(hold_environment, team.field("environment"))
    with b.loop(regions) as region:
        place_of(team, region.index).set("next", 0)
    call_workers(b, team, regions, count >= grain * MANY)
    b.do(work, team, 0)
    with b.loop(regions, 1) as called:
        b.do(collect, place_of(team, called.index))
    b.do(set_environment, team.field("environment"))
    raised = team.get("raised")
    team.field("busy").store(0, "seq_cst")
    b.give(raised)


def share_parts(b: Builder, team: Value, job: Value | NativeFunction, table: Value, parts: Value) -> None:
    """Do all parts of a job, one at a time, on the threads of a team if there is one and it is free."""
    with b.when(team.differs(None)):
        raised = b.call(team.get("dispatch"), Value(b, POINTER, team.text), job, table, parts, 1)
        b.give_if(raised.differs(REFUSED))
    with b.loop(parts, certain=True) as each:
        b.do(job, table, each.index, each.index + 1)


SHARE = "share"
share = NativeFunction(SHARE, Signature(VOID, (Pointer(SHARED), Pointer(JOB), POINTER, I64)), share_parts)


@native(VOID, Pointer(SHARED))
def recruit(b: Builder, team: Value) -> None:
    """Make the workers, as many as the system allows; signals are Python's."""
    mask, before, thread = b.stack(Array(I8, 128)), b.stack(Array(I8, 128)), b.stack(I64)
    b.do(fill_signals, mask)
    b.do(mask_signals, int(signals.SIG_SETMASK), mask, before)
    with b.loop(team.get("threads"), 1) as recruits:
        place = place_of(team, recruits.index)
        place.set("team", team)
        place.set("number", recruits.index)
        b.do(make_mutex, place.field("mutex"), None)
        b.do(make_condition, place.field("condition"), None)
        with b.when(b.call(make_thread, thread, None, worker, place).equals(0)) as otherwise:
            b.do(forget_thread, thread.load())
        with otherwise:
            team.set("threads", b.least(team.get("threads"), recruits.index))
    b.do(mask_signals, int(signals.SIG_SETMASK), before, None)
    team.set("recruited", 1)


def call_workers(b: Builder, team: Value, regions: Value, many: Value) -> None:
    """Call the workers of a job; wake those who sleep if there is much to do, or if they were not woken thrice."""
    unheard = team.get("unheard")
    rousing = many | (unheard % 4).equals(3)
    with b.loop(regions, 1, carry=[0]) as workers:
        place = place_of(team, workers.index)
        place.field("state").store(CALLED, "seq_cst")
        asleep = place.field("asleep").load("seq_cst")
        with b.when(rousing & asleep.differs(0)):
            b.do(wake, place)
        workers.next(workers.values[0] | asleep)
    team.set("unheard", b.select(rousing, b.constant(I64, 0), unheard + workers.results[0]))


@native(VOID, Pointer(PLACE))
def wake(b: Builder, place: Value) -> None:
    """Wake the worker of a place."""
    b.do(lock, place.field("mutex"))
    b.do(signal, place.field("condition"))
    b.do(unlock, place.field("mutex"))


@native(VOID, Pointer(PLACE))
def collect(b: Builder, place: Value) -> None:
    """Withdraw the call of a worker that has not begun; wait for one that has."""
    state = place.field("state")
    state.compare_exchange(CALLED, IDLE, "seq_cst")
    with b.forever():
        b.give_if(state.load("seq_cst").equals(IDLE))
        pause(b)
        make_way(b, place.get("processor"))


@native(VOID, Pointer(SHARED), I64)
def work(b: Builder, team: Value, number: Value) -> None:
    """Do parts of the present job, first of one's own region, until none is left anywhere."""
    regions = team.get("regions")
    with b.loop(regions) as visited:
        b.do(work_on, team, (number + visited.index) % regions)
    conditions = b.call(met_conditions, ALL).widen(I64)
    team.field("raised").fetch_or(conditions, "monotonic")


@native(VOID, Pointer(SHARED), I64)
def work_on(b: Builder, team: Value, region: Value) -> None:
    """Do parts of a region, grain by grain, until none is left."""
    count, grain, regions = team.get("count"), team.get("grain"), team.get("regions")
    function, argument = team.get("function"), team.get("argument")
    first, end = count * region // regions, count * (region + 1) // regions
    taken = place_of(team, region).field("next")
    with b.forever():
        start = first + taken.fetch_add(grain, "monotonic")
        b.give_if(start >= end)
        b.do(function, argument, start, b.least(start + grain, end))


@native(POINTER, Pointer(PLACE))
def worker(b: Builder, place: Value) -> None:
    """Live as a worker: look for work for a while, then sleep until woken, and stay awake for a while.

    The job that woke it may be over, but others follow.
    """
    with b.forever():
        with b.when(b.call(is_called, place)) as otherwise:
            b.do(answer, place)
        with otherwise:
            b.do(sleep, place)


@native(BOOL, Pointer(PLACE))
def is_called(b: Builder, place: Value) -> None:
    """Look for work as long as patience lasts; return whether there was a call."""
    team = place.get("team")
    with b.loop(team.get("patience")) as look:
        b.give_if(place.field("state").load("seq_cst").equals(CALLED), True)
        pause(b)
        with b.when((look.index % OFTEN).equals(0)):
            make_way(b, team.get("processor"))
    b.give(False)


@native(VOID, Pointer(PLACE))
def answer(b: Builder, place: Value) -> None:
    """Work, unless the call was withdrawn meanwhile."""
    state, team = place.field("state"), place.get("team")
    with b.when(state.compare_exchange(CALLED, RUNNING, "seq_cst")):
        b.do(set_environment, team.field("environment"))
        b.do(clear_conditions, ALL)
        place.set("processor", b.call(processor))
        b.do(work, team, place.get("number"))
        state.store(IDLE, "seq_cst")


@native(VOID, Pointer(PLACE))
def sleep(b: Builder, place: Value) -> None:
    """Sleep until woken, unless a call has come."""
    mutex, asleep = place.field("mutex"), place.field("asleep")
    b.do(lock, mutex)
    asleep.store(1, "seq_cst")
    with b.when(place.field("state").load("seq_cst").equals(IDLE)):
        b.do(wait, place.field("condition"), mutex)
    asleep.store(0, "seq_cst")
    b.do(unlock, mutex)


@native(VOID, I64)
def linger(b: Builder, looks: Value) -> None:
    """Look for work that never comes; how long this takes tells what a worker's patience is worth."""
    with b.loop(looks):
        pause(b)
