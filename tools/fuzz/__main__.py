"""Run random programs in every mode: `python -m tools.fuzz --programs N --seed S`."""

import sys

from tools.fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
