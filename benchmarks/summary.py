"""Summaries of many results, from what `--json` writes: geometric means by group, and the worst of each variant."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.report import Table, duration

__all__ = ["summary"]

Row = dict[str, Any]
WORST = 10
PLAIN = "plain"
MOST_DONE = "backward"
LIMIT = 2.0  # ratio to the first peer above which an operation counts as high
EXTRA = 0.5e-6  # seconds over NumPy above which a plain one does


def summary(results: Sequence[Row]) -> list[Table]:
    """Return the tables that sum up results that are labelled with operation, variant and number of elements."""
    return Summary(results).tables()


class Summary:
    """Hold results, and what is looked up in them."""

    def __init__(self, results: Sequence[Row]) -> None:
        self.results = results
        self.peers = list(dict.fromkeys(peer for row in results for peer in row["ratio"]))
        self.variants = list(dict.fromkeys(row["labels"]["variant"] for row in results))
        self.plain = {place(row): row["seconds_per_operation"] for row in self.of_variant(PLAIN)}

    def of_variant(self, variant: str) -> list[Row]:
        """Return the results of a variant."""
        return [row for row in self.results if row["labels"]["variant"] == variant]

    def tables(self) -> list[Table]:
        """Return the geometric means, and the worst of each variant."""
        return [self.means(), *map(self.worst, self.variants)]

    @property
    def reference(self) -> str | None:
        """The peer that high ratios are found by: the first that differentiates."""
        return next((peer for peer in self.peers if peer != "numpy"), None)

    def excess(self, row: Row) -> float:
        """Return by how much a result is bad: its ratio; or, in seconds, what it takes longer than NumPy.

        A tenth of NumPy's time is let go, since the times of large arrays differ by that much.
        """
        if row["labels"]["variant"] != PLAIN:
            return float(row["ratio"].get(self.reference, 0.0))
        seconds = row["least_per_operation"]
        found = float(seconds["wengert"] - 1.1 * seconds["numpy"]) if "numpy" in seconds else 0.0
        return found / steps(row)

    def means(self) -> Table:
        """Return the geometric means of the ratios by variant and number of elements."""
        columns = ["variant", "elements", *(f"/ {peer}" for peer in self.peers), "high", "by NumPy", "over NumPy"]
        rows = []
        for variant in self.variants:
            found = self.of_variant(variant)
            for size in dict.fromkeys(row["labels"]["size"] for row in found):
                rows.append([variant, size, *self.mean_cells(variant, [row for row in found if place(row)[1] == size])])
        return Table("Geometric means of ratios", columns, rows)

    def mean_cells(self, variant: str, rows: Sequence[Row]) -> list[str]:
        """Return the means of some rows, how many are high, and how many of these because of NumPy's own function."""
        ratios = [mean(row["ratio"].get(peer) for row in rows) for peer in self.peers]
        high = [row for row in rows if self.excess(row) > (EXTRA if variant == PLAIN else LIMIT)]
        if variant == PLAIN:
            return [*ratios, str(len(high)), "", signed(statistics.median(map(over_numpy, rows)))]
        return [*ratios, str(len(high)), str(sum(self.kernel(row) > 1.0 for row in high)), ""]

    def worst(self, variant: str) -> Table:
        """Return the worst operations of a variant; of that which most programs do, all that are high."""
        found = sorted(self.of_variant(variant), key=self.excess, reverse=True)
        found = found[: max(WORST, sum(self.excess(row) > LIMIT for row in found) if variant == MOST_DONE else 0)]
        last = [f"NumPy / {self.reference}, forward", f"NumPy, forward / {self.reference}, whole"]
        last = ["over NumPy"] if variant == PLAIN else last
        columns = ["operation", "elements", "wengert", *(f"/ {peer}" for peer in self.peers), *last]
        return Table(f"Worst of {variant}", columns, [self.worst_cells(row) for row in found])

    def worst_cells(self, row: Row) -> list[str]:
        """Return the cells of one operation."""
        ratios = [f"{row['ratio'][peer]:.2f}" if peer in row["ratio"] else "" for peer in self.peers]
        kernels = [f"{found:.2f}" if found else "" for found in (self.kernel(row), self.kernel_of_whole(row))]
        last = [signed(over_numpy(row))] if row["labels"]["variant"] == PLAIN else kernels
        return [*place(row), duration(row["seconds_per_operation"]["wengert"]), *ratios, *last]

    def kernel(self, row: Row) -> float:
        """Return NumPy's time for the operation itself divided by the first peer's, or 0 if it was not measured."""
        seconds = self.plain.get(place(row), {})
        known = self.reference in seconds and "numpy" in seconds
        return float(seconds["numpy"] / seconds[self.reference]) if known else 0.0

    def kernel_of_whole(self, row: Row) -> float:
        """Return NumPy's time for the operation divided by the first peer's in the row's variant, or 0 likewise."""
        numpy, whole = self.plain.get(place(row), {}).get("numpy", 0.0), row["seconds_per_operation"]
        return float(numpy / whole[self.reference]) if self.reference in whole else 0.0


def place(row: Row) -> tuple[str, str]:
    """Return what the variants of one operation have in common."""
    return row["labels"]["operation"], row["labels"]["size"]


def over_numpy(row: Row) -> float:
    """Return the seconds that an operation takes longer than in NumPy, least time from least time, for each step."""
    seconds = row["least_per_operation"]
    return float(seconds["wengert"] - seconds.get("numpy", math.nan)) / steps(row)


def steps(row: Row) -> int:
    """Return of how many operations one consists: a copy that is written to of two, for instance."""
    return int(row["labels"].get("steps", 1))


def mean(ratios: Iterable[float | None]) -> str:
    """Return the geometric mean of the ratios there are."""
    found = [ratio for ratio in ratios if ratio is not None]
    return f"{statistics.geometric_mean(found):.2f}" if found else ""


def signed(seconds: float) -> str:
    """Return a difference of times."""
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)
