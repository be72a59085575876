"""Where a kernel runs: one interface, two devices."""
