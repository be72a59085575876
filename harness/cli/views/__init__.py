"""Ways to show a report."""
