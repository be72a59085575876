"""The vector path: several threads of a warp run as the lanes of one LLVM vector.

Start with `shapes.py`, which finds what the lanes of each register have in common, then read
`translator.py`, which writes scalar or vector code accordingly.
"""
