"""Python control flow over traced values: functions are converted so that it becomes `cond` and loops of a graph."""

from wengert.conversion.calls import converted

__all__ = ["converted"]
