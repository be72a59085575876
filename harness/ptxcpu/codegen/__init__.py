"""The translation of PTX instructions to LLVM IR."""
