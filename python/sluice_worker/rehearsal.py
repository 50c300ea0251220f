"""What most cells do, done once: what of the heap this does not write to, hardly any cell writes to."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from . import stack


def rehearse() -> None:
    """Draw, group, join, reshape, read, fit and print."""
    import numpy as np
    import pandas as pd
    import statsmodels.api as sm

    stack.warm()
    frame = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=40), "k": ["a", "b"] * 20, "v": np.arange(40.0)})
    _draw(lambda axes: axes.plot([1, 2, 3], [1, 4, 9]))
    _draw(lambda axes: (axes.bar(["a", "b"], [1, 2]), axes.set_ylabel("y"), axes.grid(True)))
    _draw(lambda axes: (axes.hist(frame["v"], bins=5), axes.set_xlabel("x")))
    _draw(lambda axes: (axes.scatter(frame["v"], frame["v"], label="s"), axes.legend()))
    stack.forget_fonts()
    means = frame.groupby("k").agg(mean=("v", "mean"), size=("v", "size")).reset_index()
    means.merge(frame, on="k").sort_values("v").head().to_dict("records")
    frame.pivot_table(index="t", columns="k", values="v").resample("W").sum()
    pd.read_csv(io.StringIO(frame.to_csv(index=False)), parse_dates=["t"]).describe().to_json()
    sm.OLS(frame["v"], sm.add_constant(frame["v"] ** 2)).fit().summary().as_text()
    str(frame)
    for number in range(10):
        exec(compile(f"value = {number} + 1", "<rehearsal>", "exec"), {})


def _draw(draw: Callable[[Any], object]) -> None:
    import matplotlib.pyplot as plt

    from sluice.figures.render import render

    figure, axes = plt.subplots()
    draw(axes)
    render(figure, [axes])
    plt.close(figure)
