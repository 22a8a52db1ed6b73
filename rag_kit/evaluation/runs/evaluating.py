"""``evaluate``: ask a pipeline of any kind every example, score what it gives, go on where an earlier run stopped."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import acall_function, blocking, run_in_thread
from rag_kit.concurrency.budget import check_seconds
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.runs.estimate import estimate_run
from rag_kit.evaluation.runs.fingerprint import pipeline_hash, unseen_variables
from rag_kit.evaluation.runs.gold import MAX_MISSING, look_for_gold
from rag_kit.evaluation.runs.metering import Report, RunBudget, read_prices, reporting
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import MANIFEST, RunFolder, digest
from rag_kit.evaluation.runs.run import Run
from rag_kit.evaluation.scorers import default_metrics, get_metrics
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.indexing.files import as_path
from rag_kit.models.runnables import acall_runnable
from rag_kit.retrieval.fields import check_count

_log = logging.getLogger(__name__)
MakeInput = Callable[[Example], Any]
Ask = Callable[[Example], Awaitable[Any]]

_QUESTION_FIELDS = ("question", "input", "query")
_HISTORY_FIELDS = ("history", "chat_history")
_SEARCH_FIELDS = {"search_query"}  # of a graph's state: what it searched for


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
    progress: bool | Report = True,
    make_input: MakeInput | None = None,
    retry_errors: bool = True,
    max_missing_gold: float | None = MAX_MISSING,
    dry_run: bool = False,
) -> Results:
    """Ask a pipeline every example of a set and score what it gives.

    `evaluate` works in scripts and in Jupyter; `aevaluate` is for async code. Whatever fails becomes a cell with a
    reason; it neither ends the run nor counts as a number.

    With ``out`` every finished step is kept in that folder at once. Run again, only what is missing or was computed
    from something else is computed: the pipeline is asked again where its name or version, the question or the
    history changed; a metric is computed again where its settings, the judge, the example or the output did.

    Args:
        pipeline: A LangChain Runnable or retriever, a compiled graph, a function (async or not) from a question to
            what `Output.of` reads, or ``"module:object"``, whose code is run.
        dataset: An `EvaluationSet`, a list of Examples, or the path of a set.
        metrics: Names, objects of the class `Metric`, and metrics of ``ragas.metrics.collections``, which ask `judge`;
            default: those that need no model and that the set has gold for.
        judge: Whom metrics ask; without one, those that need it are not applicable.
        out: Folder of the results; ``None``: they are only returned.
        name: The pipeline's name in tables; default: its own.
        version: Identifies the pipeline together with its name; default: a hash of its settings, its code, and the
            plain data that it reads. Give one where that hides a change: in an index, in an installed package.
        max_concurrency: Most questions that the pipeline is asked at a time.
        timeout: Seconds the pipeline may take for one example.
        metric_timeout: Seconds one metric may take for one example, waiting for the judge included.
        max_calls: Most model calls, pipeline and judge together; then the run ends and keeps what is there.
        max_tokens: Most tokens, likewise.
        deadline: Seconds for the whole run, likewise.
        prices: ``{"model": {"input": 0.15, "output": 0.6}}`` for a million tokens each, in any currency; ``"*"`` is
            any other model, one number all of them.
        progress: A bar where somebody looks; ``False``: none; or a function that gets a `RunProgress`.
        make_input: What the pipeline is called with, for an example; default: what its kind takes.
        retry_errors: Whether cells that failed in an earlier run are computed again.
        max_missing_gold: Most of the gold (ids and spans) that the documents may lack which are searched, as a share;
            with more nothing is asked. What is missing is named. ``None``: not looked up. Only what the kit's
            retrievers search over a `DocumentIndex` or documents, else the set's corpus, is looked through. A function
            of yours, alone or in a chain or graph, can search elsewhere too: then what is missing is only named.
        dry_run: Only estimate calls, tokens and money: the pipeline is asked 5 questions (what it gives is kept, where
            ``out`` holds a run), the judge's prompts are made and not sent. See `Estimate`.

    Returns:
        One row for each example. ``results.manifest["stopped_by"]`` says which cap ended the run, if one did.

    Raises:
        InvalidInputError: If an argument is not allowed, too much gold is missing, or the folder holds something else.
        LockedError: If another run writes to the folder.
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

    def prepare() -> tuple[Run, Path | None]:
        """Check the arguments, read the set, import the metrics: on a thread, since it reads files."""
        for argument, text in (("version", version), ("name", name)):
            is_text = text is None or (isinstance(text, str) and bool(text.strip()))
            _require(is_text, argument, text, "a text that is not blank")
        check_count("max_concurrency", max_concurrency)
        _require(judge is None or hasattr(judge, "fingerprint"), "judge", judge, "a Judge, as Judge(...)")
        check_seconds("timeout", timeout)
        check_seconds("metric_timeout", metric_timeout)
        caps = RunBudget(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline)
        price_table, runner = read_prices(prices), resolve(pipeline)
        questions = EvaluationSet.load(dataset) if isinstance(dataset, (str, Path)) else dataset
        examples = take_examples(questions)
        corpus = getattr(questions, "corpus", None)
        shown_name = name or _pipeline_name(runner)
        ask, gets_turns = _make_ask(runner, make_input)
        missing, ambiguous = look_for_gold(runner, examples, corpus, max_missing_gold)
        about = {
            "dataset": {
                "name": questions.name if isinstance(questions, EvaluationSet) else None,
                "fingerprint": digest([example.to_json() for example in examples]),
            },
            "missing_gold": missing,
            "ambiguous_gold": ambiguous,
            "without_history": 0 if gets_turns else sum(bool(example.history) for example in examples),
        }
        code_hashes = [pipeline_hash(runner), make_input and pipeline_hash(make_input)]
        run = Run(
            name=shown_name, version=version, key=digest([shown_name, version or code_hashes]),
            ask=ask, reads_whole_example=make_input is not None, examples=examples, judge=judge,
            metrics=default_metrics(examples) if metrics is None else get_metrics(metrics),
            prices=price_table, caps=caps, max_concurrency=max_concurrency, timeout=timeout,
            metric_timeout=metric_timeout, retry_errors=retry_errors, about=about,
        )  # fmt: skip
        path = None if out is None else as_path(out, "out")
        if path is not None and version is None and (unseen := ", ".join(unseen_variables(runner))):
            _log.warning(
                "Changes in %s do not make the pipeline another one: then give another version.", unseen
            )
        if dry_run and path is not None and not (path / MANIFEST).is_file():
            path = None  # an estimate makes no folder
        return run, path

    run, path = await run_in_thread(prepare)
    run.folder = None if path is None else await run_in_thread(RunFolder, path)
    try:
        if dry_run:
            return await estimate_run(run)
        with reporting(progress, run.name) as run.report:
            return await run.results()
    finally:
        if run.folder is not None:
            run.folder.close()


