"""Values: Tensors, what is known of arrays, and how an operation on them is dispatched."""
