"""``generate``: attempts in a fixed order until there are enough questions; each one is kept as soon as it is done."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import afan_out_map, budget_scope, check_seconds, run_coroutine, run_in_thread
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.evaluation._files import as_path, check_target
from rag_kit.evaluation._journal import Journal
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets.generating import sources
from rag_kit.evaluation.sets.generating.asking import KINDS, Writer
from rag_kit.evaluation.sets.generating.attempts import Attempt, State
from rag_kit.evaluation.sets.generating.generated import GeneratedSet, nothing_kept

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_MOST = 100_000
_SHOWN = 200
Progress = Callable[[int, int], None]


def generate(
    documents: Any,
    llm: BaseChatModel | str | None = None,
    *,
    n: int = 50,
    kinds: Sequence[str] = KINDS,
    language: str = "auto",
    name: str = "generated",
    out: Path | str | None = None,
    seed: int = 0,
    per_passage: int = 1,
    max_attempts: int | None = None,
    prompts: Path | None = None,
    max_concurrency: int = 8,
    timeout: float | None = 60.0,
    max_retries: int = 2,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> GeneratedSet:
    """Let a model write an evaluation set from a corpus: questions with answers, gold passages and gold spans.

    A ``single_hop`` question is answered by one passage, a ``multi_hop`` question by two that speak of the same
    things. The model is shown passages and writes; code then drops what asks for nothing, is in another language,
    points to "the passage", leaks its answer or rests on words that the passage does not hold, and the model, asked
    anew, has to give the same answer from the passage. Gold ids are those of the passages that were shown, never what
    a model wrote. What was dropped is counted by reason.

    Args:
        documents: LangChain documents, texts, a `DocumentIndex`, or a folder of files. Of a folder, a document is a
            file and its id the file's name relative to the folder; of an index, a document is a chunk.
        llm: The model, or its name; ``None``: the configured one, else the embedded extractive model, whose questions
            are simple and few.
        n: Questions wanted, divided evenly among the kinds.
        kinds: ``"single_hop"``, ``"multi_hop"``, or both.
        language: ``"en"`` or ``"zh"``: only passages of that language; ``"auto"``: both, each asked in its own.
        name: The set's name.
        out: JSON Lines file for the set. Beside it grows ``<name>.progress.jsonl``, with every attempt as soon as it
            is done: run again, also after a kill, only the missing ones are asked; a greater ``n`` goes on from it.
        seed: Of the draw of passages.
        per_passage: Questions asked for at once.
        max_attempts: Most passages or pairs shown for each kind; default: four times the questions wanted of it, plus
            16.
        prompts: Folder with prompts that replace the packaged ones.
        max_concurrency: Most attempts at a time.
        timeout: Seconds for one request to the model.
        max_retries: Retries of one request.
        max_calls: Most model calls of this run; reached, the set holds what is there, and ``stopped_by`` says so.
        max_tokens: Most tokens, likewise.
        deadline: Seconds for the run, likewise.
        progress: Called with how many questions there are, and how many are wanted.

    Raises:
        InvalidInputError: If an argument is not allowed, there is nothing to ask about, or ``out`` is of another job.
        ModelError: If the model cannot be reached or refuses the key; what was done is in the file.
        NothingGeneratedError: If no question was kept; the message says what was dropped and why.
        BudgetExceededError: If a cap was reached before a single question was looked at.

    Example:
        >>> texts = ["The Mizar pump was built in 1912 by Grace Weber. It moves water from the lake to the mill, and "
        ...          "it is the oldest pump of the town."]
        >>> written = generate(texts, "extractive", n=1, kinds=["single_hop"])
        >>> written[0].question, written[0].answers
        ('When was the Mizar pump built?', ('1912',))
    """
    return run_coroutine(
        agenerate(
            documents, llm, n=n, kinds=kinds, language=language, name=name, out=out, seed=seed,
            per_passage=per_passage, max_attempts=max_attempts, prompts=prompts, max_concurrency=max_concurrency,
            timeout=timeout, max_retries=max_retries, max_calls=max_calls, max_tokens=max_tokens, deadline=deadline,
            progress=progress,
        )
    )  # fmt: skip


async def agenerate(
    documents: Any,
    llm: BaseChatModel | str | None = None,
    *,
    n: int = 50,
    kinds: Sequence[str] = KINDS,
    language: str = "auto",
    name: str = "generated",
    out: Path | str | None = None,
    seed: int = 0,
    per_passage: int = 1,
    max_attempts: int | None = None,
    prompts: Path | None = None,
    max_concurrency: int = 8,
    timeout: float | None = 60.0,
    max_retries: int = 2,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> GeneratedSet:
    """As `generate`, for async code; the arguments are the same."""
    _check(n, kinds, language, per_passage, max_attempts, max_concurrency)
    check_seconds("timeout", timeout)
    target = None if out is None else as_path(out, "out")
    prompts = None if prompts is None else as_path(prompts, "prompts")
    if progress is not None and not callable(progress):
        raise InvalidInputError(f"progress is {progress!r:.80}; give a function of two counts, or None")
    wanted = {kind: n // len(kinds) + (place < n % len(kinds)) for place, kind in enumerate(kinds)}

    def prepare() -> tuple[Writer, list[Passage], dict[str, list[Attempt]], Journal | None]:
        """Reads files and splits documents, so it runs on a thread."""
        from rag_kit.models import chat_model, describe_model

        if target is not None:
            check_target(target)
            if target.suffix != ".jsonl":
                raise InvalidInputError(f"out is {str(target)!r}; give a name that ends in .jsonl")
        model = chat_model(llm) if llm is None or isinstance(llm, str) else llm
        writer = Writer(model, prompts, per_passage, timeout, max_retries)
        corpus = sources.corpus_of(documents)
        pieces = sources.pieces_of(corpus, language)
        attempts: dict[str, list[Attempt]] = {}
        for kind in kinds:
            groups = (sources.single_hop if kind == "single_hop" else sources.multi_hop)(pieces, seed)
            most = 4 * wanted[kind] + 16 if max_attempts is None else max_attempts
            attempts[kind] = [
                Attempt(sources.key_of(kind, group, per_passage), kind, group) for group in groups[:most]
            ]
        if not any(attempts.values()):
            raise InvalidInputError(
                f"none of {len(corpus)} documents is long enough to ask about in this language; give passages of at "
                "least 120 characters (Chinese: 40), and for multi_hop two that share words"
            )
        digest = hashlib.sha256(json.dumps(sorted([p.id, p.text] for p in corpus)).encode()).hexdigest()
        job = {
            "job": "generate", "documents": digest, "model": describe_model(model).partition(". ")[0],
            "prompts": writer.hashes(), "per_passage": per_passage,
        }  # fmt: skip
        return writer, corpus, attempts, None if target is None else Journal(progress_file(target), job)

    writer, corpus, attempts, journal = await run_in_thread(prepare)
    kept = {record["key"]: record for record in (journal.records if journal else []) if "key" in record}
    state = State(wanted, kept, language=language)
    capped: BudgetExceededError | None = None
    started = time.perf_counter()
    with journal or nullcontext():
        with budget_scope(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline) as budget:
            try:
                for kind in kinds:
                    await _fill(kind, attempts[kind], writer, state, journal, max_concurrency, progress)
            except BudgetExceededError as error:
                capped, state.stopped_by = error, str(error)
        # what was taken from the file is looked at even where a cap ended the run before it
        for kind in kinds:
            state.take(kind, attempts[kind])
        missing = any(len(state.accepted(kind)) < wanted[kind] for kind in kinds)
        if missing and state.stopped_by is None:
            state.stopped_by = "no more passages to ask about"
        result = GeneratedSet(
            name,
            [example for kind in kinds for example in state.accepted(kind)],
            corpus=corpus,
            dropped=state.dropped,
            examples_dropped=state.shown[:_SHOWN],
            asked=state.asked,
            stopped_by=state.stopped_by,
            usage={
                "calls": budget.calls, "tokens": budget.tokens, "seconds": round(time.perf_counter() - started, 3)
            },
        )  # fmt: skip
        if not len(result):
            raise capped if capped and not state.dropped else nothing_kept(result)
        if target is not None:
            await run_in_thread(result.save, target)
    return result


def progress_file(out: Path) -> Path:
    """Where the attempts for a set are kept."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.progress.jsonl")


