"""From a kernel file's text to machine code, and what both say. Start reading in
compiler.py."""
