"""The screens of the terminal: reports, explanations, rankings and progress."""
