"""The parts of screens that several commands show: reports, explanations and progress."""
