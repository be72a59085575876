"""The device's runtime in CUDA C++, compiled by NVRTC and this device's own translator."""
