"""Tables and plots of what the reports on this problem measured, from real runs."""
