"""Be the package `examples` for programs that are run by their path, whose folder alone Python looks through."""

from pathlib import Path

__path__ = [str(Path(__file__).parent)]
