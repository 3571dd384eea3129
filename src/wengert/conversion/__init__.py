"""Python control flow over traced values: functions are converted so that it becomes `cond` and loops of a graph."""
