"""Runs GPU kernels on the processor: PTX and NumPy arrays in; results, mistakes and counters out.

It imports nothing else of the project. Start with `kernel.py` and README.md.
"""
