"""PDFs as other programs write them, with known text, for comparing readers on files that were made after most
of the kit's rules: Chromium, WeasyPrint and LibreOffice print the pages of reader_pages.py, LibreOffice a sheet, and
fpdf2 draws tables of its own. What of these programs is not installed is named and left out.

Usage: python benchmarks/quality/reader_unseen.py FOLDER

Chromium and LibreOffice come from packages of the system (in Debian `chromium` and `libreoffice`), with the fonts
`fonts-dejavu` and `fonts-noto-cjk`; WeasyPrint and fpdf2 from PyPI. None is a dependency of the kit.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from reader_known import KnownFile, heading, table, text
from reader_pages import EN, STOCK, WORKS, Page, pages


def chromium(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        options += ["--no-pdf-header-footer", f"--print-to-pdf={target}"]
        _run("chromium", *options, source.as_uri())


def weasyprint(source: Path, target: Path) -> None:
    _run(sys.executable, "-m", "weasyprint", str(source), str(target))


def libreoffice(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        options = ["--headless", f"-env:UserInstallation={Path(made, 'user').as_uri()}"]
        kind = "pdf:writer_pdf_Export" if source.suffix == ".html" else "pdf"
        _run("soffice", *options, "--convert-to", kind, "--outdir", made, str(source))
        shutil.move(Path(made, source.stem).with_suffix(".pdf"), target)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=180, capture_output=True)


PRINTERS: dict[str, Callable[[Path, Path], None]] = {
    "chromium": chromium,
    "weasyprint": weasyprint,
    "libreoffice": libreoffice,
}


def missing() -> list[str]:
    """The programs that are not installed."""
    found = {
        "chromium": shutil.which("chromium"),
        "weasyprint": importlib.util.find_spec("weasyprint"),
        "libreoffice": shutil.which("soffice"),
        "fpdf2": importlib.util.find_spec("fpdf"),
    }
    return [name for name, where in found.items() if where is None]


def write_files(folder: str | Path) -> list[KnownFile]:
    """Write the files into a folder, which is made, and return what is known of each; what is there is kept."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    absent = missing()
    known = []
    for page in pages():
        for printer in PRINTERS:
            if printer != "libreoffice" or page.office:
                path = target / f"{page.name}-{printer}.pdf"
                if not path.exists() and printer not in absent:
                    _print(page, printer, path)
                known.append(KnownFile(path.name, tuple(page.blocks)))
    if not (target / "stock-libreoffice.pdf").exists() and "libreoffice" not in absent:
        _print_sheet(target / "stock-libreoffice.pdf")
    known.append(KnownFile("stock-libreoffice.pdf", (table(STOCK),)))
    for lines in ("ALL", "MINIMAL", "NONE"):
        path = target / f"works-{lines.lower()}-fpdf2.pdf"
        if not path.exists() and "fpdf2" not in absent:
            _draw(lines, path)
        blocks = (heading("Spare parts"), text(_words(0, 3)), table(WORKS), table(STOCK), text(_words(5, 8)))
        known.append(KnownFile(path.name, blocks))
    return [one for one in known if (target / one.name).exists()]


def _print(page: Page, printer: str, path: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        source = Path(made, f"{page.name}.html")
        # LibreOffice does not print a heading that stands first
        first = "<body><p>&nbsp;</p>" if printer == "libreoffice" else "<body>"
        source.write_text(page.html.replace("<body>", first), encoding="utf-8")
        PRINTERS[printer](source, path.resolve())


def _print_sheet(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in STOCK:
        book.active.append([int(cell) if cell.isdigit() else cell or None for cell in row])
    for column in "ABCD":  # together no wider than a page
        book.active.column_dimensions[column].width = 14
    with tempfile.TemporaryDirectory() as made:
        source = Path(made, "stock.xlsx")
        book.save(source)
        libreoffice(source, path)


def _draw(lines: str, path: Path) -> None:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", "B", 16)
    pdf.cell(0, 12, "Spare parts", new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("Helvetica", size=11)
    pdf.multi_cell(0, 6, _words(0, 3))
    for rows, widths in ((WORKS, (25, 25, 70)), (STOCK, None)):
        pdf.ln(12)
        with pdf.table(rows, borders_layout=lines, col_widths=widths, text_align="LEFT"):
            pass
    pdf.ln(12)
    pdf.multi_cell(0, 6, _words(5, 8))
    pdf.output(str(path))


def _words(first: int, end: int) -> str:
    return " ".join(EN.split("\n")[first:end])


if __name__ == "__main__":
    written = write_files(sys.argv[1])
    print(f"{len(written)} files; not installed: {', '.join(missing()) or 'nothing'}")
