"""The steps of a grading after compilation: verify, sanitize, measure."""
