"""Why a kernel is as fast as it is, and what the next step is worth. Start reading in explain.py;
evidence.py estimates the time, and rules.py gives the advice."""
