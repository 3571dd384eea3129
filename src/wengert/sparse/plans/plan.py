"""Plans: what is computed for a sparse derivative, as data that can be looked at, kept and loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_path
from wengert.errors import FileFormatError, UsageError
from wengert.pictures.pattern_pictures import pattern_lines, pattern_svg
from wengert.sparse.coloring.coloring import Coloring
from wengert.sparse.patterns.pattern import Pattern
from wengert.support.array_archives import DAMAGED, ChangedError, read_arrays, write_arrays
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]

VERSION = 3
"""Of the layout of files; of another version nothing is loaded."""
ARRAYS = ("columns", "rows", "by_column", "line", "group")
"""Of a colouring."""
PRODUCTS_A_MAP = 0.2
"""What a map takes by what a product takes: 0.13 to 0.33 for stencils, Hessians of chains, collocation and arrows."""


class Identity(NamedTuple):
    """Hold what a plan is for.

    Attributes:
        name: the derivative: "jacobian" or "hessian".
        inputs: shapes and dtypes of the arguments.
        digest: of the graph of the function, or nothing if it holds what no other process has.
    """

    name: str
    inputs: str
    digest: str


class Plan:
    """Hold what is done for a sparse derivative, and why; prints with a small picture of the pattern.

    Attributes:
        identity: what it is for.
        method: "maps" if elements are computed one by one, "elements" if by sums of columns and rows of the derivative
            by what is gathered from the arguments, "colors" if by those of the derivative itself, or "dense" if each
            column or row is computed by itself.
        pattern: which elements may be other than zero.
        coloring: the colours of rows and columns, in a plan by elements behind its gathers; None for a plan by maps.
        maps: of how many maps between elements the derivative is the sum, in a plan by maps; in one by elements without
            colours, how many numbers of each element are computed.
        reasons: which operations made it dense, with their lines.

    >>> import wengert as wg
    >>> plan = wg.sparse.jacobian(lambda x: x[1:] * x[:-1]).plan(np.ones(5))
    >>> print(plan)
    jacobian of 4 x 5: 8 elements (40 %), by 2 maps
    0.4 products in place of 4: 0.1 of the dense derivative
    |##   |
    | ##  |
    |  ## |
    |   ##|
    """

    def __init__(
        self,
        identity: Identity,
        method: str,
        pattern: Pattern,
        coloring: Coloring | None,
        maps: int = 0,
        reasons: Sequence[str] = (),
    ) -> None:
        self.identity, self.method, self.sparsity, self.coloring = identity, method, pattern, coloring
        self.maps, self.reasons = maps, tuple(reasons)

    @property
    def pattern(self) -> Any:
        """The pattern, a `scipy.sparse.csr_array` of bools."""
        return self.sparsity.to_scipy()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, of all results and all arguments."""
        return self.sparsity.shape

    @property
    def nnz(self) -> int:
        """How many elements are stored."""
        return self.sparsity.count

    @property
    def products(self) -> float:
        """What it takes, in products of the Jacobian with a vector: a map of as many elements takes a fifth of one."""
        whole = max(self.maps, self.nnz / max(*self.shape, 1))
        return PRODUCTS_A_MAP * whole if self.coloring is None else self.coloring.count

    @property
    def cost(self) -> float:
        """What it takes by what the dense derivative does, whose columns or rows, if these are fewer, are products."""
        return self.products / max(min(self.shape), 1)

    def __str__(self) -> str:
        m, n = self.shape
        share = 100 * self.nnz / max(m * n, 1)
        lines = [
            f"{self.identity.name} of {m} x {n}: {self.nnz} elements ({share:.2g} %), by {self.means()}",
            f"{self.products:.3g} products in place of {min(m, n)}: {self.cost:.2g} of the dense derivative",
            *self.reasons,
        ]
        return "\n".join(lines + pattern_lines(self.shape, self.sparsity.rows, self.sparsity.indices))

    def explain(self) -> str:
        """Return by what elements are computed and what makes the derivative dense, with the lines of the program.

        >>> import wengert as wg
        >>> print(wg.sparse.jacobian(lambda x: np.cumsum(x[::-1] ** 2)).plan(np.ones(30)).explain().partition(",")[0])
        by 1 map
        cumsum makes it dense
        """
        return "\n".join([f"by {self.means()}", *(self.reasons or ["nothing makes it dense"])])

    def means(self) -> str:
        """Return by what elements are computed, as the plan prints it."""
        if self.coloring is None:
            maps = "1 map" if self.maps == 1 else f"{self.maps} maps"
            return f"elements: {self.maps} numbers of each" if self.method == "elements" else maps
        sides = [(self.coloring.column_count, "columns"), (self.coloring.row_count, "rows")]
        parts = [f"{count} of {what}" for count, what in sides if count]
        if self.method == "dense":
            return f"all of {' and '.join(what for count, what in sides if count)}"
        found = " and ".join(parts).replace(" of ", " colours of ", 1) or "nothing"
        return f"elements: {found} behind gathers" if self.method == "elements" else found

    def __repr__(self) -> str:
        return f"<plan: {str(self).partition(chr(10))[0]}>"

    def _repr_svg_(self) -> str:
        return pattern_svg(self.shape, self.sparsity.rows, self.sparsity.indices)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the plan to a file: arrays and text, nothing that runs; the function is known by a digest.

        Args:
            file: a path, which is written as given; the file appears whole or not at all.

        Raises:
            UsageError: the function holds what no other process has, so that no digest tells it from others.
            OSError: it cannot be written.
        """
        path = os.fsdecode(as_path("Plan.save", file))
        if not self.identity.digest:
            given = "a plan of a function that captures what has no digest"
            needed = "arrays and numbers alone are needed"
            raise UsageError("Plan.save", given, needed, "Pass what it captures as arguments")
        head = {"version": VERSION, **self.identity._asdict(), "method": self.method, "reasons": self.reasons}
        head |= {"shape": self.shape, "maps": self.maps}
        if self.coloring is not None:
            head |= {"structure": self.coloring.structure}
            head |= {"counts": (self.coloring.column_count, self.coloring.row_count)}
            head |= {"colored": self.coloring.sparsity.shape}
        arrays = {name: array for name, array in self.arrays().items() if array is not None}
        write_arrays(path, json.dumps({**head, "arrays": [*arrays]}), [*arrays.values()])

    def arrays(self) -> dict[str, Array | None]:
        """Return the arrays that make it up, by their names in files."""
        coloring = self.coloring
        found: dict[str, Array | None] = {"indptr": self.sparsity.indptr, "indices": self.sparsity.indices}
        if coloring is not None:
            found |= {name: getattr(coloring, name) for name in ARRAYS}
            if coloring.sparsity is not self.sparsity:
                found |= {"starts": coloring.sparsity.indptr, "others": coloring.sparsity.indices}
        return found


def load_plan(file: str | os.PathLike[str]) -> Plan:
    """Return a plan that was saved: data alone, nothing of which is run.

    Pass it as `plan` to the function that made it: `jacobian(fun, plan=load_plan("file"))`. The function, and shapes
    and dtypes of its arguments, have to be those that it was made for.

    Args:
        file: a path.

    Returns:
        The plan.

    Raises:
        FileFormatError: the file holds no plan, one of another version, or was damaged.
        OSError: it cannot be read.

    >>> import tempfile
    >>> import wengert as wg
    >>> differences = lambda x: x[1:] ** 2 - x[:-1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wg.sparse.jacobian(differences).plan(np.ones(4)).save(f"{folder}/plan")
    ...     plan = load_plan(f"{folder}/plan")
    >>> wg.sparse.jacobian(differences, plan=plan)(np.ones(4)).toarray()
    array([[-1.,  2.,  0.,  0.],
           [ 0., -1.,  2.,  0.],
           [ 0.,  0., -1.,  2.]])
    """
    path = os.fsdecode(as_path("sparse.load_plan", file))
    needed, action = "one that Plan.save wrote is needed", "Make the plan again, and save it"
    try:
        text, arrays = read_arrays(path)
        head = json.loads(text)
        entries = dict(zip(head["arrays"], arrays, strict=True))
    except ChangedError as error:
        raise FileFormatError("sparse.load_plan", "a file that has changed since", needed, action) from error
    except DAMAGED as error:
        raise FileFormatError("sparse.load_plan", "a file without a plan", needed, action) from error
    if head["version"] != VERSION:
        raise FileFormatError("sparse.load_plan", f"a plan of version {head['version']}", needed, action)
    pattern = Pattern(tuple(head["shape"]), entries["indptr"], entries["indices"])
    own = Pattern(tuple(head["colored"]), entries["starts"], entries["others"]) if "starts" in entries else pattern
    coloring = coloring_in(own, head, entries) if "structure" in head else None
    identity = Identity(head["name"], head["inputs"], head["digest"])
    return Plan(identity, head["method"], pattern, coloring, head["maps"], head["reasons"])


def coloring_in(pattern: Pattern, head: dict[str, Any], entries: dict[str, Array]) -> Coloring:
    """Return the colouring that a file holds."""
    sides = [
        (entries[name], count) if name in entries else None
        for name, count in zip(("columns", "rows"), head["counts"], strict=True)
    ]
    places = entries["by_column"], entries["line"], entries["group"]
    return Coloring(pattern, head["structure"], sides[0], sides[1], places)
