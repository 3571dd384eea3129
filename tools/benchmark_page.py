"""Write docs/benchmarks.md from the files that `python -m benchmarks <suite> --json <file>` wrote.

Run `python -m tools.benchmark_page eager.json operations.json programs.json routines.json transforms.json tracing.json
import.json jit.json start.json` after measuring in a quiet moment, and read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.report import Table, duration, share
from benchmarks.summary import summary

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Programs of the same text, written for each library in the way of its users, take turns in one process. The first
column is Wengert's median time (for an operation, where a case is a chain of them); the others are its ratio to a
peer's in the same round, the median over the rounds. Below 1 Wengert is faster. All compute on the processor,
eagerly, and in double precision unless a case says otherwise: nothing is compiled, except in the column `jax-jit`,
where JAX has compiled the whole transformation before the first round, and in a table `Jit`, where every library has
compiled the functions, for two threads: their calls, and the time from a function to its first result. Calls are timed
when a program has run for 10 ms, so that its threads and the caches are awake. An empty cell says that the library has
no such thing.
Operations and programs are measured in processor time, with one thread for every library: operations one by one and
without what is around them, leaves and starting a sweep included, programs as a whole, value and gradient. Of the
operations there are geometric means and the worst. "High" are those above twice
PyTorch's time, "by NumPy" those among them in which NumPy's own function already takes longer than PyTorch's. Plain
ones, on Tensors that nothing differentiates, are compared with NumPy: "high" are those more than half a microsecond
over it, for each operation of which one consists, such as a copy and what is written to it.

Values are NumPy's bit for bit, so an operation takes at least as long as NumPy's function. Where that alone takes
longer than PyTorch's, forward, at 1,000 and at 100,000 elements, NumPy's time to PyTorch's: `x ** 3` 25 and 270,
`hypot` 2.6 and 7.0, `logaddexp` 2.3 and 5.4, `sin` and `cos` 1.5 and 3.2; in 8 lanes `prod` 3.7 and 8.4, `cumsum`
and `cumprod` 3.6 and 4.0; sums of 100,000 elements 1.3 to 2.0. In the mixture of Gaussians the Einstein sum takes 270
of the gradient's 950 µs, and PyTorch's 60 of 690 (matrix products would take 20, with other last bits; its gradients
are such products), and the sum along an axis of four 85 and 31.

Forward and backward, these are above twice PyTorch's time because of functions of NumPy that the value needs, or the
gradient by the same rule. Least times, of 100,000 elements where nothing else is said:

| operation | NumPy's functions alone | µs | PyTorch, forward and backward, µs |
|---|---|--:|--:|
| `x ** 3` | `power` | 5,750 | 200 |
| `x ** 3`, 1,000 elements | `power` | 59 | 11 |
| `hypot` | `hypot` | 1,610 | 660 |
| `logaddexp` | `logaddexp`, `exp` twice | 2,290 | 1,130 |
| `sin`, `cos` | `sin`, `cos` | 1,870 | 730 |
| `cumsum` | `cumsum` twice | 660 | 290 |
| `column * row` | `multiply` three times, adding along either axis | 140 + 69 | 111 |
| `matrix + row` | `add`, adding along the axis | 29 + 19 | 36 |
| `sum` | `sum` | 18 | 7 |
| `sum`, axis 0 | `sum`, adding what is repeated along the axis | 15 + 33 | 15 |
| `sum`, axis 1 | the same | 22 + 37 | 10 |
| `sum`, two axes of three | the same | 25 + 41 | 18 |
| `prod`, 1,000 elements | `prod`, `multiply.accumulate` twice | 2 + 7 | 9 |
| `ij,jk->ik` | `einsum` (its bits; the gradients are products of matrices) | 5,680 | 3,500 |

Of routines in single precision these are above 1.2 because NumPy's decompositions and transforms compute in double,
SciPy's densities are in double, normalising goes over memory again and again, or because PyTorch's products of matrices
take half of OpenBLAS's time. Least times:

| routine, float32 | NumPy's functions alone | µs | PyTorch, forward and backward, µs |
|---|---|--:|--:|
| eigh, 64 x 64 | `eigh` | 250 | 220 |
| eigh, 256 x 256 | `eigh` | 5,710 | 5,200 |
| svd, 256 x 256 | `svd` | 11,060 | 9,540 |
| qr, 256 x 256 | `qr` | 3,280 | 3,980 |
| fft2, 64 x 64 | `fft2`, and in single precision for the gradient | 34 + 15 | 44 |
| fft2, 256 x 256 | the same | 700 + 210 | 440 |
| softmax, 1000 x 100 | its eight passes | 97 + 38 | 104 |
| log_softmax, 1000 x 100 | `exp` twice, of nine passes | 71 | 98 |
| normal log-density, 100,000 | `scipy.stats.norm.logpdf` | 610 | 530 |
| conv2d, 32 of 8 x 12 x 12 | `matmul` of windows, kernels and cotangents, three times | 470 | 540 |
| conv2d, 8 of 16 x 28 x 28 | the same | 2,030 | 1,250 |
| conv2d, 4 of 64 x 32 x 32 | the same | 10,350 | 6,080 |

Every run adds gradients to a `.grad` that has memory of its own from the beginning, which for 100,000 elements takes
23 µs, 27 in PyTorch, and does not count. (Left to itself PyTorch hands a view of the cotangent over as the first
`.grad` behind a view, and then adds it to itself.) A view takes 3 µs forward and backward beside that, 4 to 5 where
the caches have been emptied; differences between runs are as large as 1 µs there.

How much longer plain Tensors take than NumPy is the least time of either from the other, since where other programs run
medians show these. For functions of NumPy, which it passes on by its protocols, that alone takes 0.2 to 0.3 µs.

In a table `Start` a process calls functions that an earlier one has compiled, in processor time: the package is
installed, or a checkout, whose sources are looked at one by one. `beyond tracing` is what comes after tracing.

`python -m benchmarks <suite>` measures anew; `python -m tools.benchmark_page` writes this page.
"""


