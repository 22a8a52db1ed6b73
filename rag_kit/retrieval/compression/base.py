"""What a compressor is: passages cut into sentences in, the sentences to keep out; and the shorter document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from rag_kit.concurrency.steps import Logic
from rag_kit.documents import content_hash
from rag_kit.retrieval.document_compressor import ORIGINAL_ID_KEY
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.text import sentences
from rag_kit.text.sentences import Sentence

KEPT_KEY = "kept"


@dataclass(frozen=True)
class Passage:
    """A document, which is not to be changed, and its sentences in order."""

    document: Document
    sentences: Sequence[Sentence]

    @classmethod
    def of(cls, document: Document) -> Passage:
        """Cut a document into sentences."""
        return cls(document, sentences(document.page_content))

    def spans(self, positions: Sequence[int]) -> list[tuple[int, int]]:
        """Start and end of each run of sentences that follow one another."""
        spans: list[tuple[int, int]] = []
        for number, position in enumerate(positions):
            sentence = self.sentences[position]
            if number and position == positions[number - 1] + 1:
                spans[-1] = (spans[-1][0], sentence.end)
            else:
                spans.append((sentence.start, sentence.end))
        return spans


Selection = list[int] | None
"""Places of the sentences to keep of a passage: none if it is irrelevant; ``None``: not judged, so it stays whole."""


class Compressor(ABC):
    """Base of compressors; implement ``select``.

    Attributes:
        name: Stands in the provenance as ``compress:<name>``.
    """

    name: str = "compressor"

    @abstractmethod
    def select(self, query: str, passages: Sequence[Passage], call: QueryCall) -> Logic[list[Selection]]:
        """Choose sentences: a coroutine that does all waiting through ``call``, and returns one selection per passage.

        Each passage has at least one sentence. What is raised leaves all passages whole.
        """


def identity(doc: Document) -> str:
    """The id of a document and of its shorter form: its own, else the hash of the whole text."""
    return doc.id or content_hash(doc.page_content)


def shortened(doc: Document, spans: Sequence[tuple[int, int]], separator: str) -> Document:
    """The document with the spans alone; ``metadata["kept"]`` says where they stand in the original."""
    positions = [{"start": start, "end": end} for start, end in spans]
    update = {
        "id": identity(doc),
        "page_content": separator.join(doc.page_content[start:end] for start, end in spans),
        "metadata": {**doc.metadata, KEPT_KEY: positions, ORIGINAL_ID_KEY: identity(doc)},
    }
    return doc.model_copy(update=update)
