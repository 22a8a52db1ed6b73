"""A retrieval data set as examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_kit.evaluation.dataset import CORPUS_ID, GoldAnswer, RetrievalDataset
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.spans import find_spans
from rag_kit.text import detect_language

_LONG = ("reference", "long_answer")


def corpus_of(dataset: RetrievalDataset) -> dict[str, Passage]:
    """Document id -> the document as a passage."""
    return {
        document.id: Passage(
            document.id,
            document.content,
            {
                **document.metadata,
                **({"title": document.title} if document.title else {}),
                CORPUS_ID: document.id,
            },
        )
        for document in dataset.corpus.values()
    }


def examples_of(dataset: RetrievalDataset, corpus: Mapping[str, Passage]) -> Iterator[Example]:
    """The queries as examples; texts of relevant documents are looked up in the corpus."""
    return (_example(dataset, query, corpus) for query in dataset.queries)


def _example(dataset: RetrievalDataset, query: str, corpus: Mapping[str, Passage]) -> Example:
    question = dataset.queries[query]
    grades = dict(dataset.qrels.get(query, {}))
    gold = dataset.qa.get(query)
    best = sorted((doc for doc, grade in grades.items() if grade > 0), key=lambda doc: -grades[doc])
    tags = {"language": detect_language(question)}
    metadata = dict(gold.metadata) if gold else {}
    if isinstance(metadata.get("type"), str):
        tags["type"] = metadata["type"]
    if metadata.get("question") == question:
        del metadata["question"]
    long = next((metadata[name] for name in _LONG if isinstance(metadata.get(name), str)), None)
    return Example(
        query,
        question,
        reference=(long or (gold.answers[0] if gold.answers else None)) if gold else None,
        answers=gold.answers if gold else (),
        reference_contexts=tuple(corpus[doc].text for doc in best if doc in corpus),
        relevant=grades,
        spans=_span(dataset, gold) if gold else (),
        answerable=bool(gold.answers) if gold else None,
        tags=tags,
        metadata=metadata,
    )


def _span(dataset: RetrievalDataset, gold: GoldAnswer) -> tuple[GoldSpan, ...]:
    """The first place of an answer: a set's answers are ways to say the same, and one of its places is enough."""
    for document, places in find_spans(gold, dataset.corpus).items():
        start, end = places[0]
        return (GoldSpan(document, dataset.corpus[document].content[start:end], start),)
    return ()
