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
from rag_kit.retrieval.asking import LanguagePrompts, read_numbers
from rag_kit.retrieval.base import HasRunnables
from rag_kit.retrieval.call import Call, failures_or_raise
from rag_kit.retrieval.fields import check_model, check_number
from rag_kit.retrieval.vectors import embed
from rag_kit.text.analysis import warm_up
from rag_kit.text.evidence.questions import analyse
from rag_kit.text.evidence.sentences import MAX_SENTENCES, MIN_NEAR, PassageText, collect, passage_text
from rag_kit.text.sentences import MARKER, Sentence, sentences

KEPT_KEY = "kept"
_RULE_SIGNS = frozenset("|-: ")  # the line below a table's header consists of these
_MAX_INTRODUCED = 20  # sentences that belong to a line which ends in a colon
_SHOWN_SENTENCES = 100  # in one call of a model; a longer passage takes several


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
        """Return start and end of each run of neighbouring sentences: of ``[0, 1, 4]`` those of 0 to 1, and of 4."""
        spans: list[tuple[int, int]] = []
        last_position = None
        for position in positions:
            sentence = self.sentences[position]
            if last_position == position - 1:
                spans[-1] = (spans[-1][0], sentence.end)
            else:
                spans.append((sentence.start, sentence.end))
            last_position = position
        return spans

    def context_of(self, selection: Sequence[int]) -> set[int]:
        """Return what selected sentences need: a row of a table its header, a line with a colon what it introduces."""
        selected, context = set(selection), set[int]()
        table_start, header = 0, range(0)
        for position, sentence in enumerate(self.sentences):
            if not sentence.text.startswith("|"):  # no row: a table may begin behind it
                table_start, header = position + 1, range(0)
            elif set(sentence.text) <= _RULE_SIGNS:  # "|---|---|"
                header = range(table_start, position + 1)
            elif position in selected:
                context.update(header)
            if position in selected and sentence.text.rstrip("*_").endswith((":", "：")):
                context.update(self._block_after(position))
        return context

    def _block_after(self, position: int) -> Iterator[int]:
        """Yield positions of the sentences behind one, up to a blank line that no further entry of a list follows."""
        for following in range(position + 1, min(position + 1 + _MAX_INTRODUCED, len(self.sentences))):
            before, sentence = self.sentences[following - 1], self.sentences[following]
            gap = self.document.page_content[before.end : sentence.start]
            is_entry = MARKER.match(sentence.text) and sentence.text[0] not in "#>|`~"  # no heading, quote...
            is_first = following == position + 1  # a blank line may come before it
            if gap.count("\n") > 1 and not is_entry and not is_first:
                return
            yield following


Selection = list[int] | None
"""Positions of the sentences to keep of a passage; empty: it is irrelevant; ``None``: not judged, it stays whole."""


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
        for batch in _batches(_cut_into_pieces(passages, MAX_SENTENCES)):
            texts = [_text_of(piece, passages[piece.passage_number].document) for piece in batch]
            next_positions = [piece.start for piece in batch]  # of each piece: where to look for a sentence
            for scored in collect(question, texts):
                piece_number = scored.passage_index  # `collect` was given pieces as its passages
                passage_number = batch[piece_number].passage_number
                sentences = passages[passage_number].sentences
                position = _position_of(scored.text, sentences, next_positions[piece_number])
                if position is not None:
                    scores[passage_number][position] = scored.worth(self.min_score)
                    next_positions[piece_number] = position + 1
        return _select_best(scores, 0.0, self.share)


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
        cosine_of = dict(zip(distinct, (vectors @ query_vector).tolist(), strict=True))
        scores = [[cosine_of[sentence.text] for sentence in passage.sentences] for passage in passages]
        return _select_best(scores, self.min_score, self.share)


