"""Sweeping a kernel's parameters."""
