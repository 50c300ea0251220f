"""Reads the plotted values back from a matplotlib figure, and renders it."""
