"""What a run found, in the words and types of the report."""
