"""The reading of one axes: its scales, and the series and unread artists gathered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sluice.figures.scales import Scale, read_scale

Series = dict[str, Any]
#: More than this of one artist would not fit into an artifact anyway.
MAX_VALUES = 500_000


@dataclass
class Reading:
    """Filled by one reader after the other; an artist that a reader has dealt with is not shown to the next."""

    axes: Any
    x: Scale
    y: Scale
    series: list[Series] = field(default_factory=list)
    unread: list[dict[str, str]] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    lines: list[tuple[Any, Series]] = field(default_factory=list)

    @classmethod
    def of(cls, axes: Any) -> Reading:
        """A reading of `axes` with nothing in it."""
        return cls(axes, read_scale(axes.xaxis), read_scale(axes.yaxis))

    def add(self, kind: str, label: Any, x: list[Any], y: list[Any], **more: Any) -> None:
        """Add a series; optional fields that are None are left out."""
        series: Series = {"type": kind, "label": shown_label(label), "x": x, "y": y, **more}
        self.series.append({name: value for name, value in series.items() if value is not None})

    def cannot_read(self, artist: Any, reason: str) -> None:
        """Name an artist whose values do not come out."""
        label = shown_label(getattr(artist, "get_label", lambda: None)())
        name = type(artist).__name__ + (f" {label!r}" if label else "")
        self.unread.append({"artist": name, "reason": reason})

    def is_too_large(self, artist: Any, values: int) -> bool:
        """Name an artist with more values than could be sent, before they are spread out in memory."""
        if values > MAX_VALUES:
            self.cannot_read(artist, f"{values:,} values are too many to send, at most {MAX_VALUES:,}")
        return values > MAX_VALUES

    def take(self, *artists: Any) -> None:
        """These artists are dealt with."""
        self.done.update(id(artist) for artist in artists)

    def left(self, artists: Any) -> list[Any]:
        """Visible artists that no reader has dealt with yet."""
        return [artist for artist in artists if id(artist) not in self.done and artist.get_visible()]

    def is_data(self, artist: Any) -> bool:
        """Whether both coordinates of an artist are data of this axes."""
        return tuple(artist.get_transform().contains_branch_seperately(self.axes.transData)) == (True, True)


def shown_label(label: Any) -> str | None:
    """A label as a legend would show it."""
    text = None if label is None else str(label)
    return None if not text or text.startswith("_") else text
