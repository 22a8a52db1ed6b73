"""Measure reading on the sample documents and write the table into docs/doc_samples.md.

Usage: python scripts/report_doc_samples.py [FOLDER]   (default: RAG_KIT_DATA/doc_samples)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.recall import shares  # noqa: E402

from rag_kit.indexing.readers.api import Reader  # noqa: E402
from rag_kit.indexing.splitting.api import split  # noqa: E402

PAGE = ROOT / "docs" / "doc_samples.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def expected(folder: Path, path: Path) -> Path | None:
    for name in (f"groundtruth_{path.name}.md", f"groundtruth_{path.stem}.md"):
        if (folder / name).exists() and path.suffix != ".md":
            return folder / name
    return None


def markitdown() -> Callable[[Path], str] | None:
    try:
        from markitdown import MarkItDown
    except ImportError:
        return None
    converter = MarkItDown(enable_plugins=False)
    return lambda path: str(converter.convert(str(path)).text_content)


def main() -> int:
    data = Path(os.environ.get("RAG_KIT_DATA", ROOT.parent / "shared" / "data"))
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else data / "doc_samples"
    if not folder.is_dir():
        print(f"{folder} does not exist; name the folder of sample documents", file=sys.stderr)
        return 2
    peer = markitdown()
    lines = [
        "| file | parts | chunks | recall | precision | order | markitdown: recall | precision | order |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    with Reader() as reader:
        for path in sorted(folder.iterdir()):
            if path.name.startswith(("groundtruth_", "README")):
                continue
            documents = reader.read(path, root=folder)
            row = [path.name, str(len(documents)), str(len(split(documents)))]
            gold = expected(folder, path)
            if gold is None:
                row += ["-"] * 6
            else:
                text = gold.read_text(encoding="utf-8")
                ours = shares(text, "\n\n".join(document.page_content for document in documents))
                row += [f"{value:.3f}" for value in ours]
                row += [f"{value:.3f}" for value in shares(text, peer(path))] if peer else ["-"] * 3
            lines.append("| " + " | ".join(row) + " |")
    table = "\n".join(lines)
    if PAGE.exists() and BEGIN in (page := PAGE.read_text(encoding="utf-8")):
        before, rest = page.split(BEGIN, 1)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")
    print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
