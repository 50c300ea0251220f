"""Run a Jupyter kernel with jupyter_client, both in the Python of the snapshot. Prints a line when warm; runs a trivial cell per input line.

The time is measured by a client that waits for the reply and for the idle kernel. The kernel has not imported the stack, which does not slow it down.
"""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=40"])


def run(code: str) -> float:
    started = time.perf_counter()
    request = client.execute(code)
    while True:
        message = client.get_iopub_msg(timeout=30)
        mine = message["parent_header"].get("msg_id") == request
        if mine and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    client.get_shell_msg(timeout=30)
    return (time.perf_counter() - started) * 1000


for _ in range(20):
    run("1 + 1")
print(json.dumps({"ready": 1}), flush=True)
for _ in sys.stdin:
    print(json.dumps({"ms": run("1 + 1")}), flush=True)
client.stop_channels()
manager.shutdown_kernel(now=True)
