"""A parser of PTX, the assembly language that NVIDIA's compilers write and ptxas reads."""
