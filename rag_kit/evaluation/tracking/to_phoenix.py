"""Results as a dataset, an experiment, runs and evaluations of Arize Phoenix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.runs.results import Results, Row
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.http import Answer, Refused, Server
from rag_kit.evaluation.tracking.options import check_options, check_text
from rag_kit.evaluation.tracking.tracked import OnError, Tally, Tracked

_LOCAL = "http://localhost:6006"
_ADVICE = "Give api_key=, or set PHOENIX_API_KEY"
#: The first version whose datasets keep the ids of examples.
_FIRST_VERSION = (15, 0)
_EXAMPLES_AT_ONCE = 200
_PAGE = 100


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
    tally = Tally("phoenix", server.url)
    try:
        writer = _Writer(server, tally, results, max_concurrency, on_error)
        writer.write(dataset or content.dataset_name(results), experiment)
    except TrackingError as error:
        error.tracked = tally.result()
        raise
    finally:
        server.close()
    return tally.result()


async def alog_to_phoenix(results: Results, **options: Any) -> Tracked:
    """As `log_to_phoenix`, on a thread.

    Args:
        results: As there.
        **options: As there.
    """
    return await run_in_thread(partial(log_to_phoenix, results, **options))


class _Writer:
    def __init__(
        self, server: Server, tally: Tally, results: Results, max_concurrency: int, on_error: OnError
    ) -> None:
        self._server = server
        self._tally = tally
        self._results = results
        self._width = max_concurrency
        self._skip = on_error == "skip"
        self._judged = {
            each["name"]
            for each in results.manifest.get("metrics", [])
            if isinstance(each, Mapping) and each.get("asks_judge") and "name" in each
        }

    def write(self, dataset: str, experiment: str | None) -> None:
        mark = content.fingerprint(self._results)
        known = self._server.ask("GET", "/v1/datasets", params={"name": dataset, "limit": 1})
        self._check_version(known)
        dataset_id, version = self._examples(dataset)
        nodes = self._nodes(dataset_id)
        found = self._experiment(dataset_id, version, experiment, mark)
        self._tally.run_id = str(found["id"])
        self._tally.url = (
            f"{self._server.url}/datasets/{dataset_id}/compare?experimentId={self._tally.run_id}"
        )
        there, runs = self._runs(self._tally.run_id, nodes)
        self._evaluations(self._tally.run_id, there, runs)

    def _check_version(self, answer: Answer) -> None:
        text = answer.headers.get("x-phoenix-server-version", "")
        version = tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
        if version and version < _FIRST_VERSION:
            raise TrackingError(
                f"Phoenix at {self._server.url} is version {text}, whose datasets keep no ids of examples, so that "
                "writing twice would double them; use version 15 or newer"
            )

    def _examples(self, name: str) -> tuple[str, str | None]:
        """Add the examples that are not there, change those that differ."""
        dataset, version = "", None
        for rows in content.batches(self._results.rows, _EXAMPLES_AT_ONCE):
            body = {
                "action": "append", "name": name,
                "inputs": [content.example_inputs(row.example) for row in rows],
                "outputs": [content.example_gold(row.example) for row in rows],
                "metadata": [content.example_metadata(row.example) for row in rows],
                "example_ids": [content.example_key(row.example) for row in rows],
            }  # fmt: skip
            data = self._data(self._server.ask("POST", "/v1/datasets/upload", body, params={"sync": "true"}))
            dataset, version = str(data.get("dataset_id")), data.get("version_id") or version
            wrote = int(data.get("num_created_examples") or 0) + int(data.get("num_updated_examples") or 0)
            self._tally.wrote(wrote)
            self._tally.skip(len(rows) - wrote)
        return dataset, version

    def _nodes(self, dataset: str) -> dict[str, str]:
        """Example id -> the id by which Phoenix's runs name it."""
        data = self._data(self._server.ask("GET", f"/v1/datasets/{quote(dataset)}/examples"))
        ids = {str(each["id"]): str(each.get("node_id") or each["id"]) for each in data.get("examples", [])}
        nodes = {row.example.id: ids.get(content.example_key(row.example), "") for row in self._results.rows}
        if lost := [name for name, node in nodes.items() if not node]:
            raise self._server.wrong(f"does not know the example {lost[0]!r:.80} that it has just taken")
        return nodes

    def _experiment(self, dataset: str, version: str | None, name: str | None, mark: str) -> dict[str, Any]:
        wanted = name or content.experiment_name(self._results, mark)
        for each in self._pages(f"/v1/datasets/{quote(dataset)}/experiments"):
            if each.get("name") == wanted:
                if (each.get("metadata") or {}).get(content.FINGERPRINT) == mark:
                    return each
                raise InvalidInputError(
                    f"Phoenix has an experiment {wanted!r:.120} of other results; give experiment= another name"
                )
        body = {
            "name": wanted, "metadata": content.run_metadata(self._results, mark), "repetitions": 1,
            **({"version_id": version} if version else {}),
        }  # fmt: skip
        path = f"/v1/datasets/{quote(dataset)}/experiments"
        return self._data(self._server.ask("POST", path, body, again=False))  # a second one would be another

    def _runs(self, experiment: str, nodes: Mapping[str, str]) -> tuple[set[str], dict[str, str]]:
        """Write the runs that are missing; ids of those that were there, and example id -> run id of all."""
        path = f"/v1/experiments/{quote(experiment)}/runs"
        known = {str(each["dataset_example_id"]): str(each["id"]) for each in self._pages(path)}
        runs = {name: known[node] for name, node in nodes.items() if node in known}
        there = set(runs.values())
        self._tally.skip(len(runs))

        def send(row: Row) -> None:
            end = datetime.now(UTC)
            start = end - timedelta(seconds=min(max(row.output.seconds, 0.0), 1e6))
            body = {
                "dataset_example_id": nodes[row.example.id], "repetition_number": 1,
                "output": content.run_output(row.output), "error": content.error_text(row),
                "start_time": start.isoformat(), "end_time": end.isoformat(),
            }  # fmt: skip
            answer = self._server.ask("POST", path, body, allow=(409,))
            if (
                answer.status == 409
            ):  # the answer to a first attempt was lost, or another process writes them too
                again = {str(each["dataset_example_id"]): str(each["id"]) for each in self._pages(path)}
                runs[row.example.id] = again[nodes[row.example.id]]
            else:
                runs[row.example.id] = str(self._data(answer).get("id"))

        missing = [row for row in self._results.rows if row.example.id not in runs]
        self._each(missing, send, lambda row: 1 + len(row.cells))
        return there, runs

    def _evaluations(self, experiment: str, there: set[str], runs: Mapping[str, str]) -> None:
        missing = self._incomplete(experiment) if there else {}
        bodies = []
        for row in self._results.rows:
            run = runs.get(row.example.id)
            for name, cell in row.cells.items() if run else ():
                body = self._evaluation(name, cell, str(run))
                if run in there and body["name"] not in missing.get(str(run), ()):
                    self._tally.skip()
                else:
                    bodies.append(body)
        self._each(
            bodies, lambda body: self._server.ask("POST", "/v1/experiment_evaluations", body), lambda _: 1
        )

    def _incomplete(self, experiment: str) -> dict[str, set[str]]:
        """Run id -> names of the evaluations that it lacks. (The evaluations themselves cannot be read by REST where
        an experiment's name is Chinese: Phoenix 20 puts it into a header and fails.)"""
        names = sorted({content.clean_text(name) for row in self._results.rows for name in row.cells})
        path = f"/v1/experiments/{quote(experiment)}/incomplete-evaluations"
        return {
            str(each["experiment_run"]["id"]): set(each["evaluation_names"])
            for each in (self._pages(path, {"evaluation_name": names}) if names else ())
        }

    def _evaluation(self, name: str, cell: Cell, run: str) -> dict[str, Any]:
        """A cell as an evaluation; without a value there is no score."""
        end = datetime.now(UTC)
        start = end - timedelta(seconds=min(max(cell.seconds, 0.0), 1e6))
        reason = content.reason_text(cell)
        body: dict[str, Any] = {
            "experiment_run_id": run, "name": content.clean_text(name),
            "annotator_kind": "LLM" if name in self._judged else "CODE",
            "start_time": start.isoformat(), "end_time": end.isoformat(),
            "metadata": {"status": cell.status, "calls": cell.calls, "tokens": cell.tokens},
        }  # fmt: skip
        result = {
            "label": None if cell.value is not None else cell.status,
            "score": cell.value,
            "explanation": reason or None,
        }
        body["result"] = {key: value for key, value in result.items() if value is not None}
        return body

    def _each(self, items: list[Any], send: Callable[[Any], Any], size: Callable[[Any], int]) -> None:
        def one(item: Any) -> None:
            try:
                send(item)
            except Refused as error:
                if not self._skip:
                    raise
                self._tally.fail(str(error), size(item))
            else:
                self._tally.wrote()

        self._server.each(one, items, self._width)

    def _pages(self, path: str, more: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            params = {**(more or {}), "limit": _PAGE, **({"cursor": cursor} if cursor else {})}
            value = self._server.ask("GET", path, params=params).value
            if not isinstance(value, dict) or not isinstance(value.get("data"), list):
                raise self._server.wrong(f"answers {path} with something else than pages")
            yield from value["data"]
            before, cursor = cursor, value.get("next_cursor")
            if not cursor or cursor == before:
                return

    def _data(self, answer: Answer) -> dict[str, Any]:
        data = answer.value.get("data") if isinstance(answer.value, dict) else None
        if not isinstance(data, dict):
            raise self._server.wrong("answers with something else than was asked for")
        return data


def _env_url() -> str | None:
    return os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or os.environ.get("PHOENIX_BASE_URL") or None
