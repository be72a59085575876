"""The vector path: several threads of a block run as the lanes of one LLVM vector.

Start with `shapes.py`, the divergence analysis of registers, then read `translator.py`, which
writes scalar or vector code accordingly.
"""
