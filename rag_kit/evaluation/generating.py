"""``generate``: a model writes questions from one's own documents, code and the model check them.

Nothing believes the model: ids are those of the pieces that it was shown, and a span is where its words stand.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import astuple, dataclass, replace
from itertools import islice, product, takewhile
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from rag_kit.concurrency import Budget, afan_out_map, use_budget
from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.documents.files import AppendLog, read_log
from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelOutputError, ReadError
from rag_kit.evaluation._files import check_target
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.ours.answers import squeeze
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.runs.rows import digest
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.indexing import BM25Index, DocumentIndex, read, split
from rag_kit.indexing.files import as_path, iter_files
from rag_kit.models import astructured_call, chat_model
from rag_kit.models.chat import describe_model
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.retrieval.fields import check_count
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
    rounds, drawn = dict[int, int](), Counter[str]()  # rounds: 0 for the first piece of a document, 1, 2, ...
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
    if not 5 <= len(question) <= 400 or (question.isascii() and " " not in question):  # one word
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
    relevant, spans = dict(example.relevant), []
    answers = example.answers or [answer for part in example.metadata["answer_parts"] for answer in part]
    squeezed_answers = [squeeze(answer) for answer in answers]
    for document in example.relevant:
        quoted = [span for span in example.spans if span.document == document]
        evidence = [squeeze(span.text) for span in quoted]
        evidence += [answer for answer in squeezed_answers if answer in corpus[document]]
        holders = [key for key, text in corpus.items() if all(part in text for part in evidence)]
        relevant |= dict.fromkeys(holders, 1)
        spans += quoted if len(holders) < 2 else [GoldSpan("", span.text) for span in quoted]
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
    words, answer = frozenset(content_words(example.question)), (example.answers, example.metadata)
    for other in accepted:
        other_words = frozenset(content_words(other.question))
        min_overlap = 0.4 if (other.answers, other.metadata) == answer else 0.8  # Jaccard index
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


_FAILURE = [None, "model_failed"]  # no question, and why; it is not kept, so that the next run asks again
_TIMEOUT = 300.0  # seconds for one request; the model's own may be shorter
#: Most passages, or pairs of them, that are shown for a question, and how many more: many give no question.
_GROUPS_PER_QUESTION, _MORE_GROUPS = 4, 16
KINDS = {"single_hop": single_hop, "multi_hop": multi_hop}


class GeneratedSet(EvaluationSet):
    """Result of `generate`: an `EvaluationSet`, and what became of the questions that are not in it.

    ``stopped_by`` is the cap that ended the run before there were enough, ``"no more passages"``, or ``None``.
    """

    #: ``kind``, ``question``, ``reason``, which ``REASONS`` explains.
    refused: Sequence[Mapping[str, str]] = ()
    asked: int = 0  # passages, or pairs of passages, that the model was shown
    stopped_by: str | None = None
    usage: Mapping[str, Any] = {}  # calls and tokens of this run; what was taken from the file took none

    @property
    def dropped(self) -> dict[str, int]:
        """Number of refused questions by reason."""
        return dict(Counter(record["reason"] for record in self.refused))

    def report(self) -> str:
        """Say how many questions were kept, and how many were refused and why."""
        kinds = ", ".join(f"{len(questions)} {kind}" for kind, questions in self.slices("type").items())
        kept = f"{len(self)} questions ({kinds})" if self else "No question was kept"
        # signs at the ends, so that it is read well on one line, too, as an error is
        lines = [f"{kept}; the model was asked about {self.asked} passages or pairs of them."]
        for reason, n in self.dropped.items():
            label = "failed" if reason == "model_failed" else f"refused, {reason}"
            lines.append(f"  {n:>5} {label}: {REASONS[reason]}.")
        if self.stopped_by:
            lines.append(f"Ended early: {self.stopped_by}.")
        return "\n".join(lines)


async def agenerate(
    documents: Any,
    llm: BaseChatModel | str | None = None,
    *,
    n: int = 50,
    kinds: Sequence[str] = tuple(KINDS),
    language: str = "auto",
    out: Path | str | None = None,
    seed: int = 0,
    per_passage: int = 1,
    prompts: Path | None = None,
    max_concurrency: int = 8,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
) -> GeneratedSet:
    """Let a model write an evaluation set from documents: questions, answers, gold passages and gold spans.

    `generate` is the same for scripts and Jupyter.

    A ``single_hop`` question is answered by one passage, a ``multi_hop`` question by two that speak of the same things.
    What asks for nothing, is in another language, points to "the passage", leaks its answer or rests on words that the
    passage does not hold is refused; the model, asked anew, has to give the same answer from the passage. Gold is what
    was shown, and every other document that holds the same words, never what a model wrote. Of each kind, at most four
    passages a question are shown, plus 16.

    Args:
        documents: LangChain documents, texts, a `DocumentIndex` (of which a chunk is a document), or a folder of files
            (a file is a document, its id the name relative to the folder).
        llm: The model, or its name; ``None``: the configured one, else the embedded extractive one (few, simple ones).
        n: Questions wanted, divided evenly among the kinds.
        kinds: ``"single_hop"``, ``"multi_hop"``, or both.
        language: ``"en"`` or ``"zh"``: only passages of that language; ``"auto"``: both, each asked in its own.
        out: JSON Lines file for the set. Beside it grows ``<name>.progress.jsonl`` with every reply: run again, also
            after a kill, only what is missing, changed or failed is asked. A set that was edited is not replaced.
        seed: Of the draw of passages.
        per_passage: Questions asked for at once.
        prompts: Folder with prompts that replace the packaged ones.
        max_concurrency: Most passages asked about at a time.
        max_calls: Most model calls of this run; reached, the set holds what is there, and ``stopped_by`` says so.
        max_tokens: Most tokens, likewise.
        deadline: Seconds for the run, likewise.

    Raises:
        InvalidInputError: If an argument is not allowed, or there is nothing to ask about.
        ModelError: If the model cannot be reached or refuses the key; what was done is in the file.
        ModelOutputError: If no question was kept; the message says what was refused and why.
        BudgetExceededError: If a cap was reached before a single question was looked at.

    Example:
        >>> texts = ["The Mizar pump was built in 1912 by Grace Weber. It moves water from the lake to the mill, and "
        ...          "it is the oldest pump of the town."]
        >>> written = generate(texts, "extractive", n=1, kinds=["single_hop"])
        >>> written[0].question, written[0].answers
        ('What belongs in the gap: "The Mizar pump was built in ____ by Grace Weber."?', ('1912',))
    """
    if isinstance(kinds, str) or not kinds or set(kinds) - set(KINDS):
        raise InvalidInputError(f"kinds is {kinds!r:.120}; give a list of {' and '.join(KINDS)}")
    if language not in ("auto", "en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are auto, en and zh")
    for name, number in (("n", n), ("per_passage", per_passage), ("max_concurrency", max_concurrency)):
        check_count(name, number)
    target = None if out is None else as_path(out, "out")
    writer = await run_in_thread(_Writer, documents, llm, target, language, per_passage, prompts)
    reached: BudgetExceededError | None = None
    caps = use_budget(Budget(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline))
    with writer.log or nullcontext(), caps as budget:
        try:
            for position, kind in enumerate(kinds):
                groups = await run_in_thread(KINDS[kind], writer.pieces, seed)
                count = n // len(kinds) + (1 if position < n % len(kinds) else 0)
                await writer.write(kind, groups, count, max_concurrency)
        except BudgetExceededError as error:
            reached = error
        result = GeneratedSet(target.stem if target else "generated", writer.kept, corpus=writer.corpus)
        result.refused, result.asked = writer.refused, writer.asked
        result.stopped_by = str(reached or "no more passages to ask about") if len(result) < n else None
        result.usage = {"calls": budget.calls, "tokens": budget.tokens}
        if not result and reached and not result.refused:
            raise reached
        if not result:
            lines = [result.report()]
            if first := next((record for record in result.refused if record["question"]), None):
                lines.append(f"The first: {first['question']!r:.400} ({first['reason']})")
            raise ModelOutputError("\n".join(lines))
        if target is not None:
            await run_in_thread(writer.save, result, target)
    return result


generate = blocking(agenerate, "generate")


class _Writer:
    """Asks a model for questions and for checks of them; keeps the good ones, and why others are refused."""

    def __init__(
        self, source: Any, llm: Any, target: Path | None, language: str, per_passage: int, prompts: Any
    ) -> None:
        folder = None if prompts is None else as_path(prompts, "prompts")
        self.model = chat_model(llm) if llm is None or isinstance(llm, str) else llm
        self.prompts = {}
        for task, prompt_language in product((*KINDS, "check"), ("en", "zh")):
            prompt = load_prompt(f"generate_{task}", language=prompt_language, folder=folder)
            self.prompts[task, prompt_language] = prompt
        hashes = [str((prompt.metadata or {}).get("hash")) for prompt in self.prompts.values()]
        self.identity = [describe_model(self.model), hashes, per_passage, language]  # decides the replies
        self.per_passage, self.language, self.asked = per_passage, language, 0
        self.corpus = EvaluationSet("corpus", [], corpus=documents_of(source)).corpus or ()
        self.pieces = pieces_of(self.corpus, language)
        self.squeezed = {passage.id: squeeze(passage.text) for passage in self.corpus}
        self.kept: list[Example] = []
        self.refused: list[dict[str, str]] = []
        self.log: AppendLog | None = None
        self.saved: set[str] = set()  # fingerprints of the sets that were written, by the log
        self.stored: dict[Any, Any] = {}  # key of a group of pieces -> questions, and reasons to refuse them
        if target is not None:
            self._open_log(target)

    def _open_log(self, target: Path) -> None:
        """Open the log beside the set, and take up its replies; refuse a set that is not as `save` left it."""
        check_target(target)
        if target.suffix != ".jsonl":
            raise InvalidInputError(f"out is {str(target)!r}; give a name that ends in .jsonl")
        path = target.with_suffix(".progress.jsonl")
        records = [record for _, record in read_log(path) if record]
        self.saved |= {record["set"] for record in records if "set" in record}
        fingerprint = ""
        with suppress(InvalidInputError):
            fingerprint = EvaluationSet.load(target).fingerprint()
        is_filled = target.exists() and target.stat().st_size > 0
        # a log of an earlier version has replies alone: what it belongs to was written over before
        if is_filled and fingerprint not in self.saved and (self.saved or not records):
            raise InvalidInputError(
                f"{str(target)!r} was edited, or is no set that generate wrote (its log is {path.name!r} beside "
                "it); name another file, or move it away"
            )
        self.log = AppendLog(path)
        for record in records:
            if "items" in record and _FAILURE not in record["items"]:
                self.stored[record["key"]] = record["items"]

    def save(self, questions: GeneratedSet, target: Path) -> None:
        """Write the set, but first to the log its hash, by which it is known whether somebody edited it."""
        if self.log and (fingerprint := questions.fingerprint()) not in self.saved:
            self.log.append([{"set": fingerprint}])
        questions.save(target)

    async def write(self, kind: str, groups: Sequence[Sequence[Piece]], count: int, at_a_time: int) -> None:
        """Keep ``count`` more questions if the groups allow it; ask about as many groups at a time as are missing."""
        goal = len(self.kept) + count
        keyed_groups = ((digest([self.identity, kind, list(map(astuple, group))]), group) for group in groups)
        queue = islice(keyed_groups, _GROUPS_PER_QUESTION * count + _MORE_GROUPS)

        async def ask_group(keyed_group: tuple[str, Sequence[Piece]]) -> None:
            key, group = keyed_group
            if key not in self.stored:
                items = self.stored[key] = await self._ask_for_items(kind, group)
                if self.log and _FAILURE not in items:
                    await run_in_thread(self.log.append, [{"key": key, "items": items}])

        while wave := list(islice(queue, min(at_a_time, goal - len(self.kept)))):
            result = await afan_out_map(ask_group, wave, max_concurrency=at_a_time, on_error="skip")
            # in their order, up to the first one that failed: a resumed run keeps the same questions
            for key, group in takewhile(lambda keyed_group: keyed_group[0] in self.stored, wave):
                self._collect(kind, group, self.stored[key], goal)
            for outcome in result.outcomes:
                if outcome.error is not None:
                    raise outcome.error

    async def _ask_for_items(self, kind: str, group: Sequence[Piece]) -> list[list[Any]]:
        """Have the model write questions about pieces and check them; return each with the reason to refuse it."""
        passages = render_passages([Document(piece.text, metadata=piece.metadata) for piece in group])
        items: list[list[Any]] = []
        try:
            reply = await self._reply(kind, group[0].language, passages=passages, count=str(self.per_passage))
            for item in reply["questions"][: self.per_passage]:
                example = example_of(item, kind, group, self.language)
                if isinstance(example, Example):
                    language = detect_language(example.question)
                    check = await self._reply("check", language, question=example.question, passages=passages)
                    items.append([item, refused_by(check, item["answers"], kind)])
                else:  # the reason to refuse it
                    items.append([item, example])
        except ModelOutputError:
            items.append(_FAILURE)
        return items or [[None, "nothing_to_ask"]]

    async def _reply(self, task: str, language: str, **values: str) -> Any:
        prompt = self.prompts[task, language]
        return (await astructured_call(self.model, prompt, values, timeout=_TIMEOUT)).model_dump()

    def _collect(self, kind: str, group: Sequence[Piece], items: Sequence[Sequence[Any]], goal: int) -> None:
        """Add the good questions about a group up to the goal; for each other, add why it is refused."""
        self.asked += 1
        for item, reason in items:
            result = reason or example_of(item, kind, group, self.language)
            if isinstance(result, Example) and is_duplicate(result, self.kept):
                result = "duplicate"
            if isinstance(result, str):
                question = item["question"] if item else ""
                self.refused.append({"kind": kind, "question": question, "reason": result})
            elif len(self.kept) < goal:
                self.kept.append(with_all_holders(result, self.squeezed))
