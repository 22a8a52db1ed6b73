"""The pieces of documents that a model is shown, and which of its questions about them are kept.

Nothing believes the model: ids are those of the pieces that it was shown, and a span is where its words stand.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.ours.answers import squeeze
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.runs.rows import digest
from rag_kit.indexing import BM25Index, DocumentIndex, read, split
from rag_kit.indexing.files import as_path, iter_files
from rag_kit.text import content_words, detect_language, fold

_log = logging.getLogger(__name__)
_PIECE_CHARS = 1500
_MIN_CHARS = {"en": 120, "zh": 40}  # of a piece to ask about
_QUERY_WORDS = 24  # of a piece, by which others about the same things are searched

_TABLE = Path(__file__).with_name("reasons.txt").read_text(encoding="utf-8")
#: Reason to refuse a question -> its description.
REASONS = dict(line.split(": ", 1) for line in _TABLE.splitlines())
_POINTS_OUTSIDE = re.compile(
    r"(?i)\b(?:the|this|these|those|that|given|provided|above|following|first|second|both|two) "
    r"(?:passages?|texts?|documents?|excerpts?|paragraphs?|snippets?|contexts?|articles?|sections?|author'?s?)\b"
    r"|\b(?:mentioned|described|discussed|listed|stated|shown) (?:above|below|here|in (?:the|this))\b|\bpassage \d"
    r"|^(?:when|where|what|who|how|why|which) (?:was|is|did|does|were|are) (?:he|she|it|they|this|that)\b"
    r"|(?:(?<![日剧基版原样标])本|该|此|这|上|下|前|原|两)(?:段|篇|文|个?段落|篇?文章|份?文档|材料|节|章)|文中|上述|以上|作者|这里|段落"
    r"|^[^，。？]{0,4}?(?:他们|她们|它们|他|她|它|其(?!他|它|余|中)|该|此|这)",
)


@dataclass(frozen=True)
class Piece:
    """A stretch of a document, its offset there, and the metadata that the prompt shows."""

    document: str
    text: str
    start: int
    language: str
    metadata: dict[str, Any]


def documents_of(source: Any) -> list[Document]:
    """Read the documents of a source: Documents, texts, an index, or a folder of files."""
    items: Any = ()
    if isinstance(source, (str, Path)):
        items = _read_files(as_path(source, "documents"))
    elif isinstance(source, DocumentIndex):
        items = source.get(source.passage_ids())
    elif isinstance(source, Iterable):
        items = (Document(item) if isinstance(item, str) else item for item in source)
    documents = list(items)
    if not documents or not all(isinstance(item, Document) for item in documents):
        raise InvalidInputError(
            f"documents is {str(source)!r:.120}, which holds nothing readable; give Documents, texts, an index "
            "(DocumentIndex.open), or a readable folder"
        )
    return documents


def _read_files(folder: Path) -> Iterator[Document]:
    """Yield each file of a folder as one document; log a warning for each that cannot be read."""
    for file in iter_files([folder])[0] if folder.exists() else ():
        try:
            parts = read(file.path, root=file.root)
        except ReadError as error:
            _log.warning("left out: %s", error)
            continue
        metadata = {key: parts[0].metadata.get(key, "") for key in ("file", "title")}
        text = "\n\n".join(part.page_content for part in parts)
        yield Document(text, id=metadata["file"], metadata=metadata)


def pieces_of(corpus: Iterable[Passage], language: str) -> list[Piece]:
    """Cut texts into pieces that are long enough to ask about; keep those in ``language`` (``auto``: all)."""
    pieces = []
    for passage in corpus:
        chunks = [Document(passage.text, metadata={"start": 0})]
        if len(passage.text) > 2 * _PIECE_CHARS:
            chunks = split([Document(passage.text)], chunk_size=_PIECE_CHARS, chunk_overlap=0)
        for chunk in chunks:
            text, start = chunk.page_content, chunk.metadata["start"]
            text_language = detect_language(text)
            values = {**passage.metadata, **chunk.metadata}
            metadata = {key: values[key] for key in ("title", "file", "heading") if values.get(key)}
            is_verbatim = passage.text.startswith(text, start)  # else its quotes would have no place
            is_long = len(text.strip()) >= _MIN_CHARS[text_language]
            if is_verbatim and is_long and language in ("auto", text_language):
                pieces.append(Piece(passage.id, text, start, text_language, metadata))
    if not pieces:
        where = "" if language == "auto" else f" in the language {language!r}"
        raise InvalidInputError(f"no document{where} has 120 characters (Chinese: 40); give longer passages")
    return pieces


def single_hop(pieces: Sequence[Piece], seed: int) -> list[tuple[Piece, ...]]:
    """Return groups of one piece each, in the order in which the model is asked about them."""
    return [(pieces[position],) for position in _draw_order(pieces, seed)]


def multi_hop(pieces: Sequence[Piece], seed: int) -> list[tuple[Piece, ...]]:
    """Pair each piece with one about the same things; from different documents, if there are several."""
    index = BM25Index.from_documents([Document(id=str(n), page_content=p.text) for n, p in enumerate(pieces)])
    has_several_documents = len({piece.document for piece in pieces}) > 1
    pairs: dict[tuple[int, ...], tuple[Piece, ...]] = {}
    for number in _draw_order(pieces, seed):
        piece = pieces[number]
        query = " ".join(list(dict.fromkeys(content_words(piece.text)))[:_QUERY_WORDS])
        for match, _ in index.search(query, k=6):  # best first
            other_number = int(str(match.id))
            pair, other = tuple(sorted((number, other_number))), pieces[other_number]
            is_same = other.document == piece.document if has_several_documents else other_number == number
            if not is_same and other.language == piece.language and pair not in pairs:
                pairs[pair] = tuple(pieces[n] for n in pair)
                break
    return list(pairs.values())


def _draw_order(pieces: Sequence[Piece], seed: int) -> list[int]:
    """Order pieces at random by a hash, with documents taking turns, so that no long one dominates."""
    order = sorted(range(len(pieces)), key=lambda n: digest([seed, pieces[n].document, pieces[n].start]))
    drawn = Counter[str]()  # document -> pieces drawn so far
    rounds: dict[int, int] = {}  # number of a piece -> its round: in each, a document gives one piece
    for number in order:
        rounds[number] = drawn[pieces[number].document]
        drawn[pieces[number].document] += 1
    return sorted(order, key=rounds.__getitem__)  # stable: within a round, the order stays


def example_of(item: Mapping[str, Any], kind: str, pieces: Sequence[Piece], target: str) -> Example | str:
    """Make an example in the ``target`` language (or ``auto``) of what a model wrote, or return why it is refused."""
    question, reference, answers = item["question"].strip(), item["reference"].strip(), item["answers"]
    spans = _find_spans(item["quotes"], pieces)
    language = detect_language("\n".join(span.text for span in spans)) if spans else pieces[0].language
    quoted_pieces = [piece for piece in pieces if piece in spans.values()]
    is_one_word = question.isascii() and " " not in question
    if is_one_word or not 5 <= len(question) <= 400:
        return "not_a_question"
    languages = {detect_language(question), detect_language(reference or question)}
    if languages != {language} or target not in ("auto", language):
        return "wrong_language"
    if points_outside(question):
        return "not_alone"
    if not spans:
        return "quote_not_found"
    if kind == "multi_hop" and len(quoted_pieces) < len(pieces):
        return "one_passage_is_enough"
    texts = fold("\n".join(piece.text for piece in pieces))
    if not answers or not reference or not all(0 < len(a) <= 200 and fold(a) in texts for a in answers):
        return "answer_not_found"
    if any(leaks(answer, question) for answer in answers):
        return "leaks_answer"
    metadata: dict[str, Any] = {"generated": True}
    if len(answers) > 1:
        metadata["answer_parts"] = [[answer] for answer in answers]
    return Example(
        f"q-{digest([question, reference])[:12]}",
        question,
        reference=reference,
        answers=answers if len(answers) == 1 else (),
        reference_contexts=tuple(piece.text for piece in quoted_pieces),
        relevant={piece.document: 1 for piece in quoted_pieces},
        spans=tuple(spans),
        answerable=True,
        tags={"type": kind, "language": language},
        metadata=metadata,
    )


def with_all_holders(example: Example, corpus: Mapping[str, str]) -> Example:
    """Add to an example's gold every document with the same evidence as one of it: the quoted words, and its answers.

    ``corpus`` has the texts by document, as `squeeze` gives them. Spans that several documents hold lose their place.
    """
    relevant = dict(example.relevant)
    spans: list[GoldSpan] = []
    answers = example.answers or [answer for part in example.metadata["answer_parts"] for answer in part]
    squeezed_answers = [squeeze(answer) for answer in answers]
    for document in example.relevant:
        quoted = [span for span in example.spans if span.document == document]
        evidence = [squeeze(span.text) for span in quoted]
        evidence += [answer for answer in squeezed_answers if answer in corpus[document]]
        holders = [key for key, text in corpus.items() if all(part in text for part in evidence)]
        relevant |= dict.fromkeys(holders, 1)
        if len(holders) > 1:
            quoted = [GoldSpan("", span.text) for span in quoted]
        spans += quoted
    return replace(example, relevant=relevant, spans=tuple(spans))


def refused_by(check: Mapping[str, Any], answers: Sequence[str], kind: str) -> str | None:
    """Return why the model's second reading of a question (``check``) refuses it; ``None`` if it passes."""
    if not check["stands_alone"]:
        return "not_alone"
    if not check["answerable"] or not agrees(check["answer"], answers):
        return "not_answerable"
    return "one_passage_is_enough" if kind == "multi_hop" and not check["needs_all"] else None


