"""The child processes that compile and run kernels, and the judge's side of them. Start reading in
worker.py; session.py says which processes a grading uses."""
