"""The workers of an arena, which use HTTP and reach no database. Start reading in process.py."""