def is_duplicate(example: Example, accepted: Sequence[Example]) -> bool:
    """Tell whether an accepted question has most of the same words, or many of them and the same answer."""
    words = frozenset(content_words(example.question))
    for other in accepted:
        other_words = frozenset(content_words(other.question))
        has_same_answer = (other.answers, other.metadata) == (example.answers, example.metadata)
        min_overlap = 0.4 if has_same_answer else 0.8  # Jaccard index
        if len(words & other_words) >= min_overlap * len(words | other_words):
            return True
    return False


def points_outside(question: str) -> bool:
    """Tell whether a question, quotations aside, points at "the passage" or at an unnamed "it"."""
    return bool(_POINTS_OUTSIDE.search(re.sub(r"“[^”]*”|\"[^\"]*\"", "", question)))


def leaks(answer: str, question: str) -> bool:
    """Tell whether a question holds the answer, or all its content words."""
    pattern = re.escape(fold(answer).strip())
    if pattern.isascii():  # not inside a longer word
        pattern = rf"(?<![a-z0-9]){pattern}(?![a-z0-9])"
    words, question_words = frozenset(content_words(answer)), frozenset(content_words(question))
    return bool(re.search(pattern, fold(question))) or (len(words) > 1 and words <= question_words)


def agrees(reply: str, answers: Sequence[str]) -> bool:
    """Tell whether a reply has each of ``answers``: literally, or three quarters of its content words."""
    folded, reply_words = fold(reply), frozenset(content_words(reply))
    for answer in answers:
        words = frozenset(content_words(answer))
        if fold(answer) not in folded and len(words & reply_words) < max(1, 0.75 * len(words)):
            return False
    return True


def _find_spans(quotes: Sequence[str], pieces: Sequence[Piece]) -> dict[GoldSpan, Piece]:
    """Map the gold span of each quote to its piece (blanks may differ); empty if one quote is in no piece."""
    spans: dict[GoldSpan, Piece] = {}
    for quote in quotes:
        words = quote.strip(" \t\n\"“”'‘’…").removesuffix("...").split()
        pattern = re.compile(r"\s+".join(map(re.escape, words)) or r"(?!)")  # no words: (?!) never matches
        for piece in pieces:
            if match := pattern.search(piece.text):
                spans[GoldSpan(piece.document, match[0], piece.start + match.start())] = piece
                break
        else:
            return {}
    return spans
