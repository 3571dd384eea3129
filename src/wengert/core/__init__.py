"""Values, primitives and their dispatch: what every other layer stands on."""
