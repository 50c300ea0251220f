"""Converts wall clock times to instants, also on days when clocks change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def localize(naive: pd.DatetimeIndex, tz: str) -> pd.DatetimeIndex:
    """Wall clock times in `tz` as instants. An ambiguous time gives the first instant, a skipped time the moment of the jump."""
    wall = naive.as_unit("ns")
    if tz == "UTC":
        return wall.tz_localize("UTC")
    first = np.ones(len(wall), dtype=bool)
    found = wall.tz_localize(tz, ambiguous=first, nonexistent="NaT")
    jumped: Any = np.asarray(found.isna()) & np.asarray(wall.notna())
    if not jumped.any():
        return found
    # nonexistent="shift_forward" of pandas is wrong where clocks jump by half an hour.
    before = wall[jumped].tz_localize(tz, ambiguous=first[jumped], nonexistent="shift_backward")
    instants = found.asi8.copy()
    instants[jumped] = before.asi8 + 1
    return pd.DatetimeIndex(instants.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(tz)
