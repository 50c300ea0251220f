"""Run FastMCP's CodeMode with Monty, client and server in one Python process. Prints a line when warm; runs the script of each input line, given as JSON.

The tools are the same as in our benchmark: `noop` returns an empty object, `slow` takes 20 ms.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

os.environ["MONTY_BIN"] = "/tmp/wheels/bin/monty"  # its wheel is in a separate directory, not in an environment

from fastmcp import Client, FastMCP  # noqa: E402
from fastmcp.experimental.transforms.code_mode import CodeMode  # noqa: E402

server = FastMCP("bench", transforms=[CodeMode(max_tool_calls=None)])


@server.tool
async def noop() -> dict[str, Any]:
    return {}


@server.tool
async def slow() -> dict[str, Any]:
    await asyncio.sleep(0.02)
    return {}


async def main() -> None:
    async with Client(server) as client:

        async def run(code: str) -> float:
            started = time.perf_counter()
            await client.call_tool("execute", {"code": code})
            return (time.perf_counter() - started) * 1000

        for _ in range(5):
            await run("return 1 + 1")
        print(json.dumps({"ready": 1}), flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps({"ms": await run(json.loads(line))}), flush=True)


asyncio.run(main())
