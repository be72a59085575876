"""The arena: a web service to which people submit kernels, and which grades and ranks them."""

import warnings

# Importing PostgreSQL's package asks for a folder that the arena does not use.
warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
