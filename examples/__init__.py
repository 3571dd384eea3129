"""Programs to read and to run, each about one subject; README.md lists them."""
