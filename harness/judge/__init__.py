"""The judge grades kernel files. Start reading in grade.py: its table of parts is the order of a
grading, and each part is a function in stages."""
