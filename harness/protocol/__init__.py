"""The messages between the judge and its workers: every request names its answer. Start reading in
request.py; report.py is the result of a grading. errors.py and files.py are for all packages."""
