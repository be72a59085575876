"""Analyses of a kernel before code is generated."""
