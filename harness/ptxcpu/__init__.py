"""The CPU device as a library. See README.md in this folder."""
