"""Everything that runs on a machine which grades for an arena. It speaks HTTP with the arena and
reaches no database; start reading in process.py."""
