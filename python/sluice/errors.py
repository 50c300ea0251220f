"""The errors of the library. Each message says what was seen, then what to do."""

from __future__ import annotations


class SluiceError(Exception):
    """Base of every error that the library raises on purpose."""


class ResultError(SluiceError, TypeError):
    """A value that has no exact JSON form. Names the path; the earlier result, if any, still stands."""


class OutputLimitError(SluiceError):
    """A result or artifact over its limit.

    Attributes
    ----------
    name : str
        The limit, as the host names it: ``resultBytes``, ``artifacts``, ``artifactBytes`` or ``artifactPixels``.
    allowed, seen : int
        What the limit is and what was asked for.
    """

    def __init__(self, name: str, allowed: int, seen: int, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.allowed = allowed
        self.seen = seen


class FigureError(SluiceError, ValueError):
    """A figure that cannot be saved. The figure stays open, so it can be repaired and saved."""


class ChartError(SluiceError, ValueError):
    """A chart specification or its data that does not hold. Nothing was emitted."""


class ShapeError(SluiceError, ValueError):
    """A value whose shape `to_frame` cannot tell."""


class TimeError(SluiceError, ValueError):
    """Times that cannot be read, or time series that cannot be put together."""
