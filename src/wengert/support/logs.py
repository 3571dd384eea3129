"""What `WENGERT_LOG` asks for, said through `logging`, to loggers named `wengert.passes` and so on.

Where the program has no handlers of its own, lines go to standard error. It is imported when there is something to say.
"""

from __future__ import annotations

import functools
import logging
import sys


def say(topic: str, line: str) -> None:
    """Say something about a topic, for which somebody has asked."""
    logger_of(topic).info("%s", line)


@functools.cache
def logger_of(topic: str) -> logging.Logger:
    """Return the logger of a topic."""
    logger = logging.getLogger(f"wengert.{topic}")
    logger.setLevel(logging.INFO)
    logger.addHandler(ToStandardError())
    return logger


class ToStandardError(logging.Handler):
    """Write lines to what is standard error at the moment, unless the program handles them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if not logging.getLogger().handlers:
            sys.stderr.write(f"{record.getMessage()}\n")
