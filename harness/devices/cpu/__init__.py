"""The CPU device: the adapter between the judge and `harness.ptxcpu`."""
