"""Time the library and the simplest correct pandas code for the same results, and print milliseconds as JSON."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sluice

RUNS = 5
PERIODS, ENTITIES = 2500, 400
SOURCES, ROWS = 5, 200_000


def long_rows() -> pd.DataFrame:
    """Return 1 million unsorted rows: 400 entities over 2,500 days, 10 % nulls, entities that appear and disappear."""
    rng = np.random.default_rng(7)
    days = pd.date_range("2018-01-01", periods=PERIODS, freq="D", tz="UTC")
    frame = pd.DataFrame(
        {
            "time": days.repeat(ENTITIES) + pd.to_timedelta(rng.integers(0, 86_400, PERIODS * ENTITIES), unit="s"),
            "entity": np.tile([f"venue-{i}" for i in range(ENTITIES)], PERIODS),
            "value": rng.normal(1000, 10, PERIODS * ENTITIES),
        }
    )
    frame.loc[rng.random(len(frame)) < 0.1, "value"] = np.nan
    return frame.sample(frac=1, random_state=1, ignore_index=True)


def plain_change(rows: pd.DataFrame) -> pd.DataFrame:
    """Pivot, difference and sum, with the same columns (without `spans_periods`) and the same events (without their kind)."""
    ordered = rows.sort_values("time")
    matrix = ordered.groupby([ordered["time"].dt.floor("D"), "entity"])["value"].last().unstack()
    matrix = matrix.reindex(pd.date_range(matrix.index[0], matrix.index[-1], freq="D"))
    before = matrix.shift()
    here, there = matrix.notna(), before.notna()
    enters, leaves = here & ~there, there & ~here
    enters.iloc[0] = False
    changes = pd.DataFrame({"total_value": matrix.sum(axis=1, min_count=1)})
    changes["total_change"] = changes["total_value"].diff()
    known = here.any(axis=1) & there.any(axis=1)
    changes["stable_entities_change"] = (matrix - before).sum(axis=1).where(known)
    changes["coverage_change"] = (matrix.where(enters).sum(axis=1) - before.where(leaves).sum(axis=1)).where(known)
    changes["entering_entity_count"] = enters.sum(axis=1)
    changes["exiting_entity_count"] = leaves.sum(axis=1)
    periods, entities = list(matrix.index), list(matrix.columns)
    changes.attrs["events"] = [
        {"period": periods[row], "entity": entities[column], "value": value}
        for flags, values in ((enters.to_numpy(), matrix.to_numpy()), (leaves.to_numpy(), before.to_numpy()))
        for row, column, value in zip(*(part.tolist() for part in (*np.nonzero(flags), values[flags])), strict=True)
    ]
    return changes


def wide_sources() -> list[pd.DataFrame]:
    """Return five sources of 200,000 rows about seven minutes apart, two of them unsorted, with nulls."""
    rng = np.random.default_rng(11)
    sources = []
    for number in range(SOURCES):
        times = pd.date_range("2020-01-01", periods=ROWS, freq="7min", tz="UTC")
        frame = pd.DataFrame(
            {
                "time": times + pd.to_timedelta(rng.integers(0, 300, ROWS), unit="s"),
                "price": rng.normal(size=ROWS),
                "volume": rng.normal(size=ROWS),
            }
        )
        frame.loc[rng.random(ROWS) < 0.1, "price"] = np.nan
        sources.append(frame.sample(frac=1, random_state=number) if number % 2 else frame)
    return sources


def plain_merge(sources: list[pd.DataFrame]) -> pd.DataFrame:
    """Sort, floor, group, take the last of each, join."""
    parts = []
    for number, source in enumerate(sources):
        ordered = source.sort_values("time")
        grouped = ordered.drop(columns="time").groupby(ordered["time"].dt.floor("15min")).last()
        parts.append(grouped.add_prefix(f"s{number}_"))
    return pd.concat(parts, axis=1, join="outer").sort_index()


def timed(*calls: Callable[[], Any]) -> list[list[float]]:
    """Return the milliseconds of each call. The calls alternate, so that load on the machine affects all of them."""
    measured: list[list[float]] = [[] for _ in calls]
    for _ in range(RUNS):
        for call, times in zip(calls, measured, strict=True):
            started = time.perf_counter()
            call()
            times.append((time.perf_counter() - started) * 1000)
    return measured


def same(ours: pd.DataFrame, plain: pd.DataFrame) -> bool:
    return bool(np.allclose(ours.to_numpy(float), plain.to_numpy(float), rtol=1e-9, atol=1e-6, equal_nan=True))


def comparable(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((event["period"], event["entity"], event["value"]) for event in events)


def measure_change() -> dict[str, Any]:
    rows = long_rows()
    ours, plain = sluice.derive_change_series(rows, freq="1D"), plain_change(rows)
    agree = (
        same(ours[plain.columns], plain)
        and ours.index.equals(plain.index)
        and comparable(ours.attrs["coverage_events"]) == comparable(plain.attrs["events"])
    )
    ours_ms, plain_ms = timed(lambda: sluice.derive_change_series(rows, freq="1D"), lambda: plain_change(rows))
    return {"ours": ours_ms, "plain": plain_ms, "same": agree}


def measure_merge() -> dict[str, Any]:
    sources = wide_sources()
    names = [f"s{number}" for number in range(SOURCES)]
    ours, plain = sluice.safe_merge_timeseries(*sources, freq="15min", names=names), plain_merge(sources)
    agree = ours.columns.tolist() == plain.columns.tolist() and same(ours, plain) and ours.index.equals(plain.index)
    ours_ms, plain_ms = timed(
        lambda: sluice.safe_merge_timeseries(*sources, freq="15min", names=names), lambda: plain_merge(sources)
    )
    return {"ours": ours_ms, "plain": plain_ms, "same": agree}


def measure_import() -> list[float]:
    """Return the CPU time of importing the library after pandas and matplotlib, with byte code as in a snapshot."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(Path(sluice.__file__).parent, Path(directory) / "sluice")
        compileall.compile_dir(directory, quiet=2)
        code = (
            "import time, pandas, matplotlib.pyplot, statsmodels.api; started = time.process_time(); "
            "import sluice, sluice._cell; sluice._cell.install_hooks(); print((time.process_time() - started) * 1000)"
        )
        environment = {**os.environ, "PYTHONPATH": directory}
        return [
            float(subprocess.check_output([sys.executable, "-P", "-c", code], env=environment)) for _ in range(RUNS)
        ]


print(json.dumps({"change": measure_change(), "merge": measure_merge(), "importMs": measure_import()}))
