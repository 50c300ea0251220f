from __future__ import annotations

from self_test import _refused


def _raise(error: Exception) -> None:
    raise error


def test_only_an_error_of_the_system_counts_as_refused() -> None:
    assert _refused({"one": lambda: _raise(PermissionError()), "two": lambda: _raise(FileNotFoundError())}) == {
        "ok": True,
        "detail": "refused: one, two",
    }


def test_an_attempt_that_works_times_out_or_cannot_run_got_through() -> None:
    attempts = {"one": lambda: None, "two": lambda: _raise(TimeoutError()), "three": lambda: _raise(ValueError("odd"))}
    assert _refused(attempts) == {
        "ok": False,
        "detail": "got through: one, two (timed out), three (could not run: ValueError('odd'))",
    }
