"""``evaluate``: ask a pipeline every example, score what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import afan_out_map, run_coroutine
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.asking import MakeInput, asker, default_name, resolve
from rag_kit.evaluation.runs.results import Results, Row
from rag_kit.evaluation.scorers import get_metrics

if TYPE_CHECKING:
    from rag_kit.evaluation.judge import Judge


def evaluate(
    pipeline: Any,
    dataset: Sequence[Example],
    metrics: str | Metric | Iterable[str | Metric],
    *,
    judge: Judge | None = None,
    out: Path | str | None = None,
    name: str | None = None,
    max_concurrency: int = 8,
    timeout: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    prices: Any = None,
    progress: bool | Callable[[Any], None] = True,
    make_input: MakeInput | None = None,
) -> Results:
    """Ask a pipeline every example and score what it gives; `aevaluate` for blocking code, Jupyter included."""
    return run_coroutine(
        aevaluate(
            pipeline,
            dataset,
            metrics,
            judge=judge,
            out=out,
            name=name,
            max_concurrency=max_concurrency,
            timeout=timeout,
            max_calls=max_calls,
            max_tokens=max_tokens,
            deadline=deadline,
            prices=prices,
            progress=progress,
            make_input=make_input,
        )
    )


async def aevaluate(
    pipeline: Any,
    dataset: Sequence[Example],
    metrics: str | Metric | Iterable[str | Metric],
    *,
    judge: Judge | None = None,
    out: Path | str | None = None,
    name: str | None = None,
    max_concurrency: int = 8,
    timeout: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    prices: Any = None,
    progress: bool | Callable[[Any], None] = True,
    make_input: MakeInput | None = None,
) -> Results:
    """Ask a pipeline every example and score what it gives."""
    chosen = get_metrics(metrics)
    the_pipeline = resolve(pipeline)
    ask = asker(the_pipeline, make_input)
    examples = list(dataset)
    if not examples:
        raise InvalidInputError("there is no example to evaluate with")

    async def one(example: Example) -> Row:
        started = time.perf_counter()
        try:
            output = Output.of(await ask(example))
        except Exception as error:  # noqa: BLE001 - what a user's pipeline raised is kept in the row
            output = Output(error=f"{type(error).__name__}: {error}")
        output = Output(**{**vars(output), "seconds": time.perf_counter() - started})
        return Row(example, output, {m.name: await m.measure(example, output, judge) for m in chosen})

    done = await afan_out_map(one, examples, max_concurrency=max_concurrency)
    results = Results(name or default_name(the_pipeline), done.values, tuple(m.name for m in chosen))
    if out is not None:
        results.save(out)
    return results
