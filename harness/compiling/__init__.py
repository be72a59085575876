"""The compilation of a kernel file to machine code, and the facts about both. Start reading in
compiler.py."""
