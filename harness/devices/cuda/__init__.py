"""A real NVIDIA GPU through CuPy, the only device that is timed. Start reading in device.py;
checker.py and sanitizer.py run in separate processes."""
