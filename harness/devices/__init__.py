"""The devices that run kernels, behind the interface of harness.protocol.device: `cuda` is a real
GPU, `cpu` adapts harness.ptxcpu. Start reading in cuda/device.py."""
