"""The array graph: variables and equations, checked, executed, compared and printed."""
