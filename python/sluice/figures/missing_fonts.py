"""Reports each missing font family once. Matplotlib reports it for every size and weight, and every fallback besides."""

from __future__ import annotations

import functools
import logging
from typing import Any

from sluice import _cell

PREFIX = "findfont: "


class _OncePerFamily(logging.Filter):
    """Drops what matplotlib says about fallbacks, and about families that were reported in this cell."""

    def __init__(self) -> None:
        super().__init__()
        #: What was said during a search for one of several families. None outside of such a search.
        self.held: list[logging.LogRecord] | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        if not str(record.msg).startswith(PREFIX) or record.levelno < logging.WARNING:
            return True
        if "not found" not in str(record.msg) or not isinstance(record.args, tuple):
            return False
        if self.held is not None:
            self.held.append(record)
            return False
        families = record.args[0] if isinstance(record.args[0], list) else [str(record.args[0])]
        reported = _cell.current().missing_fonts
        unreported = [family for family in families if family not in reported]
        reported.update(unreported)
        return bool(unreported)


def watch_fonts() -> None:
    """Report missing fonts once in each cell. Calling it again changes nothing."""
    from matplotlib.font_manager import FontManager, FontProperties

    log = logging.getLogger("matplotlib.font_manager")
    if any(isinstance(one, _OncePerFamily) for one in log.filters):
        return
    once = _OncePerFamily()
    log.addFilter(once)
    manager: Any = FontManager
    find = manager._find_fonts_by_props

    @functools.wraps(find)
    def find_first(self: Any, prop: Any, *args: Any, **kwargs: Any) -> Any:
        """A missing family is only reported if all others of its list are missing too: the others are its fallbacks."""
        families: Any = FontProperties._from_any(prop).get_family()  # type: ignore[attr-defined]
        held: list[logging.LogRecord] = []
        once.held = held
        try:
            return find(self, prop, *args, **kwargs)
        finally:
            once.held = None
            if len(held) >= len(families):
                for record in held:
                    log.handle(record)

    manager._find_fonts_by_props = find_first
