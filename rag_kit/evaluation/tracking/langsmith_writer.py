"""Results as LangSmith's records, and the requests that write those which are missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation.runs.results import Row
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.answers import Part
from rag_kit.evaluation.tracking.http import Refused
from rag_kit.evaluation.tracking.langsmith_records import differs, feedback_record, record_id, run_record
from rag_kit.evaluation.tracking.writing import Writer

HOSTED = "https://api.smith.langchain.com"
_PAGE = 100
_RUNS_AT_ONCE = 20
_QUERY_AT_ONCE = 25


class LangSmithWriter(Writer):
    """Writes results; see `log_to_langsmith`."""

    def write(self, dataset: str, experiment: str | None) -> None:
        """Write what is missing.

        Args:
            dataset: Its name.
            experiment: Its name; ``None``: the pipeline's, with a mark of the content.

        Raises:
            TrackingError: If LangSmith refuses, or answers what cannot be understood.
            InvalidInputError: If the experiment's name belongs to other results.
        """
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
            self._server.ask("PATCH", f"/sessions/{quote(session['id'], safe='')}", {"end_time": _now()})

    def _dataset(self, name: str) -> str:
        body = {"name": name, "data_type": "kv", "extra": {"source": "rag-kit"}}
        return self._found_or_made("/datasets", body).part("id").id()

    def _found_or_made(self, path: str, body: Mapping[str, Any]) -> Part:
        params = {"name": body["name"], "limit": 1}
        found = self._server.ask("GET", path, params=params).whole.items()
        if found:
            return found[0]
        answer = self._server.ask("POST", path, body, allow=(409,))
        if answer.status != 409:
            return answer.whole
        # made by somebody else meanwhile, or by a request whose answer was lost
        found = self._server.ask("GET", path, params=params).whole.items()
        if not found:
            raise answer.complain("what it says is there cannot be found by its name")
        return found[0]

    def _examples(self, dataset: str, ids: Mapping[str, str]) -> None:
        known = {
            each.part("id").text(): each.fields() for each in self._pages("/examples", {"dataset": dataset})
        }
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
        body = {
            "id": record_id(dataset, name, mark), "name": name, "reference_dataset_id": dataset,
            "start_time": _now(), "extra": {"metadata": content.run_metadata(self._results, mark)},
        }  # fmt: skip
        session = self._found_or_made("/sessions", body)
        session_id, of = session.part("id").id(), session.find("reference_dataset_id")  # traces are of none
        extra = session.find("extra")
        metadata = extra.find("metadata") if extra else None
        known = metadata.fields() if metadata else {}
        if known.get(content.FINGERPRINT) != mark or of is None or of.value != dataset:
            raise InvalidInputError(
                f"LangSmith has an experiment {name!r:.120} of other results; give experiment= another name"
            )
        return {**session.fields(), "id": session_id}

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
            there = self._server.ask("POST", "/runs/query", body).whole.part("runs").items()
            found.update(each.part("id").text() for each in there)

        self._server.each(query, content.batches(ids, _PAGE), self._width)
        return found & set(ids)

    def _feedback(self, session: str, runs: Mapping[str, str], rows: list[Row]) -> None:
        known: set[str] = set()

        def read(batch: list[str]) -> None:
            known.update(each.part("id").text() for each in self._pages("/feedback", {"run": batch}))

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
                else:
                    self._refused(error)
            else:
                taken.extend(batch)
                if count:
                    self._tally.wrote(len(batch))

        self._server.each(send, content.batches(bodies, _RUNS_AT_ONCE), self._width)
        return taken

    def _pages(self, path: str, params: Mapping[str, Any]) -> Iterator[Part]:
        offset, before = 0, None
        while True:
            answer = self._server.ask("GET", path, params={**params, "limit": _PAGE, "offset": offset})
            items = answer.whole.items()
            if items and answer.value == before:
                raise answer.complain("the answer is the page before once more")
            yield from items
            before = answer.value
            offset += len(items)
            if len(items) < _PAGE:
                return


def _page(api: str, session: Mapping[str, Any], dataset: str) -> str:
    if session.get("tenant_id") and api == HOSTED:
        return f"https://smith.langchain.com/o/{session['tenant_id']}/datasets/{dataset}/compare?selectedSessions={session['id']}"
    return api


def _now() -> str:
    return datetime.now(UTC).isoformat()
