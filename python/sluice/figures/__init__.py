"""The data behind a picture: reads the plotted values back from a matplotlib figure."""

from sluice.figures.read import read_figure

__all__ = ["read_figure"]
