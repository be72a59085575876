"""The judge: grades one kernel file. Start reading in grade.py."""
