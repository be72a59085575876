"""What the arena answers over HTTP: an API for programs, pages for people."""
