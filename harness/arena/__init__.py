"""The arena: a service to which anybody submits and where everybody watches."""
