"""How each reader that is compared turns a file into the texts of its pages; run in a process of its own.

Usage: python benchmarks/quality/reader_peers.py READER FILE   (prints one JSON object)
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path


def ours(path: str) -> list[str]:
    from rag_kit.indexing.readers.child import convert
    from rag_kit.indexing.readers.limits import ReadLimits
    from rag_kit.indexing.readers.parts import Context

    kind = Path(path).suffix.lstrip(".")
    return [part.text for part in convert(path, kind, Context(ReadLimits()))]


def xberg(path: str) -> list[str]:
    from xberg import ExtractInput, ExtractionConfig, PageConfig, extract

    pages = PageConfig(extract_pages=True)
    config = ExtractionConfig(output_format="markdown", pages=pages, disable_ocr=True, use_cache=False)
    (document,) = asyncio.run(extract(ExtractInput(uri=path), config)).results
    return [page.content for page in document.pages or []] or [document.content]


def docling_parse(path: str) -> list[str]:
    from docling_parse.pdf_parser import DoclingPdfParser

    document = DoclingPdfParser(loglevel="fatal").load(path)
    return ["\n".join(cell.text for cell in page.textline_cells) for _, page in document.iterate_pages()]


def pdf_oxide(path: str) -> list[str]:
    from pdf_oxide import PdfDocument

    document = PdfDocument(path)
    return [document.to_markdown(page, embed_images=False) for page in range(document.page_count())]


def liteparse(path: str) -> list[str]:
    from liteparse import LiteParse

    parser = LiteParse(ocr_enabled=False, quiet=True, output_format="markdown", num_workers=1)
    return [page.markdown or page.text for page in parser.parse(path).pages]


def markitdown(path: str) -> list[str]:
    from markitdown import MarkItDown

    return [str(MarkItDown(enable_plugins=False).convert(path).text_content)]


EVERY = ("pdf", "docx", "pptx", "xlsx", "html", "epub")
READERS: dict[str, tuple[Callable[[str], list[str]], tuple[str, ...]]] = {
    "rag_kit": (ours, EVERY),
    "xberg": (xberg, EVERY),
    "docling-parse": (docling_parse, ("pdf",)),
    "pdf-oxide": (pdf_oxide, ("pdf",)),
    "liteparse": (liteparse, ("pdf",)),
    "markitdown": (markitdown, EVERY),
}


def main() -> None:
    pages = READERS[sys.argv[1]][0](sys.argv[2])
    seconds = time.process_time()
    # of this program alone; ru_maxrss knows what ran before exec too
    (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps({"pages": pages, "seconds": seconds, "memory": int(peak) / 1024}))


if __name__ == "__main__":
    main()
