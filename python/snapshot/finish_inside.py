"""The last step of a layer, run by its own Python while its root can still be written."""

import compileall
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
from py_compile import PycInvalidationMode


def compile_all(directories: list[str]) -> None:
    """Compile for a root that is never written: no import checks a source file's time or writes anything."""
    for directory in directories:
        compileall.compile_dir(
            directory,
            quiet=2,
            workers=os.cpu_count() or 1,
            maxlevels=30,
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )


def list_fonts(families: list[str]) -> None:
    """Write matplotlib's list of fonts to MPLCONFIGDIR.

    A family of the fallback chain without a bold face gets its regular one under that name too:
    a bold title would warn about it.
    """
    import matplotlib as mpl
    from matplotlib import font_manager

    manager = font_manager.fontManager
    for family in families:
        faces = [face for face in manager.ttflist if face.name == family]
        if not faces:
            raise SystemExit(f"The font {family} is not there.")
        if not any(face.weight == 700 for face in faces):
            manager.ttflist.append(dataclasses.replace(faces[0], weight=700))
    # Found in the order of a set, which is never the same twice.
    for faces in (manager.ttflist, manager.afmlist):
        faces.sort(key=lambda face: (face.name, str(face.weight), face.style, str(face.fname)))
    file = pathlib.Path(mpl.get_cachedir()) / f"fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(manager, file)


def main() -> None:
    """Print the versions as one JSON object."""
    options = json.loads(sys.argv[1])
    compile_all(options["directories"])
    list_fonts(options["families"])
    packages = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in importlib.metadata.distributions()}
    print(json.dumps({"python": platform.python_version(), "packages": dict(sorted(packages.items()))}))


if __name__ == "__main__":
    main()
