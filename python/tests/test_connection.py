"""Reading what a process sent before it ended."""

from __future__ import annotations

import array
import os
import socket

from sluice_worker.connection import Connection, socketpair
from sluice_worker.frames import encode


def test_everything_that_arrived_is_drained_although_a_read_ends_at_every_message_with_descriptors() -> None:
    ours, theirs = map(Connection, socketpair())
    null = os.open(os.devnull, os.O_RDONLY)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null]))]
    frame = encode({"type": "artifact"}, 3) + b"abc"
    for position in range(len(frame)):
        theirs.sock.sendmsg([frame[position : position + 1]], rights)
    theirs.send({"type": "done"})
    theirs.close()
    os.close(null)
    ours.drain()
    assert ours.next_frame() == ({"type": "artifact"}, b"abc")
    assert ours.next_frame() == ({"type": "done"}, b"")
    assert ours.next_frame() is None
    ours.close()


def test_draining_does_not_wait_for_more() -> None:
    ours, theirs = map(Connection, socketpair())
    ours.drain()
    assert ours.next_frame() is None
    theirs.send({"type": "done"})
    ours.drain()
    assert ours.next_frame() == ({"type": "done"}, b"")
    ours.close()
    theirs.close()
