"""A real NVIDIA GPU through CuPy, the only device whose times mean something. Start reading in
device.py; checker.py and sanitizer.py are processes of their own."""
