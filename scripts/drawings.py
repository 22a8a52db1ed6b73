"""Drawings of ``make pictures``: a session on a terminal, a fusion, a tree of summaries, the map of the parts.

The first three come from a run of the kit: a picture shows what a reader gets.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape, unescape
from pathlib import Path
from textwrap import shorten, wrap

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rag_kit.documents import get_provenance
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.raptor.build import build_raptor
from rag_kit.indexing.raptor.tree import RaptorTree
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, TrigramRetriever
from rag_kit.text import content_words

COLUMNS = 90

#: The files of the session, and what is typed in it.
FILES = {
    "warranty.md": "# Warranty\n\nThe warranty covers the battery for two years. It does not cover the cable.\n",
    "退货.md": "# 退货\n\n收到背包后 30 天内可以退货，用过的也可以。\n",
}
COMMANDS = (
    ["ingest", "handbook", "--index", "my-index", "--embedding-model", "none", "--quiet"],
    ["ask", "How long is the battery covered?", "--index", "my-index", "--pipeline", "bm25"],
    ["ask", "用过的背包可以退货吗？", "--index", "my-index", "--pipeline", "bm25"],
    ["ask", "Which colours does the bag come in?", "--index", "my-index", "--pipeline", "bm25"],
)

#: Passages of the fusion: the typing error in the query is one that only letters see through.
QUERY = "battery waranty"
PASSAGES = {
    "A": "The battery lasts ten hours.",
    "B": "The warranty covers the battery for two years.",
    "C": "Send the warranty card to the shop.",
    "D": "Charge the battery before the first trip.",
}

#: Passages of the tree: two subjects.
NOTES = (
    "The pump moves cooling water through the main pipe of the hall, day and night, all through the year.",
    "A valve in the main pipe holds the cooling water back when the pump of the hall is being repaired.",
    "The pump stops by itself when the pressure of the cooling water in the main pipe falls below two bar.",
    "The cooling water in the main pipe is tested every spring, before the pump and the valve are cleaned.",
    "Bread dough of flour and yeast rises for an hour under a cloth before the oven in the kitchen is lit.",
    "The oven in the kitchen bakes the bread dough at 220 degrees until the crust of the bread is brown.",
    "Old yeast makes the bread dough flat, and no oven in the kitchen can bake good bread of it then.",
    "The flour for the bread dough lies in the kitchen beside the oven, dry and away from the yeast.",
)

#: Problem -> the parts for it, in each language.
PARTS = {
    "en": {
        "The answer is there but is not found": "EnsembleRetriever · MultiQueryRetriever · ParentDocumentRetriever",
        "Words are misspelled, codes are cut up": "TrigramRetriever · BM25Retriever",
        "The answer joins facts of several passages": "GraphRetriever · DecompositionRetriever",
        "The question is about the whole": "RaptorRetriever over build_raptor",
        "The question names a year, an author, a price": "SelfQueryRetriever",
        "The numbers are in a database or a graph": "sql_query · graph_query",
        "There are several sources": "RoutingRetriever · build_adaptive_rag",
        "The passage is right, the answer is wrong": "RerankRetriever · CompressionRetriever · build_crag",
        "The answer must not be invented": "citations of every graph · build_self_rag",
        "The documents are PDFs with tables": "read · split · ingest --ocr",
        "It is too slow": "ExactVectorRetriever · fan_out · Budget",
        "Which of these is best for my documents?": "evaluate · compare · diagnose · tune",
    },
    "zh": {
        "文档里有答案，却找不到": "EnsembleRetriever · MultiQueryRetriever · ParentDocumentRetriever",
        "有错别字，型号被切碎": "TrigramRetriever · BM25Retriever",
        "答案要拼合几个段落里的事实": "GraphRetriever · DecompositionRetriever",
        "问的是整体": "RaptorRetriever + build_raptor",
        "问题里带年份、作者或价格": "SelfQueryRetriever",
        "数字在数据库或图里": "sql_query · graph_query",
        "有多个来源": "RoutingRetriever · build_adaptive_rag",
        "段落对了，答案错了": "RerankRetriever · CompressionRetriever · build_crag",
        "答案不能是编造的": "每个图的引用核对 · build_self_rag",
        "文档是带表格的 PDF": "read · split · ingest --ocr",
        "太慢": "ExactVectorRetriever · fan_out · Budget",
        "哪一种最适合我的文档？": "evaluate · compare · diagnose · tune",
    },
}


def session() -> str:
    """``rag-kit`` on a terminal: documents are read, and questions asked, the last of which they do not answer."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "handbook").mkdir()
        for name, text in FILES.items():
            (Path(folder) / "handbook" / name).write_text(text, encoding="utf-8")
        for command in COMMANDS:
            words = (f'"{word}"' if " " in word or word.endswith("？") else word for word in command)
            console.print(Text(f"$ rag-kit {' '.join(words)}", style="bold green"))
            console.print(Text.from_ansi(printed(command, folder)))
            console.print()
    picture = console.export_svg(title="rag-kit", unique_id="session")
    picture = re.sub(
        r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL
    )  # these fonts would come from a network
    return re.sub(r'textLength="([\d.]+)"([^>]*)>([^<]*)<', in_cells, picture)


def in_cells(text: re.Match[str]) -> str:
    """A text as wide as its cells: rich counts a Chinese character as one."""
    content = unescape(text[3])
    width = float(text[1]) / len(content) * cell_len(content)
    return f'textLength="{width:.1f}"{text[2]}>{text[3]}<'


