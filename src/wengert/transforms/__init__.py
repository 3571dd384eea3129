"""Function transformations: functions from functions to functions."""
