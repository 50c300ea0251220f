"""Charts as data: the same schema and the same rules as the host."""
