"""``make pictures``: run the notebook "Which retriever suits my documents?" and photograph the report it writes.

Two pictures, as a reader sees the page first: a wide screen in light, a phone in dark. Needs Chromium.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from run_notebooks import ROOT, execute

PICTURES = ROOT / "docs" / "pictures"

#: File -> width, height, colours.
SCREENS = {"report.png": (1280, 800, "light"), "report-phone.png": (390, 800, "dark")}


def main() -> int:
    """Write the pictures; the exit code is 1 where there is no browser."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("chromium is not installed; CHROMIUM=path names another browser of its kind", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # where the notebook puts its results
        execute(ROOT / "notebooks" / "which_retriever.ipynb", folder)
        report = next(Path(folder).rglob("report.html"))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
            for name, (width, height, colours) in SCREENS.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
                page.goto(report.as_uri())
                page.wait_for_selector("html[data-ready]")
                page.screenshot(path=PICTURES / name)
                print(f"docs/pictures/{name}: {(PICTURES / name).stat().st_size / 1024:.0f} kB")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
