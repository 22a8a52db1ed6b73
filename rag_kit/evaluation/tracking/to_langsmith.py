"""Results as a dataset, an experiment, runs and feedback of LangSmith."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import ConfigurationError
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.http import Server
from rag_kit.evaluation.tracking.langsmith_writer import HOSTED, LangSmithWriter
from rag_kit.evaluation.tracking.options import check_options, check_text
from rag_kit.evaluation.tracking.tracked import OnError, Tally, Tracked
from rag_kit.evaluation.tracking.writing import track

_ADVICE = "Give api_key=, or set LANGSMITH_API_KEY, to a key of that workspace"


def log_to_langsmith(
    results: Results,
    *,
    dataset: str | None = None,
    experiment: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
    workspace: str | None = None,
    timeout: float = 30.0,
    max_retries: int = 2,
    max_concurrency: int = 8,
    deadline: float | None = None,
    on_error: OnError = "raise",
) -> Tracked:
    """Write results to LangSmith: nothing is sent there unless this is called.

    The dataset is found by its name or made; an example has the id of yours in it, so that it is written once. One
    experiment holds a run for each row (question; answer, passages with id and text; error) and for each cell a
    feedback: with a score only where the cell has a value, otherwise with the status as its value. Writing the same
    results again writes what is missing. LangSmith stores runs after it has answered; this waits until they are there.

    Args:
        results: What ``evaluate`` or ``Results.load`` gave.
        dataset: Its name; default: that of the set.
        experiment: Its name; default: the pipeline's, with a mark of the content.
        url: The API's address; default: ``LANGSMITH_ENDPOINT``, else the hosted one.
        api_key: Default: ``LANGSMITH_API_KEY``.
        workspace: Id of the workspace, for keys of an organisation; default: ``LANGSMITH_WORKSPACE_ID``.
        timeout: Seconds that one request may take, its retries included; and that stored runs are waited for.
        max_retries: Most retries of a request.
        max_concurrency: Most requests at a time.
        deadline: Seconds for everything.
        on_error: ``"skip"`` goes on where LangSmith refuses one entry and counts it as failed.

    Returns:
        Counts of examples, runs and feedbacks.

    Raises:
        TrackingError: If LangSmith refuses, or does not answer in time; written again, it goes on.
        ConfigurationError: If the hosted LangSmith is meant and there is no key.
        InvalidInputError: If an argument is not allowed, or the experiment's name belongs to other results.
    """
    content.check_results(results)
    check_options(max_concurrency, on_error)
    dataset, experiment = check_text("dataset", dataset), check_text("experiment", experiment)
    address = url or _env("ENDPOINT") or HOSTED
    key = api_key or _env("API_KEY")
    if key is None and address.rstrip("/") == HOSTED:
        raise ConfigurationError(f"there is no key for LangSmith. {_ADVICE}")
    place = workspace or _env("WORKSPACE_ID")
    headers = {"x-api-key": key, "X-Tenant-Id": place}
    server = Server(
        "LangSmith", address, headers={name: text for name, text in headers.items() if text}, secrets=[key],
        advice=_ADVICE, timeout=timeout, max_retries=max_retries, deadline=deadline,
    )  # fmt: skip

    def write(tally: Tally) -> None:
        writer = LangSmithWriter(server, tally, results, max_concurrency, on_error)
        writer.write(dataset or content.dataset_name(results), experiment)

    return track("langsmith", server, write)


async def alog_to_langsmith(results: Results, **options: Any) -> Tracked:
    """As `log_to_langsmith`, on a thread.

    Args:
        results: As there.
        **options: As there.
    """
    return await run_in_thread(partial(log_to_langsmith, results, **options))


def _env(name: str) -> str | None:
    return os.environ.get(f"LANGSMITH_{name}") or os.environ.get(f"LANGCHAIN_{name}") or None
