"""The device's runtime: CUDA C++, compiled by NVRTC and this device's own translator."""
