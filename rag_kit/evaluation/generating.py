"""``generate``: a model writes questions from one's own documents, code and the model check them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import astuple
from itertools import islice, product
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from rag_kit.concurrency import Budget, afan_out_map, use_budget
from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.documents.files import AppendLog, read_log
from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelOutputError
from rag_kit.evaluation import generating_pieces as pieces
from rag_kit.evaluation._files import check_target
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.generating_pieces import Piece
from rag_kit.evaluation.ours.answers import squeeze
from rag_kit.evaluation.runs.rows import digest
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.indexing.files import as_path
from rag_kit.models import astructured_call, chat_model
from rag_kit.models.chat import describe_model
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.retrieval.fields import check_count
from rag_kit.text import detect_language

_FAILURE = [None, "model_failed"]  # no question, and why; it is not kept, so that the next run asks again
_TIMEOUT = 300.0  # seconds for one request; the model's own may be shorter
#: Most passages, or pairs of them, that are shown for a question, and how many more: many give no question.
_GROUPS_PER_QUESTION, _MORE_GROUPS = 4, 16
NO_MORE_PASSAGES = "no more passages to ask about"
KINDS = {"single_hop": pieces.single_hop, "multi_hop": pieces.multi_hop}


class GeneratedSet(EvaluationSet):
    """Result of `generate`: an `EvaluationSet`, and what became of the questions that are not in it.

    ``stopped_by`` is the cap that ended the run before there were enough, `NO_MORE_PASSAGES`, or ``None``.
    """

    refused: Sequence[Mapping[str, str]] = ()  # "kind", "question", "reason", which `REASONS` explains
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
            lines.append(f"  {n:>5} {label}: {pieces.REASONS[reason]}.")
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

    A ``single_hop`` question is answered by one passage, a ``multi_hop`` question by two that speak of the same things.
    What asks for nothing, is in another language, points to "the passage", leaks its answer or rests on words that the
    passage does not hold is refused; the model, asked anew, has to give the same answer from the passage. Gold is what
    was shown, and every other document that holds the same words, never what a model wrote. Of each kind, at most four
    passages a question are shown, plus 16. `generate` is the same for scripts and Jupyter.

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
        result.stopped_by = str(reached or NO_MORE_PASSAGES) if len(result) < n else None
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
        self.corpus = EvaluationSet("corpus", [], corpus=pieces.documents_of(source)).corpus or ()
        self.pieces = pieces.pieces_of(self.corpus, language)
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
        if is_filled and fingerprint not in self.saved:
            raise InvalidInputError(
                f"{str(target)!r} was edited, or is no set that generate wrote (its log is {path.name!r} beside "
                "it); name another file, or move it away"
            )
        self.log = AppendLog(path)
        for record in records:
            if "items" in record:
                self.stored[record["key"]] = record["items"]

    def save(self, questions: GeneratedSet, target: Path) -> None:
        """Write the set, but first to the log its hash, by which it is known whether somebody edited it."""
        if self.log and (fingerprint := questions.fingerprint()) not in self.saved:
            self.log.append([{"set": fingerprint}])
        questions.save(target)

    async def write(self, kind: str, groups: Sequence[Sequence[Piece]], count: int, at_a_time: int) -> None:
        """Keep ``count`` more questions if the groups allow it; ask about as many groups at a time as are missing."""
        goal = len(self.kept) + count
        shown = islice(groups, _GROUPS_PER_QUESTION * count + _MORE_GROUPS)
        queue = ((digest([self.identity, kind, list(map(astuple, group))]), group) for group in shown)

        async def ask_group(keyed_group: tuple[str, Sequence[Piece]]) -> None:
            key, group = keyed_group
            if key not in self.stored:
                items = self.stored[key] = await self._ask_for_items(kind, group)
                if self.log and _FAILURE not in items:
                    await run_in_thread(self.log.append, [{"key": key, "items": items}])

        while wave := list(islice(queue, min(at_a_time, goal - len(self.kept)))):
            result = await afan_out_map(ask_group, wave, max_concurrency=at_a_time, on_error="skip")
            for key, group in wave:
                if key not in self.stored:  # it failed: the rest waits, as in a resumed run
                    break
                self._collect(kind, group, self.stored[key], goal)
            for outcome in result.outcomes:
                if outcome.error is not None:
                    raise outcome.error

    async def _ask_for_items(self, kind: str, group: Sequence[Piece]) -> list[list[Any]]:
        """Have the model write questions about pieces and check them; return [question, why it is refused or None]."""
        passages = render_passages([Document(piece.text, metadata=piece.metadata) for piece in group])
        items: list[list[Any]] = []
        try:
            reply = await self._reply(kind, group[0].language, passages=passages, count=str(self.per_passage))
            for item in reply["questions"][: self.per_passage]:
                result = pieces.example_of(item, kind, group, self.language)
                if isinstance(result, str):  # the reason to refuse it
                    items.append([item, result])
                    continue
                language = detect_language(result.question)
                check = await self._reply("check", language, question=result.question, passages=passages)
                items.append([item, pieces.refused_by(check, item["answers"], kind)])
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
            result = reason or pieces.example_of(item, kind, group, self.language)
            if isinstance(result, Example) and pieces.is_duplicate(result, self.kept):
                result = "duplicate"
            if isinstance(result, str):
                question = item["question"] if item else ""
                self.refused.append({"kind": kind, "question": question, "reason": result})
            elif len(self.kept) < goal:
                self.kept.append(pieces.with_all_holders(result, self.squeezed))
