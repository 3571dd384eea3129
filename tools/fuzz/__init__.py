"""Random programs, and the comparison of their values and derivatives in every mode.

`python -m tools.fuzz --programs 1000 --seed 1` generates programs as source text (`grammar` has the expressions,
`statements` what surrounds them), loads each as a module (`programs`), and compares what every transformation makes of
it with plain NumPy and with differences (`modes`). A program that fails is made smaller as long as it fails in the same
way (`shrinking`), and printed so that it runs by itself.
"""
