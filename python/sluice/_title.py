"""The title of a figure or chart."""

from __future__ import annotations

from sluice.errors import SluiceError

MAX_TITLE_CHARACTERS = 500


def check_title(title: object, error: type[SluiceError]) -> str | None:
    """Return the title as text. Raises `error` when it is too long."""
    text = None if title is None else str(title)
    if text is not None and len(text) > MAX_TITLE_CHARACTERS:
        raise error(f"title has {len(text):,} characters, at most {MAX_TITLE_CHARACTERS:,} are allowed; shorten it")
    return text