evaluate = blocking(aevaluate, "evaluate")


def _require(is_allowed: bool, name: str, value: Any, allowed: str) -> None:
    if not is_allowed:
        raise InvalidInputError(f"{name} is {value!r:.80}; give {allowed}")


def take_examples(dataset: Any) -> tuple[Example, ...]:
    """Return the examples of a set or a sequence; raise `InvalidInputError` if an id comes twice, or there is none."""
    questions = dataset if isinstance(dataset, EvaluationSet) else EvaluationSet("questions", dataset)
    if not questions.examples:
        raise InvalidInputError("the dataset holds no example; there is nothing to evaluate")
    return questions.examples


def load_object(name: str) -> Any:
    """Import ``module:object`` or ``module:Class.method``, first from the current folder; this runs its code."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise InvalidInputError(f"{name!r} is not of the form module:object, such as my_retrievers:make")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return attrgetter(path)(importlib.import_module(module_name))
    except ImportError as error:
        raise InvalidInputError(
            f"{name!r}: the module {module_name!r} cannot be imported ({error}); run this from the folder that "
            "holds it, or install it"
        ) from error
    except AttributeError as error:
        raise InvalidInputError(f"{name!r}: {error}") from error


def resolve(pipeline: Any) -> Any:
    """Return a pipeline, imported if it is ``"module:object"``; raise `InvalidInputError` if it cannot be asked."""
    if isinstance(pipeline, str):
        form = "'module:object', or for the folder of an index index_retriever(DocumentIndex.open(...))"
        _require(":" in pipeline, "pipeline", pipeline, form)
        pipeline = load_object(pipeline)
    if isinstance(pipeline, type) or not (callable(pipeline) or _is_runnable(pipeline)):
        raise InvalidInputError(
            f"the pipeline is {pipeline!r:.80}; give a LangChain Runnable, retriever or graph, 'module:object', or a "
            "function from a question to an answer (the function itself, and do not call it)"
        )
    return pipeline


def _pipeline_name(pipeline: Any) -> str:
    if callable(get_name := getattr(pipeline, "get_name", None)):
        return str(get_name())
    name = getattr(pipeline, "__name__", type(pipeline).__name__)
    return "pipeline" if name == "<lambda>" else str(name)


def _make_ask(pipeline: Any, make_input: MakeInput | None) -> tuple[Ask, bool]:
    """Return a coroutine function that asks the pipeline an example, and whether the pipeline gets the earlier turns.

    Whoever gives ``make_input`` decides on the turns. Without it, a function does not get them, nor does a Runnable
    that takes the question alone; a graph always gets them.
    """
    if not _is_runnable(pipeline):
        make = make_input or (lambda example: example.question)
        return lambda example: acall_function(pipeline, make(example)), make_input is not None
    fields = _input_fields(pipeline)
    make = make_input or partial(_default_input, fields)
    takes_messages = "messages" in fields and not fields & set(_QUESTION_FIELDS)
    input_has_turns = make_input is not None or takes_messages or bool(fields & set(_HISTORY_FIELDS))
    if _is_graph(pipeline):
        return partial(_ask_graph, pipeline, make, input_has_turns), True
    call = (
        partial(run_in_thread, pipeline.invoke)
        if _is_only_sync(pipeline)
        else partial(acall_runnable, pipeline)
    )
    return lambda example: call(make(example), _run_config(example)), input_has_turns


async def _ask_graph(graph: Any, make: MakeInput, input_has_turns: bool, example: Example) -> Any:
    """Run a graph on an example; unless its input has the earlier turns, they are written into its state first."""
    # each example is a conversation of its own, also when the same one is asked again
    config: Any = {**_run_config(example), "configurable": {"thread_id": f"evaluate-{uuid4().hex}"}}
    own_keys, output_keys = getattr(graph, "output_channels", None), None
    if isinstance(own_keys, list):  # reports show what was searched for, too
        output_keys = list(dict.fromkeys([*own_keys, *_SEARCH_FIELDS & set(graph.channels)]))
    if example.history and not input_has_turns:  # graphs of this kit take earlier turns from their state
        from langgraph.checkpoint.memory import InMemorySaver

        if "history" not in graph.channels:
            raise InvalidInputError("the example has a history, and the graph takes none; give make_input")
        graph = graph.copy({"checkpointer": InMemorySaver()})
        turns = [{"question": turn["question"], "answer": turn["answer"]} for turn in example.history]
        # LangGraph writes a state as if a node had returned it
        first_node = next(name for name in graph.nodes if name != "__start__")
        await graph.aupdate_state(config, {"history": turns}, as_node=first_node)
    return await acall_runnable(graph, make(example), config, output_keys=output_keys)


def _input_fields(runnable: Any) -> set[str]:
    """Return the fields of the mapping that a Runnable takes; empty if it takes the question itself."""
    from langchain_core.retrievers import BaseRetriever

    schema: dict[str, Any] = {}
    if not isinstance(runnable, BaseRetriever):
        with suppress(Exception):  # a schema is a hint; many Runnables cannot give one
            schema = runnable.get_input_jsonschema()
    fields = set(schema.get("properties", ())) if schema.get("type") == "object" else set()
    # with several fields and none of these names it is not known which one takes the question
    if fields & {"messages", *_QUESTION_FIELDS} or len(fields) == 1:
        return fields
    return {"question"} if _is_graph(runnable) else set()


def _default_input(fields: set[str], example: Example) -> Any:
    """Make the input of a pipeline from an example: a mapping with these fields, or the question if there are none.

    ``{"input", "chat_history"}`` -> ``{"input": "And when?", "chat_history": [("user", ...), ("assistant", ...)]}``.
    """
    if not fields:
        return example.question
    messages: list[tuple[str, str]] = []
    for turn in example.history:
        messages += [("user", turn["question"]), ("assistant", turn["answer"])]
    question_field = next((field for field in _QUESTION_FIELDS if field in fields), None)
    if "messages" in fields and question_field is None:
        return {"messages": [*messages, ("user", example.question)]}
    turns = {"history": [dict(turn) for turn in example.history], "chat_history": messages}
    history = {field: turns[field] for field in _HISTORY_FIELDS if field in fields}
    only_field = min(fields)  # without a usual name there is but one
    return {question_field or only_field: example.question, **history}


def _run_config(example: Example) -> RunnableConfig:
    return {"metadata": {"evaluation_example": example.id}}


def _is_graph(value: Any) -> bool:
    return hasattr(value, "aupdate_state") and hasattr(value, "channels")


def _is_runnable(value: Any) -> bool:
    return hasattr(value, "ainvoke") and hasattr(value, "invoke") and not isinstance(value, type)


def _is_only_sync(runnable: Any) -> bool:
    """Tell whether ``ainvoke`` would only run ``invoke``, on a thread of asyncio's own small pool."""
    from langchain_core.retrievers import BaseRetriever

    cls = type(runnable)
    if isinstance(runnable, BaseRetriever):
        is_inherited = cls._aget_relevant_documents is BaseRetriever._aget_relevant_documents
        return is_inherited and cls.ainvoke is BaseRetriever.ainvoke
    return getattr(cls, "ainvoke", None) is Runnable.ainvoke
