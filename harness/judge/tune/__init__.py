"""Tuning: trying the values that a kernel file lists for its constants. Start in tune.py."""
