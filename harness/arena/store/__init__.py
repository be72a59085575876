"""The database of an arena, and all of its SQL."""
