"""What stands below all else: switches, hints, refusals, and what the interpreter is asked for and kept from."""
