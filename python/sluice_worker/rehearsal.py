"""What most cells do, done once: what of the heap this does not write to, hardly any cell writes to."""

from __future__ import annotations

import linecache

from . import cell, stack
from .connection import Connection
from .frames import Header, encode

FIGURE = "figure, axes = plt.subplots()\n"
CELLS = (
    "1 + 1",
    'print("here")',
    'frame = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=40), "k": ["a", "b"] * 20, "v": np.arange(40.0)})',
    "frame",
    'means = frame.groupby("k").agg(mean=("v", "mean"), size=("v", "size")).reset_index()',
    'means.merge(frame, on="k").sort_values("v")',
    'frame.pivot_table(index="t", columns="k", values="v").resample("W").sum()',
    "import io\npd.read_csv(io.StringIO(frame.to_csv(index=False)), parse_dates=['t']).describe()",
    'print(sm.OLS(frame["v"], sm.add_constant(frame["v"] ** 2)).fit().summary())',
    FIGURE + 'axes.plot([1, 2, 3], [1, 4, 9])\nsave_figure("A line that rises from one to nine")',
    FIGURE + 'axes.bar(["a", "b"], [1, 2])\naxes.grid(True)\nsave_figure("Two bars, the second one higher")',
    FIGURE + 'axes.hist(frame["v"], bins=5)\naxes.set_xlabel("x")\nsave_figure("Forty values in five bins")',
    FIGURE + 'axes.scatter(frame["v"], frame["v"], label="s")\naxes.legend()\nsave_figure("Points on a diagonal")',
    "set_result({'rows': frame.head().to_dict('records')})",
    "a_name_that_is_not_there",
    *["1 + 1"] * 20,
)
LIMITS = {"resultBytes": 1 << 20, "artifacts": 1, "artifactBytes": 1 << 20}


class Nowhere(Connection):
    """In the place of the connection to the monitor."""

    def __init__(self) -> None:
        pass

    def send(self, header: Header, body: bytes | memoryview = b"", fds: list[int] | None = None) -> None:
        encode(header, len(body))


def rehearse() -> None:
    """In a process of cells that nobody else sees: its variables are gone with it."""
    stack.warm()
    process = cell.CellProcess(Nowhere())
    for code in CELLS:
        process.run({"cell": 0, "rollback": "none", "limits": LIMITS}, code)
    stack.forget_fonts()
    linecache.cache.pop("<cell 0>", None)
