"""Reads heatmaps: images and meshes of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.figures.plot_calls import call_record
from sluice.figures.reading import Reading
from sluice.figures.scales import plain_numbers


def read_images(reading: Reading) -> None:
    """Read images of numbers, with the centres of their cells. Images of colours are listed as unread."""
    from matplotlib.image import NonUniformImage, PcolorImage

    for image in reading.remaining(reading.axes.images):
        reading.claim(image)
        values = np.ma.asarray(image.get_array())
        if values.ndim != 2:
            reading.cannot_read(image, "an image of colours, not of numbers")
            continue
        if reading.is_too_large(image, values.size):
            continue
        if not _is_upright(reading, image):
            continue
        rows, columns = values.shape
        if isinstance(image, NonUniformImage):
            _add(reading, image, image._Ax, image._Ay, values)  # type: ignore[attr-defined]
            continue
        if isinstance(image, PcolorImage):
            _add_cells(reading, image, image._Ax, image._Ay, values)  # type: ignore[attr-defined]
            continue
        left, right, bottom, top = image.get_extent()
        first, last = (top, bottom) if image.origin == "upper" else (bottom, top)
        x = _centres(np.linspace(left, right, columns + 1))
        y = _centres(np.linspace(first, last, rows + 1))
        _add(reading, image, x, y, values)


def read_meshes(reading: Reading) -> None:
    """Read meshes whose columns and rows are straight."""
    for mesh in reading.remaining(reading.axes.collections):
        if not hasattr(mesh, "get_coordinates"):
            continue
        reading.claim(mesh)
        values = mesh.get_array()
        corners: Any = np.ma.filled(np.ma.asarray(mesh.get_coordinates(), dtype=float), np.nan)
        if values is None or np.ndim(values) > 2:
            reading.cannot_read(mesh, "a mesh of colours, not of numbers")
            continue
        if reading.is_too_large(mesh, np.size(values)):
            continue
        x_edges, y_edges = corners[0, :, 0], corners[:, 0, 1]
        if not (np.allclose(corners[:, :, 0], x_edges[None, :]) and np.allclose(corners[:, :, 1], y_edges[:, None])):
            reading.cannot_read(mesh, "a mesh whose rows and columns are not straight")
            continue
        shape = np.shape(values) if np.ndim(values) == 2 else (len(y_edges) - 1, len(x_edges) - 1)
        _add_mesh(reading, mesh, x_edges, y_edges, np.ma.asarray(values).reshape(shape))


def _add_mesh(reading: Reading, mesh: Any, x_edges: Any, y_edges: Any, values: Any) -> None:
    record = call_record(mesh, "pcolormesh")
    if record is not None and (len(record["y"]), len(record["x"])) == values.shape:
        _add(reading, mesh, record["x"], record["y"], values)
    elif values.shape == (len(y_edges), len(x_edges)):  # gouraud shading: the corners are the points
        _add(reading, mesh, x_edges, y_edges, values)
    else:
        _add_cells(reading, mesh, x_edges, y_edges, values)


def _add_cells(reading: Reading, artist: Any, x_edges: Any, y_edges: Any, values: Any) -> None:
    edges = [reading.x.values(x_edges), reading.y.values(y_edges)]
    _add(reading, artist, _centres(x_edges), _centres(y_edges), values, edges)


def _is_upright(reading: Reading, image: Any) -> bool:
    """Whether the rows and columns of an image are along the axes of data. If not, it is listed as unread."""
    if not hasattr(image, "get_extent"):
        reading.cannot_read(image, "an image that is not placed in data coordinates")
    elif image.get_transform() != reading.axes.transData:
        reading.cannot_read(image, "an image that was turned or moved by a transform")
    else:
        return True
    return False


def _add(reading: Reading, artist: Any, x: Any, y: Any, values: Any, edges: list[list[Any]] | None = None) -> None:
    z = [plain_numbers(row) for row in values]
    places = reading.x.values(x), reading.y.values(y)
    series = reading.add("heatmap", artist.get_label(), *places, z=z, edges=edges, artists=[artist])
    reading.occupy(series, "x", x, x)
    reading.occupy(series, "y", y, y)


def _centres(edges: Any) -> Any:
    return (edges[:-1] + edges[1:]) / 2
