"""Machine code, kept and run on the cores of the host."""
