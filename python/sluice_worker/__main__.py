"""Runs the worker as process 1 of a sandbox that was started rather than forked. The channel is descriptor 0 (in) and 1 (out)."""

from __future__ import annotations

import os

from . import monitor, stack

# Move the channel away from descriptors 0 and 1, so that nothing that user code or a library prints can reach it.
channel_in = os.dup(0)
channel_out = os.dup(1)
null = os.open("/dev/null", os.O_RDWR)
for standard in (0, 1):
    os.dup2(null, standard)
os.close(null)

monitor.serve(channel_in, channel_out, stack.import_stack)
