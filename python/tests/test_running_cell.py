"""What the monitor does with the output of the cell that is running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import cast

import pytest

from sluice_worker.frames import Header
from sluice_worker.output import OutputStream
from sluice_worker.running_cell import RunningCell
from sluice_worker.state_processes import CellHandle


class Runner:
    """A cell process, as far as its output is concerned."""

    def __init__(self, stream: OutputStream) -> None:
        self.streams = [stream]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe2(os.O_NONBLOCK)
    yield read_end, write_end
    os.close(read_end)
    os.close(write_end)


def test_output_that_came_after_the_last_poll_is_sent(pipe: tuple[int, int]) -> None:
    # A cell that draws and prints: its artifact wakes the monitor, which then reads the answer together with the artifact.
    read_end, write_end = pipe
    sent: list[tuple[Header, bytes]] = []
    stream = OutputStream("stdout", read_end)
    stream.begin(1_000)
    runner = cast(CellHandle, Runner(stream))
    running = RunningCell(1, "none", runner, 0.0, lambda header, body: sent.append((header, body)))
    running.answer = ({"type": "done", "status": "ok"}, b"")
    running.forward_output(set())
    os.write(write_end, b"printed last\n")
    running.finish_output()
    assert sent == [({"type": "output", "cell": 1, "stream": "stdout"}, b"printed last\n")]
