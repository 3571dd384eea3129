"""The command line: run many programs in several processes, count by mode, and print what failed."""

from __future__ import annotations

import argparse
import collections
import functools
import gc
import multiprocessing
import os
import re
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.fuzz import grammar, modes
from tools.fuzz.kinds import KINDS, Kind, outcomes
from tools.fuzz.modes import Outcome, Rejected, budget_for
from tools.fuzz.programs import Program
from tools.fuzz.shrinking import pruned, shrunk
from tools.fuzz.statements import FEATURES
from wengert.lowering import writes
from wengert.lowering.rules import contractions
from wengert.support.machine import MACHINE

__all__ = ["Report", "examined", "main"]

COLLECTION = (50_000, 20, 50)
"""When garbage is collected: Python's own thresholds would take a tenth of the time."""


@dataclass
class Report:
    """Say what became of one program."""

    index: int
    rejected: str = ""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    failure: str = ""


def fails_alike(kind: Kind, mode: str, way: str, program: Program) -> bool:
    """Tell whether a program disagrees in a mode in a given way."""
    try:
        found = outcomes(kind, program, (mode,))[mode]
    except (Rejected, SyntaxError):
        return False
    return found.verdict == "disagreed" and found.way == way


def examined(
    index: int, seed: int, features: frozenset[str], modes: tuple[str, ...], shrink: bool, name: str = "programs"
) -> Report:
    """Generate one program of a kind, run it in every mode, and describe what disagreed."""
    kind = KINDS[name]
    program = kind.make(seed, index, features)
    try:
        found = outcomes(kind, program, kind.chosen(program, modes))
    except Rejected as rejected:
        return Report(index, rejected=str(rejected))
    report = Report(index, outcomes=found)
    wrong = {mode: result for mode, result in found.items() if result.verdict == "disagreed"}
    if wrong:
        report.failure = described(kind, program, wrong, shrink)
    return report


def described(kind: Kind, program: Program, wrong: dict[str, Outcome], shrink: bool) -> str:
    """Return a failing program, made as small as it fails in the first mode, with that mode and both results."""
    mode, result = next(iter(wrong.items()))
    title = f"# {program.name}: {mode} disagrees ({result.way}); in all: {', '.join(wrong)}"
    if shrink and result.way != "endless":
        program = shrunk(program, functools.partial(fails_alike, kind, mode, result.way))
        result = outcomes(kind, program, (mode,))[mode]
    size = budget_for(program.name)
    title += "" if size is None else f"; loops may keep {size} bytes or as few as can be"
    comment = "\n".join("# " + line for line in result.text.splitlines())
    return f"{title}\n{comment}\n{pruned(program).text}"


def reason(mode: str, text: str) -> str:
    """Return a refusal without what differs from program to program."""
    found = re.sub(r"(float|complex|int|bool)\d*\[[\d,]*\]|\([\d, ]*\)|File \S*, line \d+|\d+", "_", text)
    return f"{mode}: {found[:160]}"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description="Compare random programs in every mode.")
    parser.add_argument("--programs", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same programs")
    parser.add_argument("--only", type=int, action="append", help="run only the program of this number")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work")
    parser.add_argument("--without", default="", help=f"features to leave out, of {', '.join(sorted(FEATURES))}")
    parser.add_argument("--kind", default="programs", choices=sorted(KINDS), help="lanes: batches of batches")
    parser.add_argument("--modes", default="", help="modes to run, separated by commas (default: all)")
    parser.add_argument("--show", type=int, default=20, help="how many failures to print (default: %(default)s)")
    parser.add_argument("--no-shrink", action="store_true", help="print failing programs as they were generated")
    parser.add_argument("--products", action="store_true", help="make all products of matrices steps of programs")
    parser.add_argument("--writes", action="store_true", help="make all writes steps that change memory in place")
    parser.add_argument("--matrices", type=float, help="the share of routines of matrices of more than 32 rows")
    parser.add_argument("--wings", type=float, help="the share of solvers, integrations and other wings")
    parser.add_argument("--refusals", action="store_true", help="also count what the refusals say")
    return parser.parse_args(arguments)


def make_products_steps() -> None:
    """Make all products of matrices steps of programs that can be, however small, and read nothing that was kept."""
    vars(contractions)["MACHINE"] = MACHINE.replace(product_step=0, stacked_step=0)
    os.environ["WENGERT_CACHE"] = "0"


def make_writes_steps() -> None:
    """Make all writes steps of programs that can be, of however much, and read nothing that was kept."""
    vars(writes)["SAVED"] = 0
    os.environ["WENGERT_CACHE"] = "0"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs; return 1 if any disagreed."""
    options = parsed(arguments)
    features = FEATURES - set(options.without.split(","))
    if options.products:
        make_products_steps()
    if options.writes:
        make_writes_steps()
    if options.matrices is not None:
        vars(grammar)["MATRICES_SHARE"] = options.matrices
    if options.wings is not None:
        vars(grammar)["WINGS_SHARE"] = options.wings
        modes.SECONDS.update(plain=10, mode=60)
    examine = functools.partial(
        examined,
        seed=options.seed,
        features=features,
        modes=tuple(filter(None, options.modes.split(","))) or tuple(KINDS[options.kind].modes),
        shrink=not options.no_shrink,
        name=options.kind,
    )
    start = time.perf_counter()
    indices = options.only or range(options.programs)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    reasons: collections.Counter[str] = collections.Counter()
    lines: dict[str, str] = {}
    shown = failed = rejected = 0
    with multiprocessing.Pool(options.jobs, gc.set_threshold, COLLECTION, maxtasksperchild=500) as pool:
        for report in pool.imap_unordered(examine, indices):
            rejected += bool(report.rejected)
            failed += bool(report.failure)
            for mode, result in report.outcomes.items():
                counts[mode][result.verdict] += 1
                if result.verdict == "refused":
                    reasons[reason(mode, result.text)] += 1
                    lines[reason(mode, result.text)] = result.line
            if report.rejected:
                reasons[f"rejected: {report.rejected[:90]}"] += 1
            if report.failure and shown < options.show:
                shown += 1
                print(report.failure, "\n", flush=True)
        pool.close()
        pool.join()
    print(f"{'mode':18}{'agreed':>10}{'refused':>10}{'disagreed':>11}{'not comparable':>16}")
    for mode, count in counts.items():
        print(f"{mode:18}{count['agreed']:10}{count['refused']:10}{count['disagreed']:11}{rejected:16}")
    if options.refusals:
        for text, number in reasons.most_common(60):
            print(f"{number:6}  {text}\n        {lines.get(text, '')}")
    seconds = time.perf_counter() - start
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"{len(indices)} programs, {rejected} not comparable, {failed} failed; {seconds:.0f} s, {spent:.0f} of work")
    return 1 if failed else 0
