"""Compressors, which choose sentences: by the evidence of words, by embeddings, or by a model that names numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.documents import Document

from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.steps import Logic
from rag_kit.documents.identity import ORIGINAL_ID_KEY, document_key, field_of
from rag_kit.models.clients import check_embeddings
from rag_kit.prompts import render_passages
from rag_kit.prompts.grading import ChosenSentences
from rag_kit.retrieval.answers import read_numbers
from rag_kit.retrieval.base import HasRunnables, check_count, check_number
from rag_kit.retrieval.call import Call, failures_or_raise
from rag_kit.retrieval.fields import check_model
from rag_kit.retrieval.language_prompts import LanguagePrompts
from rag_kit.retrieval.vectors import embed, unit
from rag_kit.text import sentences
from rag_kit.text.analysis import warm_up
from rag_kit.text.evidence.questions import analyse
from rag_kit.text.evidence.sentences import MAX_SENTENCES, MIN_NEAR, PassageText, collect, passage_text
from rag_kit.text.sentences import Sentence

KEPT_KEY = "kept"


@dataclass(frozen=True)
class CompressedPassage:
    """A document, which is not to be changed, and its sentences in order."""

    document: Document
    sentences: Sequence[Sentence]

    @classmethod
    def of(cls, document: Document) -> CompressedPassage:
        """Cut a document into sentences."""
        return cls(document, sentences(document.page_content))

    def spans(self, positions: Sequence[int]) -> list[tuple[int, int]]:
        """Return start and end of each run of neighbouring sentences among those with these positions."""
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


class Compressor(HasRunnables):
    """Base of compressors; implement ``select``.

    Attributes:
        name: Stands in the provenance as ``compress:<name>``.
    """

    name: str = "compressor"

    @abstractmethod
    def select(self, query: str, passages: Sequence[CompressedPassage], call: Call) -> Logic[list[Selection]]:
        """Choose sentences: a coroutine that does all waiting through ``call``, and returns one selection per passage.

        Each passage has at least one sentence. What is raised leaves all passages whole.
        """


class LexicalCompressor(Compressor):
    """Keep the sentences whose words speak for an answer. English and Chinese, deterministic.

    A sentence is scored as the extractive model scores it: by the query's words in it, beside it and in the title, rare
    ones counting more, and by whether it holds what is asked for (a date for "when"). It is kept if its score is near
    the best, enough of the query is in or beside it, and it holds a word of the query or what is asked for itself.

    Args:
        min_score: Lowest share of the query's weight that must stand in the sentence, its neighbours and the title,
            0 to 1. Without this, passages about something else would keep their best sentence.
        share: Lowest share of the best sentence's score, 0 to 1; higher is shorter.
    """

    name = "lexical"

    def __init__(self, *, min_score: float = MIN_NEAR, share: float = 0.5) -> None:
        self.min_score = check_number("min_score", min_score, maximum=1.0)
        self.share = check_number("share", share, maximum=1.0)
        warm_up()
        analyse("warm")

    async def select(self, query: str, passages: Sequence[CompressedPassage], call: Call) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        question = analyse(query)
        scores = [[0.0] * len(passage.sentences) for passage in passages]
        for batch in _batches(passages):
            positions = [piece.start for piece in batch]
            for sentence in collect(question, [piece.text for piece in batch]):
                number = batch[sentence.passage_index].passage
                sentences = passages[number].sentences
                # headings are passed over in the scoring
                for position in range(positions[sentence.passage_index], len(sentences)):
                    if sentences[position].text.strip() == sentence.text:
                        positions[sentence.passage_index] = position + 1
                        scores[number][position] = sentence.worth(self.min_score)
                        break
        return _keep(scores, 0.0, self.share)


class EmbeddingCompressor(Compressor):
    """Keep the sentences whose embedding is near the query's; also finds what uses other words.

    All sentences of all passages are embedded in one batch, at the same time as the query.

    Args:
        embeddings: Any LangChain embedding model.
        min_score: Lowest cosine of a sentence that is kept, 0 to 1; the default suits all-MiniLM-L6-v2.
        share: Lowest share of the best sentence's cosine, 0 to 1.
    """

    name = "embedding"

    def __init__(self, embeddings: Any, *, min_score: float = 0.3, share: float = 0.6) -> None:
        self.embeddings = check_embeddings(embeddings)
        self.min_score = check_number("min_score", min_score, maximum=1.0)
        self.share = check_number("share", share, maximum=1.0)

    async def select(self, query: str, passages: Sequence[CompressedPassage], call: Call) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        texts = [sentence.text for passage in passages for sentence in passage.sentences]
        distinct = list(dict.fromkeys(texts))
        query_vector, vectors = await embed(self.embeddings, query, distinct, call, f"compress:{self.name}")
        cosines = (unit(vectors) @ unit(query_vector)).tolist()
        by_text = dict(zip(distinct, cosines, strict=True))
        scores = [[by_text[sentence.text] for sentence in passage.sentences] for passage in passages]
        return _keep(scores, self.min_score, self.share)


class ModelCompressor(Compressor):
    """Have a model choose the numbers of the sentences that matter, all passages at the same time.

    The model never writes text that is used, so what is kept is the passage's own wording, whatever the model
    (or an instruction hidden in a passage) says. A passage whose call failed stays whole, and the notes say so.

    Args:
        llm: A chat model.
        prompt: A prompt with ``question`` and ``passages``, or one a language; ``None`` for the kit's ``compress``.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the query.
        most_sentences: Sentences shown in one call; a longer passage takes several.
    """

    name = "model"

    def __init__(
        self, llm: Any, *, prompt: Any = None, language: str = "auto", most_sentences: int = 100
    ) -> None:
        self.llm = check_model(llm)
        self.prompts = LanguagePrompts("compress", prompt, ("question", "passages"), language)
        self.most_sentences = check_count("most_sentences", most_sentences)

    async def select(self, query: str, passages: Sequence[CompressedPassage], call: Call) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        batches = [
            (number, start, passage.sentences[start : start + self.most_sentences])
            for number, passage in enumerate(passages)
            for start in range(0, len(passage.sentences), self.most_sentences)
        ]
        values = [
            {
                "question": query,
                "passages": render_passages([sentence.text for sentence in batch]),
                "count": len(batch),
            }
            for _, _, batch in batches
        ]
        names = [f"sentences of passage {number + 1}" for number, _, _ in batches]
        outcomes = await call.ask(self.llm, self.prompts.choose(query), values, ChosenSentences, names)
        failures_or_raise(outcomes, call)
        stage = f"compress:{self.name}"
        chosen: dict[int, list[int]] = {number: [] for number in range(len(passages))}
        failed: dict[int, str] = {}
        for (number, start, batch), outcome in zip(batches, outcomes, strict=True):
            if not outcome.ok:
                failed.setdefault(number, describe_failure(outcome.name, outcome.error))
                continue
            raw_numbers = field_of(outcome.value, "sentences")
            parsed = read_numbers(raw_numbers, len(batch))
            if raw_numbers and not parsed.positions:
                failed.setdefault(number, "the model gave no usable number")
            elif parsed.problems:
                call.note(f"{stage}: passage {number + 1}: {', '.join(parsed.problems)} left out")
            chosen[number] += [start + position for position in parsed.positions]
        if failed:
            call.note(
                f"degraded: {stage}: {len(failed)} of {len(passages)} passages could not be judged and "
                f"are whole ({next(iter(failed.values()))})"
            )
        return [None if number in failed else sorted(positions) for number, positions in chosen.items()]


class _Piece(NamedTuple):
    """A run of sentences of one passage: numbers of the passage and of its first sentence, and the text."""

    passage: int
    start: int
    text: PassageText


def _batches(passages: Sequence[CompressedPassage]) -> Iterator[list[_Piece]]:
    """Group passages so that a group has as many sentences as are judged together; cut longer passages."""
    lot: list[_Piece] = []
    room = MAX_SENTENCES
    for number, passage in enumerate(passages):
        for start in range(0, len(passage.sentences), MAX_SENTENCES):
            part = passage.sentences[start : start + MAX_SENTENCES]
            if len(part) > room:
                yield lot
                lot, room = [], MAX_SENTENCES
            text = passage.document.page_content[part[0].start : part[-1].end]
            lot.append(_Piece(number, start, passage_text(number + 1, text, passage.document.metadata)))
            room -= len(part)
    if lot:
        yield lot


def _keep(scores: Sequence[Sequence[float]], min_score: float, share: float) -> list[Selection]:
    """Select the sentences of each passage whose score is high enough, and near enough to the best of all."""
    best = max((score for row in scores for score in row), default=0.0)
    low = max(min_score, share * best)
    # A score of 0 is no evidence, whatever the thresholds.
    return [[position for position, score in enumerate(row) if score >= low and score > 0] for row in scores]


def shortened(doc: Document, spans: Sequence[tuple[int, int]], separator: str) -> Document:
    """Cut a document to some spans; ``metadata["kept"]`` says where they are in the original."""
    positions = [{"start": start, "end": end} for start, end in spans]
    update = {
        "id": document_key(doc),
        "page_content": separator.join(doc.page_content[start:end] for start, end in spans),
        "metadata": {**doc.metadata, KEPT_KEY: positions, ORIGINAL_ID_KEY: document_key(doc)},
    }
    return doc.model_copy(update=update)
