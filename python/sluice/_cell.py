"""What one cell yields: its result, its artifacts and the diagnostics gathered on the way.

The worker calls `begin` before user code and `CellReport.finish` after it. Outside a worker a default report collects
everything in memory, so that the helpers work in a plain Python too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sluice.errors import OutputLimitError, ResultError

MB = 1024 * 1024
EmitArtifact = Callable[[str, dict[str, Any], bytes], None]


class Limits(Protocol):
    """What the worker hands over; every number is a maximum."""

    @property
    def result_bytes(self) -> int: ...
    @property
    def artifacts(self) -> int: ...
    @property
    def artifact_bytes(self) -> int: ...


@dataclass(frozen=True)
class DefaultLimits:
    """The limits that apply outside a sandbox: the defaults of the host."""

    result_bytes: int = 10 * MB
    artifacts: int = 20
    artifact_bytes: int = 10 * MB


@dataclass(frozen=True)
class Finished:
    """What a cell that succeeded hands to the worker. `result_json` is None when the cell has no result."""

    result_json: bytes | None
    diagnostics: dict[str, Any]


@dataclass(frozen=True)
class Artifact:
    """An artifact as it was emitted; only kept by the report that stands in outside a worker."""

    kind: str
    header: dict[str, Any]
    body: bytes


@dataclass
class CellReport:
    """Gathers what one cell yields."""

    emit_artifact: EmitArtifact
    limits: Limits
    result_json: bytes | None = None
    artifact_count: int = 0
    show_calls: int = 0
    savefig_figures: list[Any] = field(default_factory=list)
    _result_notes: dict[str, Any] = field(default_factory=dict)
    _notes: dict[str, list[Any]] = field(default_factory=dict)

    def put_result(self, result_json: bytes, notes: dict[str, Any]) -> None:
        """Make this the result; an earlier one is forgotten together with its notes."""
        self.result_json = result_json
        self._result_notes = notes

    def put_artifact(self, kind: str, header: dict[str, Any], body: bytes) -> None:
        """Send an artifact to the host at once."""
        self.refuse_more_artifacts()
        self.emit_artifact(kind, header, body)
        self.artifact_count += 1

    def refuse_more_artifacts(self) -> None:
        """Raise when the next artifact would be one too many."""
        allowed, seen = self.limits.artifacts, self.artifact_count + 1
        if seen > allowed:
            message = f"a cell may emit at most {allowed} figures and charts; this is number {seen}"
            raise OutputLimitError("artifacts", allowed, seen, message)

    def note(self, key: str, entry: Any) -> None:
        """Add one entry to the diagnostics under `key`."""
        self._notes.setdefault(key, []).append(entry)

    def finish(self, value: object, has_value: bool) -> Finished:
        """Take the value of the last expression as the result if `set_result` was never called, and close the books."""
        if self.result_json is None and has_value and value is not None:
            self._take_implicit_result(value)
        return Finished(self.result_json, self.diagnostics())

    def diagnostics(self) -> dict[str, Any]:
        """Everything gathered so far; keys without an entry are left out."""
        from sluice._figure_watch import figure_counts

        gathered = {**self._result_notes, **self._notes, **figure_counts(self)}
        return {key: entry for key, entry in gathered.items() if entry}

    def _take_implicit_result(self, value: object) -> None:
        from sluice.result import serialise

        try:
            result_json, notes = serialise(value, self.limits.result_bytes)
        except ResultError as error:  # nobody asked for this value as a result, so it cannot fail the cell
            self._result_notes = {"implicitResultError": str(error)}
            return
        self.put_result(result_json, {**notes, "implicitResult": True})


_current: CellReport | None = None
#: What was emitted while no worker was there.
collected: list[Artifact] = []


def begin(emit_artifact: EmitArtifact, limits: Limits | None = None) -> CellReport:
    """Start the report of a new cell and make it the current one."""
    from sluice._figure_watch import mark_open_figures

    global _current
    mark_open_figures()
    _current = CellReport(emit_artifact, limits or DefaultLimits())
    return _current


def current() -> CellReport:
    """The report of the running cell; outside a worker, one that collects in memory."""
    return _current or begin(lambda kind, header, body: collected.append(Artifact(kind, header, body)))


def install() -> None:
    """Hook pyplot, once, after the stack was imported."""
    from sluice._figure_watch import watch_pyplot
    from sluice.figures.given import watch_axes

    watch_pyplot()
    watch_axes()
