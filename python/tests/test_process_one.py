"""The monitor ends every process that it sees: it may only do so in a namespace of its own."""

import subprocess
import sys


def test_the_worker_refuses_to_be_another_process_than_the_first() -> None:
    command = [sys.executable, "-m", "sluice_worker"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 4
    assert b"must be process 1 of its own pid namespace" in done.stdout