class ModelCompressor(Compressor):
    """Have a model choose the numbers of the sentences that matter, all passages at the same time.

    The model never writes text that is used, so what is kept is the passage's own wording, whatever the model
    (or an instruction hidden in a passage) says. A passage whose call failed stays whole, and the notes say so.

    Args:
        llm: A chat model.
        prompt: A prompt with ``question`` and ``passages``, or one a language; ``None`` for the kit's ``compress``.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the query.
    """

    name = "model"

    def __init__(self, llm: Any, *, prompt: Any = None, language: str = "auto") -> None:
        self.llm = check_model(llm)
        self.prompts = LanguagePrompts("compress", prompt, ("question", "passages"), language)

    async def select(self, query: str, passages: Sequence[CompressedPassage], call: Call) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        pieces = _cut_into_pieces(passages, _SHOWN_SENTENCES)
        values = []
        for piece in pieces:
            texts = [sentence.text for sentence in piece.sentences]
            values.append({"question": query, "passages": render_passages(texts), "count": len(texts)})
        names = [f"sentences of passage {piece.passage_number + 1}" for piece in pieces]
        outcomes = await call.ask(self.llm, self.prompts.choose(query), values, ChosenSentences, names)
        failures_or_raise(outcomes, call)
        stage = f"compress:{self.name}"
        chosen: list[list[int]] = [[] for _ in passages]
        failures: dict[int, str] = {}  # number of a passage -> why it could not be judged
        for piece, outcome in zip(pieces, outcomes, strict=True):
            number = piece.passage_number
            if not outcome.ok:
                failures.setdefault(number, describe_failure(outcome.name, outcome.error))
                continue
            written = field_of(outcome.value, "sentences")
            positions, problems = read_numbers(written, len(piece.sentences))
            if written and not positions:
                failures.setdefault(number, "the model gave no usable number")
            elif problems:
                call.note(f"{stage}: passage {number + 1}: {', '.join(problems)} left out")
            chosen[number] += [piece.start + position for position in positions]
        if failures:
            call.note(
                f"degraded: {stage}: {len(failures)} of {len(passages)} passages could not be judged and "
                f"are whole ({next(iter(failures.values()))})"
            )
        return [None if number in failures else sorted(kept) for number, kept in enumerate(chosen)]


class _Piece(NamedTuple):
    """Some sentences of one passage that follow each other; ``start`` is the position of the first."""

    passage_number: int
    start: int
    sentences: Sequence[Sentence]


def _cut_into_pieces(passages: Sequence[CompressedPassage], size: int) -> list[_Piece]:
    """Cut passages into pieces of at most ``size`` sentences."""
    pieces = []
    for number, passage in enumerate(passages):
        for start in range(0, len(passage.sentences), size):
            pieces.append(_Piece(number, start, passage.sentences[start : start + size]))
    return pieces


def _batches(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Group pieces so that no group has more than ``MAX_SENTENCES``, which are scored together."""
    batch: list[_Piece] = []
    room = MAX_SENTENCES
    for piece in pieces:
        if len(piece.sentences) > room:
            yield batch
            batch, room = [], MAX_SENTENCES
        batch.append(piece)
        room -= len(piece.sentences)
    if batch:
        yield batch


def _position_of(text: str, sentences: Sequence[Sentence], start: int) -> int | None:
    """Return the position of the first sentence with a text, from ``start`` on; ``None`` if there is none."""
    positions = range(start, len(sentences))
    return next((position for position in positions if sentences[position].text.strip() == text), None)


def _text_of(piece: _Piece, document: Document) -> PassageText:
    text = document.page_content[piece.sentences[0].start : piece.sentences[-1].end]
    return passage_text(piece.passage_number + 1, text, document.metadata)


def _select_best(scores: Sequence[Sequence[float]], min_score: float, share: float) -> list[Selection]:
    """Select the sentences that score at least ``min_score``, and ``share`` times the best score in all passages."""
    best = max((score for row in scores for score in row), default=0.0)
    threshold = max(min_score, share * best)
    # A score of 0 is no evidence, whatever the thresholds.
    return [[n for n, score in enumerate(row) if score >= threshold and score > 0] for row in scores]


def shorten_to_spans(doc: Document, spans: Sequence[tuple[int, int]], separator: str) -> Document:
    """Cut a document to some spans; ``metadata["kept"]`` says where they are in the original."""
    positions = [{"start": start, "end": end} for start, end in spans]
    first, *others = (doc.page_content[start:end] for start, end in spans)
    # a row of a table is one only at the beginning of a line
    joined = [("\n" if text.startswith("|") else separator) + text for text in others]
    update = {
        "id": document_key(doc),
        "page_content": first + "".join(joined),
        "metadata": {**doc.metadata, KEPT_KEY: positions, ORIGINAL_ID_KEY: document_key(doc)},
    }
    return doc.model_copy(update=update)
