"""What is known of a kernel before code is made of it."""
