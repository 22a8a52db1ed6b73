"""The default hybrid beside its parts and other weights of its dense side, or below a reranker.

    python benchmarks/quality/quality_hybrid.py DATA WORK [--sets scifact ...] [--models minilm e5] [--limit 150]
        [--documents 1000] [--rerank cross-encoder] [--depth 20]

WORK keeps vectors, so that a run that was stopped goes on. Corpora are cut to the relevant documents of the questions
and others up to ``--documents``; long documents are read in chunks of 1,000 characters, of which the best counts.
Prints nDCG@10 as a Markdown table, a row a pair of set and model. "chosen elsewhere" has the weight that is best in the
mean of the other sets (docs/decisions/0011). With ``--rerank`` the columns are the hybrid, blends of both scores over
the first passages by the reranker's share, and the reranker alone; of late interaction also the blend by the vectors
that an index has stored (leg "tokens").
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from shared import arguments, ndcg, sample

from rag_kit.documents.provenance import peek_score
from rag_kit.evaluation.ranking.pipelines import Parts
from rag_kit.indexing import DocumentIndex
from rag_kit.models.late_interaction import LateInteraction, max_sim
from rag_kit.models.wheels.models import WheelEmbeddings, wheel_reranker
from rag_kit.retrieval.convex import standardise
from rag_kit.retrieval.hybrid import HybridRetriever

SETS = ("scifact", "timeqa_slice", "xquad_en", "covidqa", "limit_small", "xquad_zh", "cmrc2018_dev")
WEIGHTS = {f"{weight:g}": weight for weight in (0.4, 0.45, 0.5, 0.55, 0.6)}  # of the dense side
SHARES = {"blend .3": 0.3, "blend .5": 0.5, "blend .7": 0.7, "alone": 1.0}  # of the reranker's score
DEPTH = 100
Rankings = dict[str, list[Document]]
Row = dict[str, float]
Pair = tuple[str, str]  # set and model


def weighted(parts: Parts) -> Callable[[str], Rankings]:
    """Rankings by each part, and by hybrids with each weight."""
    options: dict[str, Any] = {"k": DEPTH, "fetch_k": DEPTH, "on_error": "raise"}
    ways: dict[str, Any] = {"keyword": parts.bm25, "dense": parts.dense}
    for name, weight in WEIGHTS.items():
        ways[name] = HybridRetriever(
            retrievers=[parts.bm25, parts.dense], weights=[1 - weight, weight], **options
        )
    return lambda question: {name: retriever.invoke(question) for name, retriever in ways.items()}


def reranked(
    parts: Parts, reranker: Any, depth: int, index: DocumentIndex | None
) -> Callable[[str], Rankings]:
    """Rankings by the default hybrid, and by its blends with a reranker; also by the vectors stored in an index."""
    retriever: Any = parts.build("hybrid").retriever

    def rank(question: str) -> Rankings:
        found = retriever.invoke(question)
        second = reranker.score([(question, document.page_content) for document in found[:depth]])
        rankings = {"hybrid": found} | {name: blended(found, second, share) for name, share in SHARES.items()}
        if index is not None:
            texts = [document.page_content for document in found[:depth]]
            vectors, query = index.token_vectors(texts, reranker.name) or {}, reranker.query_tokens(question)
            stored = [max_sim(query, vectors[text]) for text in texts]
            rankings["blend .5, stored"] = blended(found, stored, 0.5)
        return rankings

    return rank


def blended(found: list[Document], scores: list[float], share: float) -> list[Document]:
    """By the blend of both scores; the documents that were not scored follow."""
    size = len(scores)
    first = standardise([peek_score(document) for document in found[:size]]).values
    second = standardise(scores).values
    value = [(1 - share) * one + share * other for one, other in zip(first, second, strict=True)]
    order = sorted(range(size), key=lambda place: -value[place])
    return [found[place] for place in order] + found[size:]


def measure(folder: Path, model: str, reranker: Any, options: Any) -> Row:
    """The mean nDCG@10 of each way over a set with an embedding model."""
    asked, passages = sample(folder, options.limit, options.documents)
    embeddings: Any = WheelEmbeddings(model, threads=1)
    parts = Parts(passages, depth=DEPTH, embeddings=embeddings, cache=options.work / "vectors")
    gains: dict[str, list[float]] = {}
    with ExitStack() as stack:
        index = None
        if isinstance(reranker, LateInteraction):
            work = stack.enter_context(tempfile.TemporaryDirectory())
            tokens: Any = {"legs": ["tokens"], "token_model": reranker}
            index = stack.enter_context(DocumentIndex.create(work, **tokens))
            index.upsert(passages)
            index.flush()
        rank = weighted(parts) if reranker is None else reranked(parts, reranker, options.depth, index)
        for example in asked:
            for name, found in rank(example.question).items():
                ids = [document.metadata["document"] for document in found]
                gains.setdefault(name, []).append(ndcg(ids, example.relevant))
    return {name: statistics.mean(values) for name, values in gains.items()}


def chosen(found: dict[Pair, Row]) -> dict[Pair, str]:
    """For each pair its score with the weight that is best over the other sets."""
    cells = {}
    for (name, model), row in found.items():
        others = [other for (one, _), other in found.items() if one != name] or [row]
        best = max(WEIGHTS, key=lambda weight: statistics.mean(other[weight] for other in others))
        cells[name, model] = f"{row[best]:.4f} ({best})"
    return cells


def table(found: dict[Pair, Row], last: dict[Pair, str]) -> str:
    """A Markdown table, with a last column where there is one."""
    names = list(next(iter(found.values())))
    rows = [["set", "model", *names], ["---"] * (len(names) + 2)]
    rows += [[*pair, *(f"{row[name]:.4f}" for name in names)] for pair, row in found.items()]
    rows.append(
        ["mean", "", *(f"{statistics.mean(row[name] for row in found.values()):.4f}" for name in names)]
    )
    if last:
        for row, cell in zip(rows, ["chosen elsewhere", "---", *last.values(), ""], strict=True):
            row.append(cell)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Read the arguments, measure, print."""
    parser = arguments(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="*", default=["minilm", "e5"])
    parser.add_argument("--limit", type=int, default=150, help="questions a set")
    parser.add_argument("--documents", type=int, default=1000, help="documents a set")
    parser.add_argument("--rerank", metavar="NAME", help="a reranker of the kit's wheels")
    parser.add_argument("--depth", type=int, default=20, help="passages that are reranked")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    reranker = wheel_reranker(options.rerank, threads=1) if options.rerank else None
    found: dict[Pair, Row] = {}
    for model in options.models:
        for name in options.sets:
            found[name, model] = measure(options.data / name, model, reranker, options)
            print(name, model, found[name, model], file=sys.stderr, flush=True)
    print(table(found, chosen(found) if reranker is None else {}))


if __name__ == "__main__":
    main()
