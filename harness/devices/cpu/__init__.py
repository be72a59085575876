"""The CPU device. See README.md in this folder."""