async def _fill(
    kind: str, attempts: Sequence[Attempt], writer: Writer, state: State, journal: Journal | None,
    max_concurrency: int, progress: Progress | None,
) -> None:  # fmt: skip
    """Ask in waves, each as large as what is missing, until there is enough."""

    async def run(attempt: Attempt) -> None:
        record = {"key": attempt.key, "kind": kind, **await writer.attempt(kind, attempt.pieces)}
        if journal:
            await run_in_thread(journal.append, record)
        state.records[attempt.key] = record

    state.take(kind, attempts)
    while (missing := state.wanted[kind] - len(state.accepted(kind))) > 0:
        size = max(1, min(max_concurrency, missing))
        wave = [attempt for attempt in attempts if attempt.key not in state.records][:size]
        if not wave:
            return
        try:
            await afan_out_map(run, wave, max_concurrency=max_concurrency)
        except BranchError as error:
            if isinstance(error.__cause__, RagKitError):
                raise error.__cause__ from None
            raise
        state.take(kind, attempts)
        if progress:
            progress(sum(len(state.accepted(each)) for each in state.wanted), sum(state.wanted.values()))


def _check(
    n: int, kinds: Sequence[str], language: str, per_passage: int, max_attempts: int | None, max_concurrency: int
) -> None:  # fmt: skip
    listed = isinstance(kinds, Sequence) and not isinstance(kinds, (str, bytes))
    if not listed or not kinds or any(kind not in KINDS for kind in kinds) or len(set(kinds)) != len(kinds):
        raise InvalidInputError(f"kinds is {kinds!r:.120}; give a list of {' and '.join(KINDS)}, each once")
    if language not in ("auto", "en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are auto, en and zh")
    for label, value, most in (
        ("n", n, _MOST), ("per_passage", per_passage, 16), ("max_attempts", max_attempts, _MOST),
        ("max_concurrency", max_concurrency, 1000),
    ):  # fmt: skip
        optional = label == "max_attempts" and value is None
        if not optional and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
            raise InvalidInputError(f"{label} is {value!r}; give a whole number from 1 to {most}")
