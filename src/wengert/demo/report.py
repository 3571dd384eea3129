"""What the demonstration shows: a table of what was taken for what, and a picture of the mistakes."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from wengert.demo.digits import Array

SCALE = 8  # screen pixels for each pixel of an image
GAP = 12  # screen pixels between images
COLUMNS = 6
CAPTION = 2  # screen pixels for each pixel of a caption
PAPER, INK, CAPTION_INK = 255, 16, 150

GLYPHS = {  # 3x5 pixels each, by rows
    "0": "### #.# #.# #.# ###",
    "1": ".#. ##. .#. .#. ###",
    "2": "### ..# ### #.. ###",
    "3": "### ..# .## ..# ###",
    "4": "#.# #.# ### ..# ..#",
    "5": "### #.. ### ..# ###",
    "6": "### #.. ### #.# ###",
    "7": "### ..# ..# .#. .#.",
    "8": "### #.# ### #.# ###",
    "9": "### #.# ### ..# ###",
    ">": "#.. .#. ..# .#. #..",
}


def confusion(labels: Array, answers: Array) -> Array:
    """Return how many images of each digit (rows) were taken for each digit (columns).

    >>> confusion(np.array([1, 1, 7]), np.array([1, 7, 7]))[1, 7]
    np.int64(1)
    """
    counts = np.zeros((10, 10), np.int64)
    np.add.at(counts, (labels, answers), 1)
    return counts


def confusion_table(counts: Array) -> Table:
    """Return the table of a confusion matrix; only mistakes stand out."""
    table = Table(title="Digits (rows) and what they were taken for", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", style="bold")
    for digit in range(10):
        table.add_column(str(digit), justify="right")
    table.add_column("right", justify="right", style="dim")
    for digit, row in enumerate(counts):
        cells = [Text(str(n) if n else ".", style=style_of(n, digit == i)) for i, n in enumerate(row)]
        share = f"{100 * row[digit] / row.sum():.0f} %" if row.any() else ""
        table.add_row(str(digit), *cells, share)
    return table


def style_of(count: int, right: bool) -> str:
    """Return the style of one cell."""
    if not count:
        return "dim"
    return "green" if right else "bold red"


def mistakes_picture(images: Array, labels: Array, answers: Array) -> bytes:
    """Return a PNG picture of images with captions such as `3>8`: a 3 that was taken for an 8."""
    tiles = [
        add_caption(image, f"{label}>{answer}") for image, label, answer in zip(images, labels, answers, strict=True)
    ]
    columns = min(COLUMNS, len(tiles))
    blank = np.full_like(tiles[0], PAPER)
    tiles += [blank] * (-len(tiles) % columns)
    rows = [np.hstack(tiles[start : start + columns]) for start in range(0, len(tiles), columns)]
    return png(np.pad(np.vstack(rows), GAP, constant_values=PAPER))


def add_caption(image: Array, caption: str) -> Array:
    """Return an enlarged image on paper with a caption below."""
    pixels = np.kron(image.reshape(8, 8), np.ones((SCALE, SCALE)))
    side = len(pixels)
    tile = np.full((side + 8 * CAPTION + GAP, side + GAP), PAPER, np.uint8)
    tile[:side, :side] = PAPER - pixels * (PAPER - INK)
    glyphs = np.hstack([np.pad(glyph(character), (0, 1)) for character in caption])
    drawn = np.kron(glyphs, np.ones((CAPTION, CAPTION), bool))
    top, left = side + 2 * CAPTION, (side - drawn.shape[1]) // 2
    tile[top : top + drawn.shape[0], left : left + drawn.shape[1]][drawn] = CAPTION_INK
    return tile


def glyph(character: str) -> Array:
    """Return the pixels of a character."""
    return np.array([[mark == "#" for mark in row] for row in GLYPHS[character].split()])


def png(pixels: Array) -> bytes:
    """Return a grey picture, of shape (height, width) and dtype uint8, in the PNG format.

    W3C, Portable Network Graphics (PNG) Specification, second edition, 2003: sections 5 and 9.
    """
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey, not interlaced
    lines = np.pad(pixels, ((0, 0), (1, 0))).tobytes()  # each line starts with its filter, 0
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return one part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
