"""``evaluate``: ask a pipeline every example, score what it gives, go on where an earlier run stopped."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from rag_kit.concurrency.bridge import run_coroutine, run_in_thread
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.runs.metering import Progress
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.run import Run

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.runs.asking import MakeInput

P = ParamSpec("P")


async def aevaluate(
    pipeline: Any,
    dataset: Sequence[Example] | Path | str,
    metrics: Any = None,
    *,
    judge: Judge | None = None,
    out: Path | str | None = None,
    name: str | None = None,
    version: str | None = None,
    max_concurrency: int = 8,
    timeout: float | None = None,
    metric_timeout: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    prices: float | Mapping[str, Any] | None = None,
    progress: bool | Callable[[Progress], None] = True,
    make_input: MakeInput | None = None,
    retry_errors: bool = True,
) -> Results:
    """Ask a pipeline every example of a set and score what it gives.

    `evaluate` works in scripts and in Jupyter, where an event loop runs already; `aevaluate` is for async code. Metrics
    of one example are computed while the pipeline is asked the next ones. Whatever fails becomes a cell with a reason;
    it ends neither the run nor counts as a number.

    With ``out`` every finished step is kept in that folder at once. Run again, only what is missing or was computed
    from something else is computed: the pipeline is asked again where its name, version or settings, the question or
    the history changed; a metric is computed again where its settings, the judge, the example or the output did.
    A run that is unchanged asks neither pipeline nor judge.

    Args:
        pipeline: A LangChain Runnable or retriever, a compiled graph, a function from a question to whatever
            `Output.of` reads (async or not), or ``"module:object"``, whose code is run.
        dataset: An `EvaluationSet`, a list of Examples, or the path of a set.
        metrics: Names, objects of the class `Metric`, and metrics of ``ragas.metrics.collections`` (objects, classes or
            a ``partial`` of one), which ask `judge`; default: those that need no model and that the set has gold for.
        judge: Whom metrics ask; without one, those that need it are not applicable.
        out: Folder of the results; ``None``: they are only returned.
        name: The pipeline's name in tables; default: its own.
        version: Says that the pipeline is the same, or is not; default: a hash of its settings and code. Give one
            where the hash cannot see what changed, such as the content of an index.
        max_concurrency: Most questions that the pipeline is asked at a time.
        timeout: Seconds the pipeline may take for one example.
        metric_timeout: Seconds one metric may take for one example, waiting for the judge included.
        max_calls: Most model calls of this run, pipeline and judge together; reached, the run ends and keeps what is
            there.
        max_tokens: Most tokens, likewise.
        deadline: Seconds for the whole run, likewise.
        prices: ``{"model": {"input": 0.15, "output": 0.6}}`` for a million tokens each, ``"*"`` for any other model,
            or one number for a million tokens; in whatever currency.
        progress: A bar with rate, cost so far and time left (where somebody looks); ``False``: none; or a function
            that gets a `Progress`.
        make_input: What the pipeline is called with, for an example; default: what its kind takes.
        retry_errors: Whether cells that failed in an earlier run are computed again.

    Returns:
        One row for each example. ``results.manifest["stopped_by"]`` says which cap ended the run, if one did.

    Raises:
        InvalidInputError: If an argument is not allowed, or the folder holds something else.
        ResultsLockedError: If another run writes to the folder.
        MissingExtraError: If a metric needs an extra that is not installed.

    Example:
        >>> from rag_kit.evaluation.cells import Cell
        >>> from rag_kit.evaluation.metric import Metric
        >>> class Short(Metric):
        ...     name, source, stage = "ours_short", "ours", "generation"
        ...     async def score(self, example, output, judge):
        ...         return Cell.ok(float(len(output.answer) < 10))
        >>> questions = [Example("q1", "Who?"), Example("q2", "And why, in so many words?")]
        >>> results = evaluate(lambda question: f"{question} Ada.", questions, Short(), progress=False)
        >>> results.summary()["ours_short"].mean
        0.5
    """
    caps = {"max_calls": max_calls, "max_tokens": max_tokens, "deadline": deadline}
    run = await run_in_thread(
        lambda: Run(
            pipeline, dataset, metrics, judge, out, name, version, max_concurrency, timeout, metric_timeout, caps,
            prices, progress, make_input, retry_errors,
        )
    )  # fmt: skip
    return await run.results()


def _blocking(function: Callable[P, Coroutine[Any, Any, Results]]) -> Callable[P, Results]:
    """The function with its arguments and its documentation, for code that awaits nothing."""

    @functools.wraps(function)
    def call(*args: P.args, **arguments: P.kwargs) -> Results:
        return run_coroutine(function(*args, **arguments))

    call.__name__ = call.__qualname__ = function.__name__.removeprefix("a")
    return call


evaluate = _blocking(aevaluate)
