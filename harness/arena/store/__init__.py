"""Everything that the arena keeps, and all of its SQL."""
