"""Products of matrices and convolutions as code of programs: plans, tiles, loops over blocks."""
