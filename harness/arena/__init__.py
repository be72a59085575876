"""The arena: a web service to which people submit kernels, and which grades and ranks them."""
