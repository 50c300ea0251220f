"""Prepended to every script that runs in Monty. The host provides `_sluice_call` and `_sluice_poll`.

`call_tool` starts the call right away and returns a coroutine that polls for its result. Between two polls it lets the other
tasks of a `gather` run, so that calls are concurrent. Monty has no other way to wait: its host functions return values, never futures.
"""
# mypy: ignore-errors
# ruff: noqa: D103, F821

import asyncio as _sluice_asyncio
import json as _sluice_json


async def _sluice_let_others_run():
    pass


async def _sluice_wait(_sluice_id):
    while True:
        _sluice_text = _sluice_poll(_sluice_id)
        if _sluice_text is not None:
            return _sluice_json.loads(_sluice_text)
        await _sluice_asyncio.gather(_sluice_let_others_run())


def call_tool(name, params=None):
    return _sluice_wait(_sluice_call(name, "{}" if params is None else _sluice_json.dumps(params)))
