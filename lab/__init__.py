"""Tools of the judge's developers: fuzzing, predictions, pictures, load and soak tests.

Users of the judge do not need them.
"""
