"""Why a kernel is as fast as it is, and what the next step is worth."""
