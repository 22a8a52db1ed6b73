"""Results as a dataset, an experiment, runs and evaluations of Arize Phoenix."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from rag_kit.concurrency import run_in_thread
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.http import Server
from rag_kit.evaluation.tracking.options import check_options, check_text
from rag_kit.evaluation.tracking.phoenix_writer import PhoenixWriter
from rag_kit.evaluation.tracking.tracked import OnError, Tally, Tracked
from rag_kit.evaluation.tracking.writing import track

_LOCAL = "http://localhost:6006"
_ADVICE = "Give api_key=, or set PHOENIX_API_KEY"


def log_to_phoenix(
    results: Results,
    *,
    dataset: str | None = None,
    experiment: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
    timeout: float = 30.0,
    max_retries: int = 2,
    max_concurrency: int = 8,
    deadline: float | None = None,
    on_error: OnError = "raise",
) -> Tracked:
    """Write results to a Phoenix server (15 or newer), by its REST API; its client need not be installed.

    The dataset is found by its name or made; an example keeps its id in it, so that it is written once and examples of
    others stay. One experiment holds a run for each row (answer, passages with id and text; error) and for each cell
    an evaluation: with a score only where the cell has a value, otherwise with the status as label. Writing the same
    results again writes what is missing.

    Args:
        results: What ``evaluate`` or ``Results.load`` gave.
        dataset: Its name; default: that of the set.
        experiment: Its name; default: the pipeline's, with a mark of the content.
        url: The server's address; default: ``PHOENIX_COLLECTOR_ENDPOINT``, else ``http://localhost:6006``.
        api_key: Default: ``PHOENIX_API_KEY``.
        timeout: Seconds that one request may take, its retries included.
        max_retries: Most retries of a request.
        max_concurrency: Most requests at a time.
        deadline: Seconds for everything.
        on_error: ``"skip"`` goes on where Phoenix refuses one entry and counts it as failed.

    Returns:
        Counts of examples, runs and evaluations.

    Raises:
        TrackingError: If Phoenix refuses, is too old, or does not answer in time; written again, it goes on.
        InvalidInputError: If an argument is not allowed, or the experiment's name belongs to other results.
    """
    content.check_results(results)
    check_options(max_concurrency, on_error)
    dataset, experiment = check_text("dataset", dataset), check_text("experiment", experiment)
    key = api_key or os.environ.get("PHOENIX_API_KEY") or None
    server = Server(
        "Phoenix", url or _env_url() or _LOCAL,
        headers={"Authorization": f"Bearer {key}"} if key else {}, secrets=[key], advice=_ADVICE, timeout=timeout,
        max_retries=max_retries, deadline=deadline,
    )  # fmt: skip

    def write(tally: Tally) -> None:
        writer = PhoenixWriter(server, tally, results, max_concurrency, on_error)
        writer.write(dataset or content.dataset_name(results), experiment)

    return track("phoenix", server, write)


async def alog_to_phoenix(results: Results, **options: Any) -> Tracked:
    """As `log_to_phoenix`, on a thread.

    Args:
        results: As there.
        **options: As there.
    """
    return await run_in_thread(partial(log_to_phoenix, results, **options))


def _env_url() -> str | None:
    return os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or os.environ.get("PHOENIX_BASE_URL") or None
