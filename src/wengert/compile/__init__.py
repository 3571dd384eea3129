"""From graphs to what runs: passes now, native code to come. It knows graphs and nothing of tapes."""
