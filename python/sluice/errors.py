"""The errors of the library. Each message says what is wrong, then what to do."""

from __future__ import annotations


class SluiceError(Exception):
    """Base of every error that the library raises on purpose."""


class ResultError(SluiceError, TypeError):
    """A value that has no exact JSON form. The message has its path. An earlier result stays valid."""


class OutputLimitError(SluiceError):
    """A result or artifact that exceeds its limit.

    Attributes
    ----------
    name : str
        The limit, as the host names it: ``resultBytes``, ``artifacts``, ``artifactBytes``, ``artifactDataBytes``,
        ``cellArtifactBytes``, ``turnArtifactBytes`` or ``artifactPixels``.
    allowed, seen : int
        The limit, and what the cell produced.
    """

    def __init__(self, name: str, allowed: int, seen: int, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.allowed = allowed
        self.seen = seen


class FigureError(SluiceError, ValueError):
    """A figure that cannot be saved. It stays open, so it can be fixed and saved."""


class ChartError(SluiceError, ValueError):
    """A chart spec or chart data that is not valid. Nothing was emitted."""


class ShapeError(SluiceError, ValueError):
    """A value whose shape `to_frame` does not recognize."""


class TimeError(SluiceError, ValueError):
    """Times that cannot be parsed, or time series that cannot be combined."""
