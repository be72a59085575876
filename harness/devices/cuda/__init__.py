"""A real NVIDIA GPU through CuPy: the only device whose times mean something."""
