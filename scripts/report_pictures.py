"""The report of the notebook "Which retriever suits my documents?", photographed for ``make pictures``.

Two pictures, as a reader sees the page first: a wide screen in light, a phone in dark.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from playwright.sync_api import Browser
from run_notebooks import ROOT, execute

#: File -> width, height, colours.
SCREENS = {"report.png": (1280, 800, "light"), "report-phone.png": (390, 800, "dark")}


def photograph(browser: Browser, path: Path) -> None:
    """Run the notebook and photograph the report it writes."""
    width, height, colours = SCREENS[path.name]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # where the notebook puts its results
        try:
            execute(ROOT / "notebooks" / "which_retriever.ipynb", folder)
        finally:
            del os.environ["TMPDIR"]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
        page.goto(next(Path(folder).rglob("report.html")).as_uri())
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=path)
        page.close()
