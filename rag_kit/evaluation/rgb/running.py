"""``abilities``: ask every question with its passages, apply the rules, go on where an earlier run stopped."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit._redact import told
from rag_kit.concurrency import afan_out_map, budget_scope, check_seconds, run_coroutine, run_in_thread
from rag_kit.errors import BudgetExceededError, InvalidInputError, MissingExtraError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation._journal import Journal
from rag_kit.evaluation.rgb.checking import check_texts, checked_rates, rgb_folder
from rag_kit.evaluation.rgb.report import NAMES, AbilityReport, scores_of
from rag_kit.evaluation.rgb.rgb_files import load_rgb
from rag_kit.evaluation.rgb.rules import DECLINES, SEED, Item, judge, passages_of
from rag_kit.evaluation.sets import EvaluationSet

if TYPE_CHECKING:
    from rag_kit.evaluation.rgb.answering import Answerer

NOISE_RATES = (0.0, 0.2, 0.4, 0.6, 0.8)
_KINDS = dict(zip(NAMES, ("plain", "plain", "integration", "counterfactual"), strict=True))
Progress = Callable[[int, int], None]


def abilities(
    pipeline: Any,
    source: EvaluationSet | Path | str,
    *,
    abilities: Sequence[str] = NAMES,
    noise_rates: Sequence[float] = NOISE_RATES,
    passages: int = 5,
    languages: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = SEED,
    declines: Sequence[str] | None = None,
    prompts: Path | None = None,
    out: Path | str | None = None,
    max_concurrency: int = 8,
    timeout: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> AbilityReport:
    """Measure what RGB measures (Chen et al., 2023, https://arxiv.org/abs/2309.01431), by its own rules.

    - ``noise_robustness``: share of right answers while a share of the passages is noise, for each noise rate
    - ``negative_rejection``: share of declines where all of them are noise
    - ``information_integration``: share of right answers where all parts are needed, for each noise rate
    - ``counterfactual_robustness``: where the passages state a wrong answer: share of right answers, of replies that
      tell of factual errors, and of right answers among these

    Answers are found by searching for strings; no judge is asked. What failed is counted and is no score.

    Args:
        pipeline: A chat model (asked with the prompt ``answer_or_doubt``); a function of ``(question, passages)``,
            passages being LangChain documents, async or not; or a graph, chain or function of a question whose
            retriever is a `GivenPassages`.
        source: A folder of RGB's files (``en.json``, ``en_int.json``, ``en_fact.json``; ``zh`` alike), or an
            `EvaluationSet` with a corpus, short answers and relevant ids: then questions are made of it.
        abilities: Which of the four.
        noise_rates: Shares of noise, each at least 0 and less than 1.
        passages: Passages a question is asked with.
        languages: ``("en", "zh")`` or one of them; ``None``: what the source has.
        limit: Only the first so many questions of each language and ability.
        seed: Of the order of passages; RGB's is 2333.
        declines: Words that decline beside RGB's ("insufficient information", 信息不足). ``None``: the kit's own
            decline sentences for graphs and functions, nothing for chat models.
        prompts: Folder with prompts that replace the packaged ones.
        out: JSON Lines file that every reply is appended to; run again, only what is missing is asked.
        max_concurrency: Most questions at a time.
        timeout: Seconds for one question.
        max_calls: Most model calls; reached, the run ends and the report says so.
        max_tokens: Most tokens, likewise.
        deadline: Seconds for the whole run, likewise.
        progress: Called with how many questions are done, and of how many.

    Raises:
        InvalidInputError: If an argument is not allowed, the source holds nothing for these abilities, or a graph
            never asked for the passages.

    Example:
        >>> from rag_kit.evaluation import Example, Passage
        >>> tides = EvaluationSet(
        ...     "tides",
        ...     [Example("q1", "What pulls the sea?", answers=("moon",), relevant={"0": 1})],
        ...     corpus=[Passage("0", "The moon pulls the sea."), Passage("1", "The sea is salty.")])
        >>> def first(question, passages):
        ...     return passages[0].page_content if "pulls" in passages[0].page_content else "insufficient information"
        >>> report = abilities(first, tides, abilities=["noise_robustness", "negative_rejection"], noise_rates=[0.0],
        ...                    passages=1)
        >>> [(score.metric, score.value) for score in report.scores]
        [('accuracy', 1.0), ('rejection', 1.0)]
    """
    return run_coroutine(
        aabilities(
            pipeline, source, abilities=abilities, noise_rates=noise_rates, passages=passages, languages=languages,
            limit=limit, seed=seed, declines=declines, prompts=prompts, out=out, max_concurrency=max_concurrency,
            timeout=timeout, max_calls=max_calls, max_tokens=max_tokens, deadline=deadline, progress=progress,
        )
    )  # fmt: skip


async def aabilities(
    pipeline: Any,
    source: EvaluationSet | Path | str,
    *,
    abilities: Sequence[str] = NAMES,
    noise_rates: Sequence[float] = NOISE_RATES,
    passages: int = 5,
    languages: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = SEED,
    declines: Sequence[str] | None = None,
    prompts: Path | None = None,
    out: Path | str | None = None,
    max_concurrency: int = 8,
    timeout: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> AbilityReport:
    """As `abilities`, for async code; the arguments are the same."""
    check_seconds("timeout", timeout)
    rates = checked_rates(abilities, noise_rates, passages, limit)
    check_texts(languages=languages, declines=declines)
    target = None if out is None else as_path(out, "out")
    prompts = None if prompts is None else as_path(prompts, "prompts")

    def prepare() -> tuple[Answerer, list[_Task], dict[str, Any], dict[str, dict[str, int]], Journal | None]:
        """Reads files and builds an index, so it runs on a thread."""
        from rag_kit.evaluation.rgb.answering import Answerer

        answerer = Answerer(pipeline, prompts)
        more = answerer.declines if declines is None else tuple(declines)
        if isinstance(source, EvaluationSet):
            items, skipped = items_of_set(source, passages, seed)
            origin: dict[str, Any] = {"set": source.name, "fingerprint": source.fingerprint()}
        else:
            items, used = load_rgb(rgb_folder(source))
            origin, skipped = {"files": used}, {}
        chosen = [item for item in items if languages is None or item.language in languages]
        settings = {
            **origin, "passages": passages, "seed": seed, "declines": [*DECLINES, *more], **answerer.identity,
        }  # fmt: skip
        tasks = _tasks(chosen, abilities, rates, passages, seed, limit)
        journal = None if target is None else Journal(target, {"job": "abilities", **settings})
        return answerer, tasks, {**settings, "noise_rates": list(rates), "limit": limit}, skipped, journal

    answerer, tasks, settings, skipped, journal = await run_in_thread(prepare)
    more = tuple(settings["declines"][len(DECLINES) :])
    known = {record["key"]: record for record in journal.records if "key" in record} if journal else {}
    cases = {key: record for key, record in known.items() if record.get("error") is None}
    done = sum(task.key in cases for task in tasks)
    read = 0

    async def run(task: _Task) -> None:
        nonlocal done, read
        record, was_read = await _ask(answerer, task, timeout, more)
        read += was_read
        cases[task.key] = record
        if journal:
            await run_in_thread(journal.append, record)
        done += 1
        if progress:
            progress(done, len(tasks))

    stopped_by = None
    todo = [task for task in tasks if task.key not in cases]
    with journal or nullcontext():
        try:
            with budget_scope(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline):
                await afan_out_map(run, todo, max_concurrency=max_concurrency)
        except BudgetExceededError as error:
            stopped_by = str(error)
    if (
        answerer.needs_reading
        and not read
        and any(cases[task.key]["error"] is None for task in todo if task.key in cases)
    ):
        raise InvalidInputError(
            "the pipeline never asked for the passages: it retrieves for itself. Build it with GivenPassages() as its "
            "retriever, or give a function of (question, passages)"
        )
    told = [cases[task.key] for task in tasks if task.key in cases]
    return AbilityReport(answerer.name, scores_of(told), tuple(told), settings, skipped, stopped_by)


class _Task:
    """A question with its passages."""

    def __init__(self, ability: str, item: Item, rate: float | None, texts: list[str]) -> None:
        self.ability, self.item, self.rate, self.texts = ability, item, rate, texts
        content = json.dumps([ability, item.id, item.language, rate, item.question, item.parts, texts])
        self.key = hashlib.sha256(content.encode()).hexdigest()[:24]


async def _ask(
    answerer: Answerer, task: _Task, timeout: float | None, declines: Sequence[str]
) -> tuple[dict[str, Any], bool]:
    from langchain_core.documents import Document

    item = task.item
    documents = [
        Document(id=f"{item.id}-{n}", page_content=text) for n, text in enumerate(task.texts, start=1)
    ]
    record: dict[str, Any] = {
        "key": task.key, "ability": task.ability, "id": item.id, "language": item.language, "noise_rate": task.rate,
        "question": item.question, "error": None,
    }  # fmt: skip
    started = time.perf_counter()
    read = False
    try:
        async with asyncio.timeout(timeout):
            reply, read = await answerer.ask(item, documents)
    except (BudgetExceededError, MissingExtraError):
        raise
    except TimeoutError:
        record["error"] = f"no reply within {timeout:g} s" if timeout else "TimeoutError"
    except asyncio.CancelledError as error:
        asking = asyncio.current_task()
        if asking is None or asking.cancelling():
            raise
        record["error"] = told(error)  # the pipeline's own: nobody has cancelled the run
    except Exception as error:  # noqa: BLE001 - what is tested may be a user's own; it is kept as the reason
        record["error"] = told(error, most=500)
    else:
        verdict = judge(reply, item, declines)
        record |= {
            "reply": reply, "labels": list(verdict.labels), "right": verdict.right, "declined": verdict.declined,
            "detected": verdict.detected,
        }  # fmt: skip
    record["seconds"] = round(time.perf_counter() - started, 4)
    return record, read


def _tasks(
    items: Sequence[Item], names: Sequence[str], rates: Sequence[float], count: int, seed: int, limit: int | None,
) -> list[_Task]:  # fmt: skip
    tasks: list[_Task] = []
    for name in NAMES:
        if name not in names:
            continue
        fit = [item for item in items if item.kind == _KINDS[name]]
        taken: dict[str, int] = {}
        for item in fit:
            taken[item.language] = taken.get(item.language, 0) + 1
            if limit is not None and taken[item.language] > limit:
                continue
            for rate in {"negative_rejection": (1.0,), "counterfactual_robustness": (0.0,)}.get(name, rates):
                texts = passages_of(item, rate, count, seed)
                tasks.append(_Task(name, item, None if name == "counterfactual_robustness" else rate, texts))
    if not tasks:
        raise InvalidInputError(f"the source holds no question for {', '.join(names)} in these languages")
    return tasks


def items_of_set(
    source: EvaluationSet, count: int, seed: int
) -> tuple[list[Item], dict[str, dict[str, int]]]:
    """The questions of a set of one's own."""
    from rag_kit.evaluation.rgb.own_corpus import items_of

    return items_of(source, count, seed)
