"""The command line: one file a command, and what the terminal shows. Start reading in main.py."""
