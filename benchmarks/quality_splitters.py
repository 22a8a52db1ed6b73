"""Splitters side by side: is the gold answer in the first 3,000 characters that come back?

python benchmarks/quality_splitters.py                         all that fit prose; writes results/splitters.json
python benchmarks/quality_splitters.py --splitters semantic    one of them; the other rows stay
python benchmarks/quality_splitters.py --sets covidqa --first 50   on a part, which gets rows of its own

Keyword search over chunks of at most 500 characters without overlap (``tokens``: 90 English words or 450 Chinese
characters). covidqa: long articles. timeqa_slice: paragraphs put together to the pages they are from. cmrc2018_dev:
Chinese paragraphs. ``semantic`` with the embedded English model, so not on Chinese; it embeds every sentence, so it is
measured on a part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from quality_parents import Arm, Known, data_parser, measure, pages

from rag_kit.evaluation import EvaluationSet, load_dataset
from rag_kit.evaluation.ranking.metrics import qrels
from rag_kit.indexing import DocumentIndex, split
from rag_kit.retrieval import index_retriever

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "splitters.json"
SETS = ("covidqa", "timeqa_slice", "cmrc2018_dev")
CHINESE = ("cmrc2018_dev",)
SPLITTERS = ("structure", "sentence", "paragraph", "recursive", "tokens", "semantic")
SIZE = 500
TOKENS = {False: 90, True: 450}


class InOneCall(Known):
    """The cached model, for texts that come document by document."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [list(row) for row in self.vectors(texts)]


def make(
    chunks: Sequence[Document], index: DocumentIndex, documents: Sequence[Document], pipeline: str, k: int
) -> Any:
    """A retriever over chunks."""
    if not index.ids():
        index.upsert(chunks)
    return index_retriever(index, pipeline, k=k)


def place(row: dict[str, Any]) -> tuple[int, str, int]:
    """Where a row stands in the table."""
    return SETS.index(row["set"].partition(",")[0]), row["set"], SPLITTERS.index(row["splitter"])


def part_of(data: EvaluationSet, count: int) -> EvaluationSet:
    """The first documents, and the questions that they answer."""
    corpus = (data.corpus or ())[:count]
    ids = {passage.id for passage in corpus}
    answered = [data[query] for query, grades in qrels(data).items() if grades.keys() <= ids]
    return EvaluationSet(f"{data.name}, first {count} documents", answered, corpus=corpus)


def main() -> int:
    """Read the arguments, measure, write the result file."""
    parser = data_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--splitters", nargs="+", default=list(SPLITTERS))
    parser.add_argument("--first", type=int, help="so many documents of each set")
    arguments = parser.parse_args()
    rows = json.loads(RESULT.read_text(encoding="utf-8"))["rows"] if RESULT.is_file() else []
    for name in arguments.sets:
        data = load_dataset(Path(arguments.data) / name)
        data = pages(data) if name == "timeqa_slice" else data
        data = part_of(data, arguments.first) if arguments.first else data
        documents = data.documents()
        for splitter in arguments.splitters:
            if splitter == "semantic" and name in CHINESE:
                continue
            size = TOKENS[name in CHINESE] if splitter == "tokens" else SIZE
            model = InOneCall(arguments.cache) if splitter == "semantic" else None
            chunks = split(documents, chunk_size=size, chunk_overlap=0, splitter=splitter, embeddings=model)
            arm = Arm("splitter", splitter, partial(make, chunks), SIZE)
            row = {"set": data.name, "splitter": splitter, "chunks": len(chunks)}
            row |= measure(arm, data, documents, "bm25", None)
            for unneeded in ("hits", "kind", "arm", "p50_ms"):
                del row[unneeded]
            rows = [one for one in rows if (one["set"], one["splitter"]) != (data.name, splitter)] + [row]
            rows.sort(key=place)
            content = {"metric": "gold_span_recall@3000", "rows": rows}
            RESULT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            print(data.name, splitter, len(chunks), row["k"], f"{row['recall']['value']:.3f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
