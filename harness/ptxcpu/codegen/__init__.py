"""From PTX instructions to LLVM IR."""
