"""Results as a dataset, an experiment, runs and feedback of LangSmith."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import ConfigurationError, InvalidInputError, TrackingError
from rag_kit.evaluation.runs.results import Results, Row
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.http import Refused, Server
from rag_kit.evaluation.tracking.langsmith_records import differs, feedback_record, record_id, run_record
from rag_kit.evaluation.tracking.options import check_options, check_text
from rag_kit.evaluation.tracking.tracked import OnError, Tally, Tracked

_HOSTED = "https://api.smith.langchain.com"
_ADVICE = "Give api_key=, or set LANGSMITH_API_KEY, to a key of that workspace"
_PAGE = 100
_RUNS_AT_ONCE = 20
_QUERY_AT_ONCE = 25


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
    address = url or _env("ENDPOINT") or _HOSTED
    key = api_key or _env("API_KEY")
    if key is None and address.rstrip("/") == _HOSTED:
        raise ConfigurationError(f"there is no key for LangSmith. {_ADVICE}")
    place = workspace or _env("WORKSPACE_ID")
    headers = {"x-api-key": key, "X-Tenant-Id": place}
    server = Server(
        "LangSmith", address, headers={name: text for name, text in headers.items() if text}, secrets=[key],
        advice=_ADVICE, timeout=timeout, max_retries=max_retries, deadline=deadline,
    )  # fmt: skip
    tally = Tally("langsmith", server.url)
    try:
        writer = _Writer(server, tally, results, max_concurrency, on_error)
        writer.write(dataset or content.dataset_name(results), experiment)
    except TrackingError as error:
        error.tracked = tally.result()
        raise
    finally:
        server.close()
    return tally.result()


async def alog_to_langsmith(results: Results, **options: Any) -> Tracked:
    """As `log_to_langsmith`, on a thread.

    Args:
        results: As there.
        **options: As there.
    """
    return await run_in_thread(partial(log_to_langsmith, results, **options))


class _Writer:
    def __init__(
        self, server: Server, tally: Tally, results: Results, max_concurrency: int, on_error: OnError
    ) -> None:
        self._server = server
        self._tally = tally
        self._results = results
        self._width = max_concurrency
        self._skip = on_error == "skip"

    def write(self, dataset: str, experiment: str | None) -> None:
        mark = content.fingerprint(self._results)
        dataset_id = self._dataset(dataset)
        examples = {row.example.id: record_id(dataset_id, row.example.id) for row in self._results.rows}
        self._examples(dataset_id, examples)
        session = self._experiment(
            dataset_id, experiment or content.experiment_name(self._results, mark), mark
        )
        self._tally.run_id = session["id"]
        self._tally.url = _page(self._server.url, session, dataset_id)
        runs = {row.example.id: record_id(session["id"], row.example.id) for row in self._results.rows}
        there = self._runs(session["id"], examples, runs)
        rows = [row for row in self._results.rows if runs[row.example.id] in there]
        self._feedback(session["id"], runs, rows)
        lost = sum(len(row.cells) for row in self._results.rows if runs[row.example.id] not in there)
        if lost:
            self._tally.fail("feedback of runs that LangSmith refused", lost)
        if not session.get("end_time"):
            self._server.ask("PATCH", f"/sessions/{session['id']}", {"end_time": _now()})

    def _dataset(self, name: str) -> str:
        found = self._server.ask("GET", "/datasets", params={"name": name, "limit": 1}).value
        if not found:
            body = {"name": name, "data_type": "kv", "extra": {"source": "rag-kit"}}
            answer = self._server.ask("POST", "/datasets", body, allow=(409,))
            found = [answer.value]
            if answer.status == 409:  # made by somebody else meanwhile, or by a request whose answer was lost
                found = self._server.ask("GET", "/datasets", params={"name": name, "limit": 1}).value
        return self._id_of(found)

    def _examples(self, dataset: str, ids: Mapping[str, str]) -> None:
        known = {str(each["id"]): each for each in self._pages("/examples", {"dataset": dataset})}
        new, changed = [], []
        for row in self._results.rows:
            body: dict[str, Any] = {
                "id": ids[row.example.id], "dataset_id": dataset,
                "inputs": content.example_inputs(row.example), "outputs": content.example_gold(row.example),
                "metadata": content.example_metadata(row.example),
            }  # fmt: skip
            before = known.get(body["id"])
            if before is None:
                new.append(body)
            elif differs(before, body):
                changed.append(body)
            else:
                self._tally.skip()
        self._in_batches("POST", "/examples/bulk", new, lambda batch: batch)
        self._each(changed, lambda body: self._server.ask("PATCH", f"/examples/{body['id']}", body))

    def _experiment(self, dataset: str, name: str, mark: str) -> dict[str, Any]:
        found = self._server.ask("GET", "/sessions", params={"name": name, "limit": 1}).value
        if not found:
            body = {
                "id": record_id(dataset, name, mark), "name": name, "reference_dataset_id": dataset,
                "start_time": _now(), "extra": {"metadata": content.run_metadata(self._results, mark)},
            }  # fmt: skip
            answer = self._server.ask("POST", "/sessions", body, allow=(409,))
            found = [answer.value]
            if answer.status == 409:
                found = self._server.ask("GET", "/sessions", params={"name": name, "limit": 1}).value
        self._id_of(found)
        session: dict[str, Any] = found[0]
        metadata = (session.get("extra") or {}).get("metadata") or {}
        if metadata.get(content.FINGERPRINT) != mark or str(session.get("reference_dataset_id")) != dataset:
            raise InvalidInputError(
                f"LangSmith has an experiment {name!r:.120} of other results; give experiment= another name"
            )
        return {**session, "id": str(session["id"])}

    def _runs(self, session: str, examples: Mapping[str, str], runs: Mapping[str, str]) -> set[str]:
        """Write the runs that are missing; ids of those that are there in the end."""
        there = self._stored(session, list(runs.values()))
        self._tally.skip(len(there))
        bodies = [
            run_record(row, runs[row.example.id], session, examples[row.example.id])
            for row in self._results.rows
            if runs[row.example.id] not in there
        ]
        before = self._tally.failed
        taken = self._in_batches(
            "POST", "/runs/batch", bodies, lambda batch: {"post": batch, "patch": []}, count=False
        )
        missing = {body["id"] for body in taken}
        ends = time.monotonic() + self._server.timeout
        pause = 0.1
        while missing:
            found = self._stored(session, sorted(missing))
            self._tally.wrote(len(found))
            there |= found
            missing -= found
            if not missing:
                break
            if time.monotonic() + pause > ends:
                raise TrackingError(
                    f"LangSmith at {self._server.url} took {len(bodies) - (self._tally.failed - before)} runs, but "
                    f"{len(missing)} of them are not there after {self._server.timeout:g} s; "
                    "raise timeout, or write again later: what is there is not written twice"
                )
            time.sleep(pause)
            pause = min(2.0, 2 * pause)
        return there

    def _stored(self, session: str, ids: list[str]) -> set[str]:
        found: set[str] = set()

        def query(batch: list[str]) -> None:
            body = {"session": [session], "id": batch, "select": ["id"], "limit": _PAGE}
            value = self._server.ask("POST", "/runs/query", body).value
            if not isinstance(value, dict) or not isinstance(value.get("runs"), list):
                raise self._server.wrong("answers a query for runs with something else")
            found.update(str(each["id"]) for each in value["runs"])

        self._server.each(query, content.batches(ids, _PAGE), self._width)
        return found & set(ids)

    def _feedback(self, session: str, runs: Mapping[str, str], rows: list[Row]) -> None:
        known: set[str] = set()

        def read(batch: list[str]) -> None:
            known.update(str(each["id"]) for each in self._pages("/feedback", {"run": batch}))

        self._server.each(
            read, content.batches([runs[row.example.id] for row in rows], _QUERY_AT_ONCE), self._width
        )
        bodies = []
        for row in rows:
            run = runs[row.example.id]
            for name, cell in row.cells.items():
                body = feedback_record(name, cell, run, session)
                if body["id"] in known:
                    self._tally.skip()
                else:
                    bodies.append(body)
        # a run that a query shows may still be unknown to the feedback for a moment
        self._each(bodies, lambda body: self._server.ask("POST", "/feedback", body, later=(404,)))

    def _each(self, bodies: list[dict[str, Any]], send: Callable[[dict[str, Any]], Any]) -> None:
        def one(body: dict[str, Any]) -> None:
            try:
                send(body)
            except Refused as error:
                if not self._skip:
                    raise
                self._tally.fail(str(error))
            else:
                self._tally.wrote()

        self._server.each(one, bodies, self._width)

    def _in_batches(
        self,
        method: str,
        path: str,
        bodies: list[dict[str, Any]],
        wrap: Callable[[list[dict[str, Any]]], Any],
        *,
        count: bool = True,
    ) -> list[dict[str, Any]]:
        """Send many at once; of a refused batch each alone, so that one bad entry does not take the others with it."""
        taken: list[dict[str, Any]] = []

        def send(batch: list[dict[str, Any]]) -> None:
            try:
                self._server.ask(method, path, wrap(batch), allow=(409,))
            except Refused as error:
                if len(batch) > 1:
                    for body in batch:
                        send([body])
                elif self._skip:
                    self._tally.fail(str(error))
                else:
                    raise
            else:
                taken.extend(batch)
                if count:
                    self._tally.wrote(len(batch))

        self._server.each(send, content.batches(bodies, _RUNS_AT_ONCE), self._width)
        return taken

    def _pages(self, path: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            value = self._server.ask("GET", path, params={**params, "limit": _PAGE, "offset": offset}).value
            if not isinstance(value, list):
                raise self._server.wrong(f"answers {path} with something else than a list")
            yield from value
            offset += len(value)
            if len(value) < _PAGE:
                return

    def _id_of(self, found: Any) -> str:
        if not isinstance(found, list) or not found or not isinstance(found[0], dict) or "id" not in found[0]:
            raise self._server.wrong("answers with something else than was asked for")
        return str(found[0]["id"])


def _page(api: str, session: Mapping[str, Any], dataset: str) -> str:
    if session.get("tenant_id") and api == _HOSTED:
        return f"https://smith.langchain.com/o/{session['tenant_id']}/datasets/{dataset}/compare?selectedSessions={session['id']}"
    return api


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _env(name: str) -> str | None:
    return os.environ.get(f"LANGSMITH_{name}") or os.environ.get(f"LANGCHAIN_{name}") or None
