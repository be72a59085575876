"""The stages of a grading: compile, verify, sanitize, count, measure. Each adds what it finds to a
`Grading`; the order is in harness/judge/grade.py."""
