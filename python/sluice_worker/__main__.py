"""The worker as the first process of a sandbox that was started, not forked: the channel is descriptor 0 (in) and 1 (out)."""

from __future__ import annotations

import os

from . import monitor, stack

# User code and libraries must never reach the channel by printing: move it away from the well-known numbers.
channel_in = os.dup(0)
channel_out = os.dup(1)
null = os.open("/dev/null", os.O_RDWR)
for well_known in (0, 1):
    os.dup2(null, well_known)
os.close(null)

monitor.serve(channel_in, channel_out, stack.import_stack)
