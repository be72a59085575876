"""The arena's web service: an API for programs and pages for people."""
