"""The monitor kills every process that it sees, so it must have its own pid namespace."""

import subprocess
import sys


def test_the_worker_refuses_to_run_unless_it_is_process_1() -> None:
    command = [sys.executable, "-m", "sluice_worker"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 4
    assert b"must be process 1 of its own pid namespace" in done.stdout
