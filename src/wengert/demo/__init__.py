"""The demonstration: train a small network on real handwritten digits, and show what it learned."""

from __future__ import annotations

import os

import numpy as np

from wengert.errors import UsageError

SEED = 1964  # the year of Wengert's paper


def run(epochs: int, picture: str | None = None, jit: bool = False) -> float:
    """Train, test and report.

    Args:
        epochs: how often the network sees each image.
        picture: the path of a picture of the digits that it got wrong; None for no picture.
        jit: whether the loss and its gradient run as graphs.

    Returns:
        The share of test images that were classified right.

    Raises:
        UsageError: the picture cannot be written there.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from wengert.demo.digits import load
    from wengert.demo.network import Network, epoch_losses
    from wengert.demo.report import confusion, confusion_table, mistakes_picture

    if picture is not None:
        require_writable(picture)
    console = Console(highlight=False)
    train, test = load()
    random = np.random.default_rng(SEED)
    network = Network(random)
    console.print(f"Training on {len(train.labels):,} handwritten digits of 8x8 pixels in {epochs} epochs.")
    columns = [
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}  loss {task.fields[loss]}"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=epochs, loss="-")
        for loss in epoch_losses(network, train, epochs, random, jit):
            progress.update(task, advance=1, loss=f"{loss:.4f}")
    answers = network.classify(test.images)
    wrong = answers != test.labels
    accuracy = 1 - float(wrong.mean())
    console.print()
    console.print(confusion_table(confusion(test.labels, answers)))
    console.print(
        f"[bold]Test accuracy: {100 * accuracy:.1f} %[/bold] "
        f"({(~wrong).sum()} of {len(wrong)} digits that were kept for the test)"
    )
    if not wrong.any():
        console.print("No digit was misclassified" + ("." if picture is None else ", so there is no picture of them."))
    elif picture is None:
        console.print(f"The option --picture PATH draws the {wrong.sum()} misclassified digits.")
    else:
        write(picture, mistakes_picture(test.images[wrong], test.labels[wrong], answers[wrong]))
        console.print(f"The {wrong.sum()} misclassified digits (3>5 is a 3 taken for a 5) are pictured in")
        console.print(f"  {escape(os.path.abspath(picture))}", soft_wrap=True)
    return accuracy


def require_writable(path: str) -> None:
    """Raise a UsageError before the work if a file cannot be written after it."""
    folder = os.path.dirname(os.path.abspath(path))
    if not path or os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise unwritable(path, "no file can be made there")


def write(path: str, content: bytes) -> None:
    """Write a file."""
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error.strerror or str(error)) from None


def unwritable(path: str, reason: str) -> UsageError:
    """Return the error about a picture that cannot be written."""
    given = f"--picture {path!r} ({reason})"
    return UsageError("wengert demo", given, "a path that can be written is needed", "Choose another")