def printed(command: list[str], folder: str) -> str:
    """Run ``rag-kit`` and return its output, without seconds and the hint on how to name a model."""
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAG_KIT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "rag_kit.cli", *command],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
    )
    os.close(its_end)
    output = b""
    try:
        while read := os.read(terminal, 65536):
            output += read
    except OSError:  # Linux: the other end is closed
        pass
    os.close(terminal)
    if process.wait():
        raise RuntimeError(output.decode())
    lines = [line.rpartition("\r")[2] for line in output.decode().replace("\r\n", "\n").split("\n")]
    text = re.sub(r" \([\d.]+\s+s\)", "", "\n".join(lines))
    return re.sub(r"\x1b\[2mextractive \(embedded.*", "", text, flags=re.DOTALL).strip()


def fusion() -> str:
    """Two lists and what reciprocal rank fusion makes of them, with the ranks and scores of the run."""
    documents = [Document(text, id=name) for name, text in PASSAGES.items()]
    arms = [
        retriever.from_documents(documents, k=len(documents))
        for retriever in (BM25Retriever, TrigramRetriever)
    ]
    fused = EnsembleRetriever(retrievers=arms, weights=[0.5, 0.5], k=len(documents)).invoke(QUERY)
    parts = [label(20, 30, f"query: {QUERY}", size=15), label(290, 74, "EnsembleRetriever", bold=True)]
    places = {document.id: 90 + 60 * place for place, document in enumerate(fused)}
    for arm, x, end in ((arms[0], 20, 290), (arms[1], 770, 710)):
        parts.append(label(x, 74, type(arm).__name__, bold=True))
        for place, document in enumerate(arm.invoke(QUERY)):
            y = 90 + 60 * place
            parts.append(arrow(210 if x < end else x, y + 22, end, places[document.id] + 22))
            parts += [box(x, y, 190, 44), label(x + 12, y + 27, f"{place + 1}.  {document.id}")]
            parts.append(label(x + 70, y + 27, f"0.5 / (60 + {place + 1})"))
    for document in fused:
        found = get_provenance(document)
        ranks = [int(stage["rank"]) for stage in found["stages"] if not stage["stage"].startswith("fusion")]
        sum_of = " + ".join(f"0.5/{60 + rank}" for rank in ranks)
        y = places[document.id]
        parts += [box(290, y, 420, 44, "#e8eefc"), label(302, y + 18, f"{found['rank']}.  {document.id}")]
        parts.append(label(360, y + 18, f"{sum_of} = {found['score']:.4f}"))
        parts.append(label(360, y + 36, document.page_content, size=12))
    return svg(980, 90 + 60 * len(fused), parts)


class WordCounts(Embeddings):
    """Vectors that count words: enough to tell the subjects of ``NOTES`` apart."""

    words = sorted({word for text in NOTES for word in content_words(text)})

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One number a word."""
        return [[float(content_words(text).count(word)) for word in self.words] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """As a document."""
        return self.embed_documents([text])[0]


def raptor_tree() -> str:
    """The tree that ``build_raptor`` makes of a few passages, in Mermaid's language."""
    with tempfile.TemporaryDirectory() as folder:
        with DocumentIndex.create(folder, embeddings=WordCounts()) as index:
            index.upsert([Document(text, id=f"p{place}") for place, text in enumerate(NOTES)])
            build_raptor(index, chat_model("extractive"), max_tokens=100)
            tree = RaptorTree.read(index)
    names = {key: f"n{place}" for place, key in enumerate([*tree.nodes, *tree.leaves])}
    lines = ["graph TD"]
    for key, node in tree.nodes.items():
        lines.append(
            f'{names[key]}["summary, level {node.metadata["level"]}<br>{wrapped(node.page_content)}"]'
        )
    lines += [f'{names[key]}("{wrapped(leaf.begins)}")' for key, leaf in tree.leaves.items()]
    lines += [f"{names[above]} --> {names[below]}" for above, below in tree.edges]
    lines += [f"style {names[key]} fill:#e8eefc" for key in tree.nodes]
    return "\n".join(lines)


def part_map(language: str) -> str:
    """Which part for which problem."""
    parts = []
    for row, (problem, names) in enumerate(PARTS[language].items()):
        y = 16 + 48 * row
        parts += [box(16, y, 360, 36), label(30, y + 23, problem), arrow(376, y + 18, 420, y + 18)]
        parts += [box(420, y, 524, 36, "#e8eefc"), label(434, y + 23, names, size=13)]
    return svg(960, 16 + 48 * len(PARTS[language]), parts)


def wrapped(text: str) -> str:
    """The beginning of a text as Mermaid's label, in lines."""
    text = shorten(text.replace('"', "'"), 60, placeholder=" ...")
    return "<br>".join(wrap(text, 20))


def svg(width: int, height: int, parts: list[str]) -> str:
    """A picture on white."""
    shape = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    head = f'<marker id="end" {shape}><path d="M0 0L8 4L0 8z" fill="#667"/></marker>'
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">',
        f"<defs>{head}</defs>",
    ]
    return (
        "\n".join([*lines, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"])
        + "\n"
    )


def box(x: int, y: int, width: int, height: int, fill: str = "#f6f6f8") -> str:
    """A rectangle."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="#99a"/>'


def label(x: int, y: int, text: str, *, bold: bool = False, size: int = 14) -> str:
    """A line of text; y is its base line."""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}"{weight} fill="#223" xml:space="preserve">{escape(text)}</text>'


def arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    """A line with a head."""
    return f'<path d="M{x} {y}L{to_x} {to_y}" stroke="#667" fill="none" marker-end="url(#end)"/>'
