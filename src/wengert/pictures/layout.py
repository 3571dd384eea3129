"""Layered drawing of acyclic graphs, in time nearly linear in their size.

K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system structures, IEEE Transactions
on Systems, Man and Cybernetics 11 (2), 1981, in four steps: layers, bends where wires pass layers, an order of each
layer with few crossings (by medians), and positions (least squares, solved exactly for each layer by pooling). The
wires of one result share their bends. Bends are what can grow beyond all bounds: a backward pass uses what the forward
pass computed a thousand layers before. The longest wires are therefore left out when there are too many, and only
their ends are drawn.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

from wengert.pictures.boxes import Wire
from wengert.support.records import NamedTuple

GAP = 18.0
"""Between boxes that are beside each other."""
LANE = 10.0
"""The width that a wire has to itself where it passes a layer."""
DISTANCE = 30.0
"""Between layers."""
BENDS = 3
"""Bends there may be for each box."""
ROUNDS = 6
"""Passes down and up that look for an order; the best one of all is taken."""
PULLS = (1.0, 4.0, 8.0)
"""How strongly a wire wants to be vertical, by how many of its ends are bends."""

LEANING = 1.5
"""How many times as wide as its widest layer a picture may be."""
TO_THE_MIDDLE = 0.2
"""How strongly the items of a wider one are pulled to the middle; a wire that wants to be upright pulls with 1."""


class LayerLink(NamedTuple):
    """Join two items of neighbouring layers, at distances from their centers."""

    upper: int
    leaves: float
    lower: int
    arrives: float


class WireSegment(NamedTuple):
    """Be a piece of a wire: down from the bottom of a box or the top of a layer, then from layer to layer.

    Attributes:
        x, y: where it begins.
        bottom: of the layer.
        to_x, to_y: where it ends.
    """

    x: float
    y: float
    bottom: float
    to_x: float
    to_y: float


class Layout(NamedTuple):
    """Hold positions.

    Attributes:
        width, height: of the whole.
        lefts, tops: of the boxes.
        layers: of each box.
        bands: top and bottom of each layer.
        wires: for (box, result) the pieces of its wires.
        ends: where wires that were left out arrive: (box, x, y).
    """

    width: float
    height: float
    lefts: list[float]
    tops: list[float]
    layers: list[int]
    bands: list[tuple[float, float]]
    wires: dict[tuple[int, int], list[WireSegment]]
    ends: list[tuple[int, float, float]]


def lay_out(sizes: Sequence[tuple[float, float]], ports: Sequence[tuple[int, int]], wires: Sequence[Wire]) -> Layout:
    """Return where boxes and wires go.

    The ports of a box are how many operands and results it has.
    """
    layers = assign_layers(len(sizes), wires)
    drawn, left_out = choose_wires(layers, wires)
    items = LayerItems(layers, [width for width, _ in sizes])
    nets: dict[tuple[int, int], list[LayerLink]] = {}
    for wire in drawn:
        items.join(wire, ports, nets)
    rows = order_by_crossings(items)
    centers = positions(items, rows)
    left = min((c - w / 2 for c, w in zip(centers, items.widths, strict=True)), default=0.0)
    centers = [center - left for center in centers]
    right = max((c + w / 2 for c, w in zip(centers, items.widths, strict=True)), default=0.0)
    bands = layer_bands(layers, sizes)
    tops = [bands[layer][0] for layer in layers]

    def piece(link: LayerLink) -> WireSegment:
        top, bottom = bands[items.layers[link.upper]]
        begin = top + sizes[link.upper][1] if link.upper < len(sizes) else top
        end = bands[items.layers[link.lower]][0]
        return WireSegment(centers[link.upper] + link.leaves, begin, bottom, centers[link.lower] + link.arrives, end)

    return Layout(
        width=right,
        height=bands[-1][1] if bands else 0.0,
        lefts=[centers[i] - width / 2 for i, (width, _) in enumerate(sizes)],
        tops=tops,
        layers=layers,
        bands=bands,
        wires={net: [piece(link) for link in links] for net, links in nets.items()},
        ends=[
            (
                w.target,
                centers[w.target] + port_offset(w.operand, ports[w.target][0], sizes[w.target][0]),
                tops[w.target],
            )
            for w in left_out
        ],
    )


def port_offset(number: int, count: int, width: float) -> float:
    """Return how far from the center of a box one of its operands or results is."""
    return ((number + 1) / (count + 1) - 0.5) * width


# Layers


def assign_layers(count: int, wires: Sequence[Wire]) -> list[int]:
    """Return a layer for each box, below those of what it uses: the uppermost, or where fewer wires are long then.

    Boxes that use nothing but the graph's inputs go to where they are used, and inputs with them.
    """
    layers = [0] * count
    before: list[set[int]] = [set() for _ in range(count)]
    after: list[set[int]] = [set() for _ in range(count)]
    for wire in wires:
        before[wire.target].add(wire.source)
        after[wire.source].add(wire.target)
    for i in range(count):
        layers[i] = max((layers[j] + 1 for j in before[i]), default=0)
    for i in reversed(range(count)):
        if sum(1 for j in before[i] if before[j]) < len(after[i]):
            layers[i] = min(layers[j] for j in after[i]) - 1
    used = {layer: i for i, layer in enumerate(sorted(set(layers)))}
    return [used[layer] for layer in layers]


def choose_wires(layers: Sequence[int], wires: Sequence[Wire]) -> tuple[list[Wire], list[Wire]]:
    """Return the wires to draw, the shorter ones first, and those to leave out."""
    budget = BENDS * len(layers) + 100
    spent: dict[tuple[int, int], int] = {}
    drawn, left_out = [], []
    for wire in sorted(wires, key=lambda w: (layers[w.target] - layers[w.source], w)):
        net, bends = wire[:2], layers[wire.target] - layers[wire.source] - 1
        cost = max(0, bends - spent.get(net, 0))
        if cost > budget:
            left_out.append(wire)
        else:
            budget -= cost
            spent[net] = max(bends, spent.get(net, 0))
            drawn.append(wire)
    return drawn, left_out


class LayerItems:
    """Hold what stands in layers: boxes, and after them bends; and the links between them."""

    def __init__(self, layers: Sequence[int], widths: Sequence[float]) -> None:
        self.boxes = len(layers)
        self.layers = list(layers)
        self.widths = list(widths)
        self.above: list[list[LayerLink]] = [[] for _ in layers]
        self.below: list[list[LayerLink]] = [[] for _ in layers]
        self.bends: dict[tuple[int, int], list[int]] = {}

    def join(self, wire: Wire, ports: Sequence[tuple[int, int]], nets: dict[tuple[int, int], list[LayerLink]]) -> None:
        """Link a result with an operand, through bends which all the wires of the result share."""
        net = wire.source, wire.result
        links = nets.setdefault(net, [])
        leaves = port_offset(wire.result, ports[wire.source][1], self.widths[wire.source])
        arrives = port_offset(wire.operand, ports[wire.target][0], self.widths[wire.target])
        bends = self.bends.setdefault(net, [])
        needed = self.layers[wire.target] - self.layers[wire.source] - 1
        while len(bends) < needed:
            upper = bends[-1] if bends else wire.source
            bend = self.bend(self.layers[upper] + 1)
            links.append(self.link(LayerLink(upper, 0.0 if bends else leaves, bend, 0.0)))
            bends.append(bend)
        upper, start = (bends[needed - 1], 0.0) if needed else (wire.source, leaves)
        links.append(self.link(LayerLink(upper, start, wire.target, arrives)))

    def bend(self, layer: int) -> int:
        """Add a bend to a layer."""
        self.layers.append(layer)
        self.widths.append(LANE)
        self.above.append([])
        self.below.append([])
        return len(self.layers) - 1

    def link(self, link: LayerLink) -> LayerLink:
        """Enter a link."""
        self.above[link.lower].append(link)
        self.below[link.upper].append(link)
        return link

    def pull(self, link: LayerLink) -> float:
        """Return how strongly a link wants to be vertical."""
        return PULLS[(link.upper >= self.boxes) + (link.lower >= self.boxes)]

    def rows(self) -> list[list[int]]:
        """Return the items of each layer in the order in which they were made."""
        rows: list[list[int]] = [[] for _ in range(max(self.layers, default=-1) + 1)]
        for item, layer in enumerate(self.layers):
            rows[layer].append(item)
        return rows


# Order


def order_by_crossings(items: LayerItems) -> list[list[int]]:
    """Return the items of each layer in an order in which few wires cross."""
    rows = items.rows()
    best, fewest = [list(row) for row in rows], crossings(items, rows)
    for i in range(ROUNDS):
        if fewest == 0:
            break
        sort_by_medians(items, rows, downward=i % 2 == 0)
        found = crossings(items, rows)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def sort_by_medians(items: LayerItems, rows: list[list[int]], *, downward: bool) -> None:
    """Sort each layer by the medians of where its wires come from, or go to."""
    index = places_in_layers(items, rows)
    for row in rows if downward else reversed(rows):
        keys: dict[int, float] = {}
        for item in row:
            if downward:
                ends = sorted([index[x.upper] + x.leaves / items.widths[x.upper] for x in items.above[item]])
            else:
                ends = sorted([index[x.lower] + x.arrives / items.widths[x.lower] for x in items.below[item]])
            middle = len(ends) // 2
            keys[item] = (ends[middle] + ends[~middle]) / 2 if ends else index[item]
        row.sort(key=keys.__getitem__)
        for i, item in enumerate(row):
            index[item] = i


def places_in_layers(items: LayerItems, rows: Sequence[Sequence[int]]) -> list[float]:
    """Return the place of each item in its layer."""
    index = [0.0] * len(items.layers)
    for row in rows:
        for i, item in enumerate(row):
            index[item] = i
    return index


def crossings(items: LayerItems, rows: Sequence[Sequence[int]]) -> int:
    """Return how many pairs of links cross: for each those before it that end further right."""
    index = places_in_layers(items, rows)
    count = 0
    for row in rows:
        seen: list[float] = []
        for item in row:
            links = items.below[item]
            ends = [(x.leaves, index[x.lower] + x.arrives / items.widths[x.lower]) for x in links]
            for _, end in sorted(ends):
                count += len(seen) - bisect_right(seen, end)
                insort(seen, end)
    return count


# Positions


def positions(items: LayerItems, rows: Sequence[Sequence[int]]) -> list[float]:
    """Return the centers of all items.

    What is wanted is upright wires. In a graph of a thousand layers each may then stand a little beside the one above,
    always on the same side; such a graph is held together by a pull to the middle.
    """
    widest = max((sum(gaps(items, row)) for row in rows), default=0.0)
    centers = straighten_wires(items, rows, 0.0)
    if centers and max(centers) - min(centers) > LEANING * widest + 500:
        centers = straighten_wires(items, rows, TO_THE_MIDDLE)
    return centers


def straighten_wires(items: LayerItems, rows: Sequence[Sequence[int]], inward: float) -> list[float]:
    """Return the centers of all items: layer after layer what makes the wires from above, then from below, upright.

    `inward` is how strongly items are pulled to the middle.
    """
    centers = [0.0] * len(items.layers)
    for row in rows:
        apart = gaps(items, row)
        start = -sum(apart) / 2
        for item, center in zip(row, set_apart([start] * len(row), [1.0] * len(row), apart), strict=True):
            centers[item] = center
    for downward in (True, False, True, False, True):
        for row in rows if downward else reversed(rows):
            wanted, pulls = [], []
            for item in row:
                links = items.above[item] if downward else items.below[item]
                total = sum([items.pull(x) for x in links])
                if downward:
                    ends = [(centers[x.upper] + x.leaves - x.arrives) * items.pull(x) for x in links]
                else:
                    ends = [(centers[x.lower] + x.arrives - x.leaves) * items.pull(x) for x in links]
                wanted.append(sum(ends) / (total + inward) if total else centers[item])
                pulls.append(total + inward or 0.1)
            for item, center in zip(row, set_apart(wanted, pulls, gaps(items, row)), strict=True):
                centers[item] = center
    return centers


def gaps(items: LayerItems, row: Sequence[int]) -> list[float]:
    """Return how far apart the centers of neighbours have to be."""
    widths, boxes = items.widths, items.boxes
    return [(widths[a] + widths[b]) / 2 + (GAP if a < boxes and b < boxes else GAP / 2) for a, b in pairwise(row)]


def set_apart(wanted: Sequence[float], pulls: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted ones (in weighted squares) that are in order and far enough apart.

    Less the distances before each it is a regression that must not decrease, which pooling neighbours that are in the
    wrong order solves: R. E. Barlow et al., Statistical inference under order restrictions, 1972.

    >>> set_apart([0.0, 0.0, 9.0], [1.0, 1.0, 1.0], [2.0, 2.0])
    [-1.0, 1.0, 9.0]
    """
    before = [0.0]
    for distance in apart:
        before.append(before[-1] + distance)
    pools: list[tuple[float, float, int]] = []  # the mean, its weight, and how many share it
    for want, pull, offset in zip(wanted, pulls, before, strict=False):
        mean, weight, count = want - offset, pull, 1
        while pools and pools[-1][0] > mean:
            other, more, others = pools.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, count = weight + more, count + others
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, before, strict=False)]


def layer_bands(layers: Sequence[int], sizes: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return top and bottom of each layer."""
    heights = [0.0] * (max(layers, default=-1) + 1)
    for layer, (_, height) in zip(layers, sizes, strict=True):
        heights[layer] = max(heights[layer], height)
    bands, top = [], 0.0
    for height in heights:
        bands.append((top, top + height))
        top += height + DISTANCE
    return bands
