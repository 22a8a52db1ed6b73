"""Mermaid, which draws the diagrams of the site and of docs/pictures/, from the package index.

Code of others is not kept in this repository, and no Python package carries Mermaid alone: the wheel of NiceGUI has it,
as modules for a browser (MIT License, Copyright (c) 2014 - 2022 Knut Sveidqvist). ``python scripts/mermaid.py`` fetches
that wheel into the environment, without what NiceGUI itself needs; nothing of it is run here.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "nicegui==3.18.0"
FOLDER = Path(sys.prefix) / "mermaid"
INDEX = "index.js"  # exports `mermaid`
_INSIDE = "nicegui/elements/mermaid/dist/"


def fetch() -> Path:
    """The wheel, fetched where it is not there yet."""
    found = sorted(FOLDER.glob("*.whl"))
    if not found:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(FOLDER),
            PACKAGE,
        ]
        subprocess.run(command, check=True)
        found = sorted(FOLDER.glob("*.whl"))
    return found[0]


def modules() -> dict[str, bytes]:
    """Name -> content of Mermaid's modules, which load each other by these names."""
    with zipfile.ZipFile(fetch()) as wheel:
        names = [name for name in wheel.namelist() if name.startswith(_INSIDE) and name.endswith(".js")]
        return {name.removeprefix(_INSIDE): wheel.read(name) for name in names}


if __name__ == "__main__":
    fetch()
