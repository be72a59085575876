"""The compilation of a kernel file, and the facts about it. Start reading in compiler.py."""
