"""Collects the output of one cell: its result, its artifacts and its diagnostics.

The worker calls `begin` before user code and `CellReport.finish` after it. Outside a worker a default report collects
everything in memory, so that the helpers also work in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sluice.errors import OutputLimitError, ResultError

MB = 1024 * 1024
EmitArtifact = Callable[[str, dict[str, Any], bytes], None]


@dataclass(frozen=True)
class Limits:
    """The limits on the output of a cell. The defaults are those of the host."""

    result_bytes: int = 10 * MB
    artifacts: int = 20
    artifact_bytes: int = 10 * MB


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
    body: bytes


@dataclass
class CellReport:
    """The result, artifacts and diagnostics of one cell."""

    emit_artifact: EmitArtifact
    limits: Limits
    result_json: bytes | None = None
    artifact_count: int = 0
    show_calls: int = 0
    savefig_figures: list[Any] = field(default_factory=list)
    _result_notes: dict[str, Any] = field(default_factory=dict)
    _notes: dict[str, list[Any]] = field(default_factory=dict)

    def put_result(self, result_json: bytes, notes: dict[str, Any]) -> None:
        """Set the result and its notes, replacing an earlier result."""
        self.result_json = result_json
        self._result_notes = notes

    def put_artifact(self, kind: str, header: dict[str, Any], body: bytes) -> None:
        """Send an artifact to the host. Raises OutputLimitError when the cell has too many."""
        self.check_artifact_count()
        self.emit_artifact(kind, header, body)
        self.artifact_count += 1

    def check_artifact_count(self) -> None:
        """Raise OutputLimitError if the next artifact would exceed the limit."""
        allowed, seen = self.limits.artifacts, self.artifact_count + 1
        if seen > allowed:
            message = f"a cell may emit at most {allowed} figures and charts; this is number {seen}"
            raise OutputLimitError("artifacts", allowed, seen, message)

    def note(self, key: str, entry: Any) -> None:
        """Add one entry to the diagnostics under `key`."""
        self._notes.setdefault(key, []).append(entry)

    def finish(self, value: object, has_value: bool) -> FinishedCell:
        """Return the output. If `set_result` was never called, the value of the last expression is the result."""
        if self.result_json is None and has_value and value is not None:
            self._take_implicit_result(value)
        return FinishedCell(self.result_json, self.diagnostics())

    def diagnostics(self) -> dict[str, Any]:
        """All diagnostics so far, without empty entries."""
        from sluice._figure_watch import figure_counts

        gathered = {**self._result_notes, **self._notes, **figure_counts(self)}
        return {key: entry for key, entry in gathered.items() if entry}

    def _take_implicit_result(self, value: object) -> None:
        from sluice.result import serialise

        try:
            result_json, notes = serialise(value, self.limits.result_bytes)
        except ResultError as error:  # the cell did not ask for this result, so it must not fail because of it
            self._result_notes = {"implicitResultError": str(error)}
            return
        self.put_result(result_json, {**notes, "implicitResult": True})


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
    return _current or begin(lambda kind, header, body: collected.append(Artifact(kind, header, body)))


def install_hooks() -> None:
    """Hook matplotlib after it was imported. Calling it again changes nothing."""
    from sluice._figure_watch import watch_pyplot
    from sluice.figures.pandas_periods import watch_pandas
    from sluice.figures.plot_calls import watch_axes

    watch_pyplot()
    watch_axes()
    watch_pandas()
