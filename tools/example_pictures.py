"""Draw docs/pictures/examples: run `python -m tools.example_pictures [NAME ...]` after examples changed."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

from examples import _program

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures" / "examples"


def drawing() -> list[str]:
    """Return the names of the programs that draw what they find."""
    programs = (ROOT / "examples").glob("[!_]*.py")
    return sorted(path.stem for path in programs if "\ndef draw(" in path.read_text(encoding="utf-8"))


def main(names: list[str]) -> None:
    """Write the pictures of some programs, all if none is named, and say how long each takes."""
    PICTURES.mkdir(exist_ok=True)
    for name in names or drawing():
        program = importlib.import_module(f"examples.{name}")
        start = time.process_time()
        result = program.main()
        print(f"{name:24} {time.process_time() - start:6.1f} s of processor time")
        _program.save(program.draw(result), PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
