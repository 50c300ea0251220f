"""Checks charts with the same schema and the same rules as the host."""
