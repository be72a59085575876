"""The child processes in which kernels are compiled and run, and the judge's side of them."""