def sections(paths: list[Path]) -> str:
    """Return the page: the machine, and a table for each suite."""
    found = [json.loads(path.read_text()) for path in paths]
    return "\n".join([HEAD, measured_on(found[0]["machine"]), *map(section, found)])


def measured_on(machine: dict[str, Any]) -> str:
    """Say when and where the figures were measured."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if name != "wengert")
    return (
        f"Measured on {machine['date']} on a virtual machine with {machine['processors']} cores of an "
        f"{machine['processor']} processor, {machine['system']}, Python {machine['python']}, {versions}. "
        f"The load, this program included, was {machine['load']}; where it exceeds the number of cores, others ran "
        "at the same time, and figures are rough.\n"
    )


def section(content: dict[str, Any]) -> str:
    """Return one suite's tables: a summary where there are many cases."""
    results = content["results"]
    tables = summary(results) if "variant" in results[0].get("labels", {}) else [all_of(results)]
    return "\n".join([f"## {content['suite'].capitalize()}\n", *map(markdown, tables)])


def all_of(results: list[dict[str, Any]]) -> Table:
    """Return the table of all cases."""
    peers = list(dict.fromkeys(peer for result in results for peer in result["ratio"]))
    rows = []
    for result in results:
        name = ": ".join(filter(None, (result["case"], result["phase"])))
        ratios = [share(result["ratio"][peer]) if peer in result["ratio"] else "" for peer in peers]
        rows.append([name, duration(result["seconds_per_operation"]["wengert"]), *ratios])
    return Table("", ["", "Wengert", *(f"/ {peer}" for peer in peers)], rows)


def markdown(table: Table) -> str:
    """Return a table in Markdown."""
    title = [f"### {table.title}\n"] if table.title else []
    rule = f"|---|{'--:|' * (len(table.columns) - 1)}"
    rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table.rows]
    head = f"| {' | '.join(table.columns)} |".replace("|  |", "| |", 1)
    return "\n".join([*title, head, rule, *rows, ""])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark_page", description=main.__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="files written by the benchmarks, one for each suite")
    PAGE.write_text(sections(parser.parse_args().results))


if __name__ == "__main__":
    main()
