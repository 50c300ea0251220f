"""Writes corpus/coverage/random.json, and reads the cases of corpus/coverage.

`npm run check:python -- python tests/coverage_corpus.py > corpus/coverage/random.json` writes the file. A case has the places of a calendar; `at` are the
places of a series, as hexadecimal bits, the first place first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from calendars import CALENDARS, RHYTHMS, SPANS, calendar, drawn, random_subset

from sluice.coverage import PlottedSeries, judge_coverage

Case = dict[str, Any]
PLACES = {"daily": 120, "weekday": 100, "hourly": 96, "weekly": 104, "monthly": 60}
SHARES = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 45, 50, 55, 57, 59, 63, 75, 90)
FULL: Case = {"label": "full"}


def read_case(case: Case) -> list[PlottedSeries]:
    """The series of a case as the law sees them."""
    index = calendar(case["calendar"], case["places"])
    return [_read_series(one, index) for one in case["series"]]


def describe_verdicts(series: list[PlottedSeries]) -> list[Any]:
    """The verdicts as the corpus writes them: the kind, or null; with its numbers when it is low."""
    return [
        verdict and (["low", *verdict[1:4]] if verdict.kind == "low" else verdict.kind)
        for verdict in judge_coverage(series)
    ]


def _read_series(one: Case, index: pd.DatetimeIndex) -> PlottedSeries:
    if "seconds" in one:
        return drawn(one["label"], index[0] + pd.to_timedelta(one["seconds"], unit="s"))
    bits = _bits(one["at"], len(index)) if "at" in one else np.ones(len(index), dtype=bool)
    moved = index + pd.Timedelta(seconds=one.get("shiftSeconds", 0))
    has_nulls, markers = one.get("hasNulls", False), one.get("markers", False)
    places, has_value = (moved, bits) if has_nulls else (moved[bits], True)
    return drawn(one["label"], places, has_value, markers=markers)


def _bits(digits: str, places: int) -> Any:
    return np.array([digit == "1" for digit in f"{int(digits, 16):0{4 * len(digits)}b}"[:places]])


def _at(flags: Any) -> str:
    text = "".join("1" if flag else "0" for flag in flags)
    padded = text + "0" * (-len(text) % 4)
    return f"{int(padded, 2):0{len(padded) // 4}x}"


def _subset(places: int, share: float, seed: int) -> Any:
    return np.isin(np.arange(places), random_subset(places, max(round(places * share / 100), 2), seed))


def _cases() -> Iterator[Case]:
    seed = 0
    for name in CALENDARS:
        places = PLACES[name]
        for share in SHARES:
            seed += 1
            at = _at(_subset(places, share, seed))
            own: Case = {"label": "own", "at": at}
            shared = {"calendar": name, "places": places}
            yield {"title": f"{share} % rows beside all", **shared, "series": [FULL, own]}
            yield {"title": f"{share} % nulls alone", **shared, "series": [{**own, "hasNulls": True}]}
            yield {"title": f"{share} % rows alone", **shared, "series": [own]}
            if share % 2:
                shift = 3600 * (seed % 9 + 1) if name != "hourly" else 60 * (seed % 25 + 1)
                yield {"title": f"{share} % shifted rows", **shared, "series": [FULL, {**own, "shiftSeconds": -shift}]}
                marked = {**own, "hasNulls": True, "markers": True}
                yield {"title": f"{share} % markers alone", **shared, "series": [marked]}
            else:
                other = {"label": "other", "at": _at(_subset(places, 80, seed + 1000)), "hasNulls": True}
                yield {"title": f"{share} % nulls beside 80 %", **shared, "series": [other, {**own, "hasNulls": True}]}
    for name, rhythms in RHYTHMS.items():
        places = min(SPANS[name], 480)
        index = calendar(name, places)
        for rhythm, choose in rhythms.items():
            seed += 1
            regular = np.flatnonzero(choose(index))
            for title, kept in (
                ("", regular),
                (" with some missing", np.delete(regular, random_subset(len(regular), len(regular) // 10, seed))),
                (" with most missing", regular[random_subset(len(regular), max(len(regular) // 3, 2), seed)]),
            ):
                own = {"label": "own", "at": _at(np.isin(np.arange(places), kept))}
                yield {"title": rhythm + title, "calendar": name, "places": places, "series": [FULL, own]}
    for number in range(20):
        seconds = np.sort(np.random.default_rng(number).choice(90 * 86400, 6 + 2 * number, replace=False)).tolist()
        events = {"label": "events", "seconds": seconds}
        series = [events] if number % 2 else [FULL, events]
        yield {"title": "irregular events", "calendar": "daily", "places": 90, "series": series}


if __name__ == "__main__":
    cases = [{**case, "verdicts": describe_verdicts(read_case(case))} for case in _cases()]
    print("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]")
