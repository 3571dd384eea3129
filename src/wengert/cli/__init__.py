"""The command line: explain derivatives, draw and time graphs, train a small network, look after native code."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from wengert.cli.commands import errors_begin_with
from wengert.errors import UsageError, WengertError

USER_ERROR = 2
INTERRUPTED = 130
FORMULA_OPTIONS = ("--order", "--mode", "--picture")

EXAMPLES = """examples:
  wengert grad "log(x1) + x1*x2 - sin(x2)" x1=2 x2=5
  wengert grad "sum(w * x) ** 2" w=[1,2,3] x=@inputs.npy --order 2
  wengert compare "exp(x) * sin(x)" x=1
  wengert graph model.py:loss --shapes 64,10 10 --gradient
  wengert demo
  wengert profile model.py:loss --shapes 64,10 10 --gradient
  wengert cache info
  wengert doctor
"""

GRAD = """Print the Wengert list of a formula: each forward step with its value, each reverse step with its adjoint
(v1' is the derivative of the result with respect to v1), then the value and the gradient.

The formula is made of numbers, variables, + - * / // % ** @, comparisons, indices such as x[0] or x[:, 1:], and
functions of wengert.numpy and wengert.scipy.special by their names: exp(x), sum(x, axis=0), where(x > 0, x, 0). It must
come out as one number.

--mode forward prints the derivatives of each step by the variables instead, which forward mode computes on the way.
"""

COMPARE = """Compute the derivative of a formula in four ways and compare them: numerically, by differences over a range
of steps; symbolically, as an expression, with its number of operations before and after shared parts are computed once;
in forward mode, which computes the derivatives d/dx of each step downward, and in reverse mode, which computes adjoints
upward. The formula is what `wengert grad` takes, and may come out as an array.
"""

GRAPH = """Trace a function of a module, or its gradient, and write a page about its graph, which needs no network: pan,
zoom, fold sub-graphs, click an equation to see its type, its line, and what it is the derivative of.

--shapes says what each argument is like: 3,4 or float32[3,4], () for a number, and "{'w': '3,4', 'b': '4'}" for
containers. Only shapes and dtypes matter.
"""

DEMO = """Train a network with one hidden layer on 1,797 handwritten digits of 8x8 pixels (UCI, optical recognition of
handwritten digits), then print its accuracy on images it has not seen, and a table of what was taken for what.
"""

CACHE = """Tell how much machine code is kept on disk and where, or remove it. Later processes find there what was
compiled once. WENGERT_CACHE=folder keeps it elsewhere, WENGERT_CACHE=off keeps none.
"""

PROFILE = """Run a function of a module, compiled, and tell how long each of its kernels takes, how fast that is, and
which operations NumPy computes between them; of a sum over partitions (wengert.distributed), what each worker spends on
reading, computing and waiting. Arguments are random numbers between 0.5 and 1.5; --shapes is as for
`wengert graph`.
"""

DOCTOR = """Tell what is installed, what this machine can do, and whether native code works here: what a report of a
fault should say. The status is 1 if there is something to mend. With --calibrate, measure what takes how long here, by
which later processes decide what is compiled, shared among threads and written out (machine.json in the cache).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the arguments after the program's name; those of the process by default.

    Returns:
        The exit status: 0, or 2 after a user's error, of which one line on stderr tells.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # so that no text fails in a terminal that cannot show it
    try:
        options = make_parser().parse_args(formula_first(arguments))
        with errors_begin_with(options.command):
            status: int = options.run(options)
        sys.stdout.flush()
    except WengertError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("wengert: interrupted.", file=sys.stderr)
        return INTERRUPTED
    return status


class Parser(argparse.ArgumentParser):
    """Report mistakes in the one form of all errors."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found."""
        raise UsageError(self.prog, message, "a valid command line is needed", f"See {self.prog} --help")


def make_parser() -> Parser:
    """Return the parser of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="wengert",
        description="Differentiate Python functions on NumPy arrays.",
        epilog=EXAMPLES,
        formatter_class=raw,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"wengert {importlib.metadata.version('wengert')}")
    parser.set_defaults(run=lambda _: print_help(parser), command="")
    commands = parser.add_subparsers(title="commands", metavar="command")

    def add(name: str, what: str, description: str, run: Callable[[Any], int]) -> argparse.ArgumentParser:
        """Return the parser of a command."""
        command = commands.add_parser(name, help=what, description=description, formatter_class=raw)
        command.set_defaults(run=run, command=name)
        return command

    grad = add("grad", "list how a formula and its gradient are computed", GRAD, run_grad)
    add_formula(grad)
    grad.add_argument("--order", type=positive, default=1, metavar="N", help="print derivatives up to this order, too")
    grad.add_argument("--mode", choices=("forward", "reverse"), default="reverse", help="reverse if not given")
    grad.add_argument("--picture", metavar="PATH", help="draw the graph of the derivative: an .html or .svg file")

    add_formula(add("compare", "compare the ways to a derivative", COMPARE, run_compare))

    graph = add("graph", "draw the graph of a function", GRAPH, run_graph)
    add_function(graph)
    graph.add_argument("--output", metavar="PATH", help="an .html or .svg file (default: ./<function>.html)")

    demo = add("demo", "train a small network on handwritten digits", DEMO, run_demo)
    how = demo.add_mutually_exclusive_group()
    how.add_argument("--eager", action="store_true", help="run operation by operation (the default)")
    how.add_argument("--jit", action="store_true", help="trace the loss once, and run it and its gradient as graphs")
    demo.add_argument("--epochs", type=positive, default=30, metavar="N", help="passes over the images (default: 30)")
    demo.add_argument("--picture", metavar="PATH", help="draw the digits that it got wrong: a .png file")

    cache = add("cache", "tell about, or remove, the machine code kept on disk", CACHE, run_cache)
    cache.add_argument("what", choices=("info", "clear"), help="tell how much there is; remove it")

    profile = add("profile", "time the kernels of a function", PROFILE, run_profile)
    add_function(profile)
    profile.add_argument("--calls", type=positive, default=20, metavar="N", help="how often it runs (default: 20)")

    doctor = add("doctor", "tell whether all works here", DOCTOR, run_doctor)
    doctor.add_argument("--calibrate", action="store_true", help="measure the machine for later processes")
    return parser


def add_function(parser: argparse.ArgumentParser) -> None:
    """Let a command take a function of a module, and what its arguments are like."""
    parser.add_argument("function", help="module:function, or file.py:function")
    parser.add_argument("--shapes", nargs="*", default=[], metavar="SHAPE", help="of the arguments, in order")
    parser.add_argument("--gradient", action="store_true", help="of the gradient by all arguments")


def add_formula(parser: argparse.ArgumentParser) -> None:
    """Let a command take a formula and the values of its variables."""
    parser.add_argument("formula", help='for instance "log(x1) + x1*x2 - sin(x2)"')
    parser.add_argument("variables", nargs="*", metavar="name=value", help="x=2, x=pi/4, x=[1,2,3] or x=@file.npy")


def positive(text: str) -> int:
    """Return a positive whole number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def formula_first(arguments: list[str]) -> list[str]:
    """Keep a formula that starts with a minus sign from being taken for an option."""
    if arguments[:1] not in (["grad"], ["compare"]) or arguments[1:2] in (["-h"], ["--help"], ["--"]):
        return arguments
    command, *rest = arguments
    options: list[str] = []
    words: list[str] = []
    while rest:
        word = rest.pop(0)
        option = word.partition("=")[0] in FORMULA_OPTIONS
        (options if option else words).append(word)
        if option and "=" not in word and rest:
            options.append(rest.pop(0))
    return [command, *options, "--", *words]


def print_help(parser: Parser) -> int:
    """Print what the program can do."""
    parser.print_help()
    return 0


def run_grad(options: Any) -> int:
    """Explain a formula."""
    from wengert.cli.derivatives import explain_formula, graph_of_derivative
    from wengert.cli.formula_parser import Formula
    from wengert.cli.graphs import write

    formula = Formula(options.formula, options.variables)
    show(explain_formula(formula, options.mode, options.order))
    if options.picture is not None:
        graph = graph_of_derivative(formula, options.mode, options.order)
        write("--picture", options.picture, graph.picture(formula.title))
    return 0


def run_compare(options: Any) -> int:
    """Compare the ways to a derivative."""
    from wengert.cli.derivatives import compare_formula
    from wengert.cli.formula_parser import Formula

    show(compare_formula(Formula(options.formula, options.variables)))
    return 0


def show(found: Any) -> None:
    """Print something, in colours on a terminal."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(found)
    else:
        print(found)


def run_graph(options: Any) -> int:
    """Draw the graph of a function."""
    from wengert.cli.graphs import graph_of, write

    graph = graph_of(options.function, options.shapes, options.gradient)
    path = options.output or f"{options.function.rpartition(':')[2]}.html"
    title = f"gradient of {options.function}" if options.gradient else options.function
    write("--output", path, graph.picture(title))
    print(f"{path}: {len(graph.equations)} equations")
    return 0


def run_profile(options: Any) -> int:
    """Time the parts of a function."""
    from wengert.cli.graphs import profile_of

    print(profile_of(options.function, options.shapes, options.gradient, options.calls))
    return 0


def run_doctor(options: Any) -> int:
    """Tell what is installed and what works; the status is 1 if there is something to mend."""
    from wengert.cli.health import findings

    status = 0
    for finding in findings():
        print(f"{finding.subject:<12} {finding.text}")
        if finding.remedy:
            print(f"{'':<12} {finding.remedy}.")
            status = 1
    if options.calibrate:
        from wengert.cli.calibration import calibrate

        print(f"{'measured':<12} {calibrate()}")
    return status


def run_demo(options: Any) -> int:
    """Train the network of the demonstration."""
    from wengert.demo import run

    run(epochs=options.epochs, picture=options.picture, jit=options.jit)
    return 0


def run_cache(options: Any) -> int:
    """Tell about the machine code that is kept, or remove it."""
    from wengert.native.cache import object_cache
    from wengert.native.cache_writing import clear, usage_of

    cache = object_cache()
    if cache.refusal:
        print(f"no code is kept: {cache.refusal}")
    elif options.what == "clear":
        before = clear(cache)
        print(f"removed {before.entries} entries, {binary_size(before.size)}, from {cache.folder}")
    else:
        usage = usage_of(cache)
        print(f"folder   {cache.folder}\nentries  {usage.entries}")
        print(f"size     {binary_size(usage.size)} of {binary_size(cache.limit)}")
    return 0


def binary_size(count: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            break
        count, unit = count / 1024, {"bytes": "KiB", "KiB": "MiB", "MiB": "GiB"}[unit]
    return f"{count:.1f} {unit}"
