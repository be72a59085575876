"""The generation, cache and execution of machine code on the cores of the host."""
