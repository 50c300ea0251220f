"""Collects the output of one cell: its result, its artifacts and its diagnostics.

The worker calls `begin` before user code and `CellReport.finish` after it. Outside a worker a default report collects
everything in memory, so that the helpers also work in plain Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sluice.errors import OutputLimitError, ResultError

MB = 1024 * 1024
#: Diagnostics travel in the header of a frame, as JSON.
MAX_DIAGNOSTICS_BYTES = 96 * 1024
#: Sends an artifact: its kind, its header, its data as JSON, and the picture of an image.
EmitArtifact = Callable[[str, dict[str, Any], bytes, bytes], None]


@dataclass(frozen=True)
class Limits:
    """The limits on the output of a cell. The defaults are those of the host."""

    result_bytes: int = 10 * MB
    artifacts: int = 20
    #: Of one picture.
    artifact_bytes: int = 10 * MB
    #: Of the data behind one figure, and of one chart.
    artifact_data_bytes: int = 2 * MB
    #: Of all pictures and data of the cell.
    cell_artifact_bytes: int = 64 * MB
    #: Of all pictures and data of the turn, and what earlier cells of the turn have used of it.
    turn_artifact_bytes: int = 256 * MB
    turn_artifact_bytes_used: int = 0

    @classmethod
    def from_host(cls, limits: dict[str, int]) -> Limits:
        """The limits as the host sends them with a cell."""
        return cls(
            result_bytes=limits["resultBytes"],
            artifacts=limits["artifacts"],
            artifact_bytes=limits["artifactBytes"],
            artifact_data_bytes=limits["artifactDataBytes"],
            cell_artifact_bytes=limits["cellArtifactBytes"],
            turn_artifact_bytes=limits["turnArtifactBytes"],
            turn_artifact_bytes_used=limits["turnArtifactBytesUsed"],
        )


@dataclass(frozen=True)
class FinishedCell:
    """The output of a cell that succeeded. `result_json` is None when the cell has no result."""

    result_json: bytes | None
    diagnostics: dict[str, Any]


@dataclass(frozen=True)
class Artifact:
    """An emitted artifact, as the default report outside a worker keeps it."""

    kind: str
    header: dict[str, Any]
    data: bytes
    image: bytes


@dataclass
class CellReport:
    """The result, artifacts and diagnostics of one cell."""

    emit_artifact: EmitArtifact
    limits: Limits
    result_json: bytes | None = None
    artifact_count: int = 0
    artifact_bytes: int = 0
    show_calls: int = 0
    savefig_figures: list[Any] = field(default_factory=list)
    #: Font families that were reported as missing.
    missing_fonts: set[str] = field(default_factory=set)
    #: Keys of the derived series with coverage events, so that none is noted twice.
    coverage_series: list[tuple[Any, ...]] = field(default_factory=list)
    _result_notes: dict[str, Any] = field(default_factory=dict)
    _notes: dict[str, list[Any]] = field(default_factory=dict)
    _left_out: dict[str, int] = field(default_factory=dict)

    def put_result(self, result_json: bytes, notes: dict[str, Any]) -> None:
        """Set the result and its notes, replacing an earlier result."""
        self.result_json = result_json
        self._result_notes = notes

    def put_artifact(self, kind: str, header: dict[str, Any], data: bytes, image: bytes = b"") -> None:
        """Send an artifact to the host. Raises OutputLimitError when the cell or the turn has too many, or too many bytes."""
        self.check_artifact_count()
        self.check_artifact_bytes(len(data) + len(image))
        self.emit_artifact(kind, header, data, image)
        self.artifact_count += 1
        self.artifact_bytes += len(data) + len(image)

    def artifact_bytes_left(self) -> int:
        """How many bytes of pictures and data this cell can still emit."""
        limits = self.limits
        of_turn = limits.turn_artifact_bytes - limits.turn_artifact_bytes_used
        return max(0, min(limits.cell_artifact_bytes, of_turn) - self.artifact_bytes)

    def check_artifact_bytes(self, more: int) -> None:
        """Raise OutputLimitError if the pictures and data of this cell or turn would exceed their limit with `more` bytes."""
        limits = self.limits
        for name, whose, allowed, used in (
            ("cellArtifactBytes", "cell", limits.cell_artifact_bytes, 0),
            ("turnArtifactBytes", "turn", limits.turn_artifact_bytes, limits.turn_artifact_bytes_used),
        ):
            seen = used + self.artifact_bytes + more
            if seen > allowed:
                message = (
                    f"the figures and charts of this {whose} would have {seen:,} bytes with this one, "
                    f"at most {allowed:,} are allowed; emit fewer or smaller ones"
                )
                raise OutputLimitError(name, allowed, seen, message)

    def check_artifact_count(self) -> None:
        """Raise OutputLimitError if the next artifact would exceed the limit."""
        allowed, seen = self.limits.artifacts, self.artifact_count + 1
        if seen > allowed:
            message = f"a cell may emit at most {allowed} figures and charts; this is number {seen}"
            raise OutputLimitError("artifacts", allowed, seen, message)

    def note(self, key: str, entry: Any) -> None:
        """Add one entry to the diagnostics under `key`."""
        self._notes.setdefault(key, []).append(entry)

    def noted(self, key: str) -> list[Any]:
        """The entries under `key` so far."""
        return self._notes.get(key, [])

    def leave_out(self, key: str, count: int) -> None:
        """Count entries of `key` that are too many to be noted."""
        if count:
            self._left_out[key] = self._left_out.get(key, 0) + count

    def finish(self, value: object, has_value: bool) -> FinishedCell:
        """Return the output. If `set_result` was never called, the value of the last expression is the result."""
        if self.result_json is None and has_value and value is not None:
            self._take_implicit_result(value)
        return FinishedCell(self.result_json, self.diagnostics())

    def diagnostics(self) -> dict[str, Any]:
        """All diagnostics so far, without empty entries. Of lists that are too long, the first entries."""
        from sluice._figure_watch import figure_counts

        gathered = {**self._result_notes, **self._notes, **figure_counts(self)}
        return _shortened({key: entry for key, entry in gathered.items() if entry}, self._left_out)

    def _take_implicit_result(self, value: object) -> None:
        from sluice.result import serialise

        try:
            result_json, notes = serialise(value, self.limits.result_bytes)
        except ResultError as error:  # the cell did not ask for this result, so it must not fail because of it
            self._result_notes = {"implicitResultError": str(error)}
            return
        self.put_result(result_json, {**notes, "implicitResult": True})


def _shortened(diagnostics: dict[str, Any], left_out: dict[str, int]) -> dict[str, Any]:
    """Cut the longest entries until all fit. `omittedDiagnostics` counts what was left out, by key."""
    sizes = {key: len(json.dumps(entry)) for key, entry in diagnostics.items()}
    omitted = dict(left_out)
    while sum(sizes.values()) > MAX_DIAGNOSTICS_BYTES:
        key = max(sizes, key=lambda name: sizes[name])
        entry = diagnostics[key]
        kept = entry[: len(entry) // 2] if isinstance(entry, list | str) else None
        omitted[key] = omitted.get(key, 0) + (len(entry) - len(kept) if kept is not None else 1)
        diagnostics[key], sizes[key] = kept, len(json.dumps(kept)) if kept else 0
    kept_entries = {key: entry for key, entry in diagnostics.items() if entry}
    return {**kept_entries, "omittedDiagnostics": omitted} if omitted else kept_entries


_current: CellReport | None = None
#: Artifacts that were emitted outside a worker.
collected: list[Artifact] = []


def begin(emit_artifact: EmitArtifact, limits: Limits | None = None) -> CellReport:
    """Start the report of a new cell and make it the current one."""
    from sluice._figure_watch import mark_open_figures

    global _current
    mark_open_figures()
    _current = CellReport(emit_artifact, limits or Limits())
    return _current


def current() -> CellReport:
    """The report of the running cell. Outside a worker it collects in memory."""
    return _current or begin(lambda *artifact: collected.append(Artifact(*artifact)))


def install_hooks() -> None:
    """Hook matplotlib after it was imported. Calling it again changes nothing."""
    from sluice._figure_watch import watch_pyplot
    from sluice.figures.legends import watch_legends
    from sluice.figures.missing_fonts import watch_fonts
    from sluice.figures.pandas_periods import watch_pandas
    from sluice.figures.plot_calls import watch_axes

    watch_pyplot()
    watch_axes()
    watch_fonts()
    watch_legends()
    watch_pandas()
