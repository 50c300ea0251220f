"""The reading of one axes: its scales, the series found, and the artists that could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.figures.categories import Slots
from sluice.figures.scales import Scale, as_floats, read_scale

Series = dict[str, Any]
#: More values of one artist would not fit into an artifact.
MAX_VALUES = 500_000


@dataclass(frozen=True)
class Drawn:
    """A series, the artists that draw all of it, and the artists that draw one of its points each."""

    series: Series
    whole: Sequence[Any]
    parts: Sequence[Any]


@dataclass
class Reading:
    """Filled by one reader after the other. An artist that one reader has claimed is not passed to the next."""

    axes: Any
    x: Scale
    y: Scale
    series: list[Series] = field(default_factory=list)
    unread: list[dict[str, Any]] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)
    lines: list[tuple[Any, Series]] = field(default_factory=list)
    #: Where bars, boxes and cells stand on an axis.
    slots: list[Slots] = field(default_factory=list)
    #: What draws each series, for the legend.
    drawn: list[Drawn] = field(default_factory=list)

    @classmethod
    def create(cls, axes: Any) -> Reading:
        """An empty reading of `axes`."""
        return cls(axes, read_scale(axes.xaxis), read_scale(axes.yaxis))

    def add(
        self, kind: str, label: Any, x: list[Any], y: list[Any], *, artists: Any = (), parts: Any = (), **more: Any
    ) -> Series:
        """Add a series that `artists` draw, and one of `parts` for each point. Fields that are None are left out."""
        fields = {"type": kind, "label": shown_label(label), "x": x, "y": y, **more}
        series: Series = {name: value for name, value in fields.items() if value is not None}
        self.series.append(series)
        self.drawn.append(Drawn(series, list(artists), list(parts) if len(parts) == len(x) else []))
        return series

    def occupy(self, series: Series, axis: str, low: Any, high: Any) -> None:
        """Remember the stretches of an axis that the parts of a series take up."""
        self.slots.append(Slots(series, axis, as_floats(low), as_floats(high)))

    def nanoseconds(self, **places: tuple[Any, Any]) -> dict[str, Any]:
        """``xNanoseconds`` and ``yNanoseconds`` of times that are finer than a microsecond."""
        scales = {"x": self.x, "y": self.y}
        return {f"{name}Nanoseconds": scales[name].nanoseconds(*given) for name, given in places.items()}

    def cannot_read(self, artist: Any, reason: str) -> None:
        """List an artist as unread."""
        label = shown_label(getattr(artist, "get_label", lambda: None)())
        self.note_unread(type(artist).__name__ + (f" {label!r}" if label else ""), reason)

    def note_unread(self, name: str, reason: str) -> None:
        """List something as unread. The same entry again only counts."""
        for entry in self.unread:
            if (entry["artist"], entry["reason"]) == (name, reason):
                entry["count"] = entry.get("count", 1) + 1
                return
        self.unread.append({"artist": name, "reason": reason})

    def is_too_large(self, artist: Any, values: int) -> bool:
        """Whether an artist has more values than can be sent. If so, list it as unread."""
        if values > MAX_VALUES:
            self.cannot_read(artist, f"{values:,} values are too many to send, at most {MAX_VALUES:,}")
        return values > MAX_VALUES

    def claim(self, *artists: Any) -> None:
        """Mark artists as handled."""
        self.claimed.update(id(artist) for artist in artists)

    def remaining(self, artists: Any) -> list[Any]:
        """The visible artists that no reader has claimed yet."""
        return [artist for artist in artists if id(artist) not in self.claimed and artist.get_visible()]

    def is_data(self, artist: Any) -> bool:
        """Whether both coordinates of an artist are data coordinates of this axes."""
        return tuple(artist.get_transform().contains_branch_seperately(self.axes.transData)) == (True, True)


def shown_label(label: Any) -> str | None:
    """A label as a legend would show it."""
    text = None if label is None else str(label)
    return None if not text or text.startswith("_") else text
