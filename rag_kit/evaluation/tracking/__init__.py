"""Results written to LangSmith, MLflow or Phoenix by their own clients, and only where `log_results` is called.

Importing this package imports none of the clients.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, Literal

from rag_kit._redact import redact
from rag_kit.documents import clean_text
from rag_kit.errors import BranchError, InvalidInputError, MissingExtraError, RagKitError, TrackingError
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tracking.content import Tracked, Upload
from rag_kit.evaluation.tracking.experiments import write_langsmith, write_phoenix
from rag_kit.evaluation.tracking.mlflow_run import write_mlflow

#: Title, class of the client, what writes with it, and variables with keys: the first is named in messages.
_TRACKERS: dict[str, tuple[str, str, Any, tuple[str, ...]]] = {
    "langsmith": ("LangSmith", "langsmith.Client", write_langsmith, ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")),
    "mlflow": ("MLflow", "mlflow.MlflowClient", write_mlflow, ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD")),
    "phoenix": ("Phoenix", "phoenix.client.Client", write_phoenix, ("PHOENIX_API_KEY",)),
}  # fmt: skip
_TIMEOUT_MS = (5_000, 15_000)  # of LangSmith: to connect, to answer


def log_results(
    results: Results,
    to: Literal["langsmith", "mlflow", "phoenix"],
    *,
    dataset: str | None = None,
    experiment: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
    client: Any = None,
) -> Tracked:
    """Write results to a tracker of experiments; written again, only what is missing is added.

    LangSmith and Phoenix get a dataset of the questions and an experiment with a run for each row and a score for
    each cell (its status where it has no value). MLflow gets a run: settings, the summary of each metric, files.

    Args:
        results: What ``evaluate`` or ``Results.load`` gave.
        to: The tracker. MLflow needs the extra ``mlflow``, Phoenix the extra ``phoenix``.
        dataset: Name of the dataset; default: that of the set. MLflow has none.
        experiment: Its name; default: the pipeline's with a mark of the content; with MLflow the set's.
        url: Address of the tracker; default: what its client reads from the environment.
        api_key: Key, likewise. MLflow's client takes it from the environment only.
        client: A client of your own, with its address, key, time-outs and retries.

    Returns:
        Address and id of the experiment, and how many entries were written: 0 where everything was there.

    Raises:
        TrackingError: If the tracker is down, too slow, or refuses; its ``tracked`` has the counts until then.
        InvalidInputError: If an argument is not allowed, or the experiment's name belongs to other results.
        MissingExtraError: If the tracker's client is not installed.
    """
    if not isinstance(results, Results) or not results.rows:
        raise InvalidInputError(f"results is {results!r:.60}; give what evaluate returned, with rows")
    if not isinstance(to, str) or to not in _TRACKERS:
        raise InvalidInputError(f"to is {to!r:.60}; allowed are 'langsmith', 'mlflow' and 'phoenix'")
    for name, value in (("dataset", dataset), ("experiment", experiment), ("url", url)):
        line = isinstance(value, str) and value.isprintable() and value.strip() == value != ""
        if value is not None and not line:
            raise InvalidInputError(
                f"{name} is {redact(repr(value)):.80}; give a line without blanks around it"
            )
    if api_key is not None and not (isinstance(api_key, str) and re.fullmatch(r"[!-~]+", api_key)):
        raise InvalidInputError("api_key is no text of printable ASCII characters")
    if to == "mlflow" and (dataset or api_key):
        raise InvalidInputError("leave dataset and api_key out: MLflow's client reads MLFLOW_TRACKING_TOKEN")
    upload, tracked = Upload(results, dataset, experiment), Tracked(to, url or "its address")
    try:
        _TRACKERS[to][2](_connect(to, url, api_key, client), upload, tracked)
    except Exception as error:  # noqa: BLE001 - a client raises classes of its own and those of all it stands on
        cause = error.__cause__ if isinstance(error, BranchError) and error.__cause__ else error
        if not isinstance(cause, RagKitError):
            cause = _tracking_error(to, cause, tracked, api_key, getattr(client, "api_key", None))
        if isinstance(cause, TrackingError):
            cause.tracked = tracked
        raise cause from None
    finally:
        tracked.url = redact(tracked.url)
    return tracked


def _connect(to: str, url: str | None, api_key: str | None, client: Any) -> Any:
    """The client that is handed in, or a new one."""
    title, path, *_ = _TRACKERS[to]
    if to == "mlflow":
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except ImportError:
        raise MissingExtraError(to, f"writing to {title}") from None
    if client is not None:
        if not isinstance(client, kind) or url is not None or api_key is not None:
            raise InvalidInputError(f"client is a {type(client).__name__}; give a {path} and no url, api_key")
        return client
    if to == "mlflow":
        return kind(tracking_uri=url)
    if to == "phoenix":
        return kind(base_url=url, api_key=api_key)
    return kind(url, api_key=api_key, timeout_ms=_TIMEOUT_MS, auto_batch_tracing=False, tracing_mode="langsmith",
                tracing_sampling_rate=1.0, omit_traced_runtime_info=True)  # fmt: skip


def _tracking_error(to: str, error: BaseException, tracked: Tracked, *keys: str | None) -> TrackingError:
    """A `TrackingError` for an error of a client: its text without keys, and what to do."""
    title, _, _, variables = _TRACKERS[to]
    # LangSmith's client prints parts of the key
    text = f"{type(error).__name__}: {error}".partition("API Key:")[0]
    for key in filter(None, (*keys, *map(os.environ.get, variables))):
        text = text.replace(key, "***").replace(repr(key)[1:-1], "***")
    text = clean_text(" ".join(redact(text).split()))[:400]
    return TrackingError(
        f"{title} at {redact(tracked.url)} failed: {text}; see that it runs, that the address is that of its API and "
        f"the key ({variables[0]}) right, then write again: what is there is not written twice"
    )
