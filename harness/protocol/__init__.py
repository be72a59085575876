"""What the judge and its workers say to each other: every request, with its answer, once."""
