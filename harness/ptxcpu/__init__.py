"""A library that runs GPU kernels on the processor. Input: PTX and NumPy arrays; output: results,
findings and counters.

It imports nothing else of the project. Start with `kernel.py` and README.md.
"""
