"""Restores integers beyond 2^53 that pandas turned into floats because the column has missing cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

#: From here on, neighbouring integers have the same double.
INEXACT = 2.0**53


def keep_integers(frame: pd.DataFrame, cells_of: Callable[[int], Iterable[Any]]) -> pd.DataFrame:
    """The frame with such columns as `Int64`. `cells_of` returns the original cells of the column at a position."""
    for position in [place for place, dtype in enumerate(frame.dtypes) if dtype == np.float64]:
        column = frame.iloc[:, position]
        if (column.abs() >= INEXACT).any():
            exact = _integers(cells_of(position))
            if exact is not None:
                frame.isetitem(position, exact.array)
    return frame


def _integers(cells: Iterable[Any]) -> pd.Series[Any] | None:
    listed = [None if _is_missing(cell) else cell for cell in cells]
    if not all(cell is None or (isinstance(cell, int) and not isinstance(cell, bool)) for cell in listed):
        return None
    try:
        return pd.Series(pd.array(listed, dtype="Int64"))
    except OverflowError:  # beyond 64 bits
        return pd.Series(listed, dtype=object)


def _is_missing(cell: Any) -> bool:
    return cell is None or cell is pd.NA or (isinstance(cell, float) and cell != cell)
