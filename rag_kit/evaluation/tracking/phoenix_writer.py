"""Results as Phoenix's records, and the requests that write those which are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.runs.results import Results, Row
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.answers import Answer, Part
from rag_kit.evaluation.tracking.http import Server
from rag_kit.evaluation.tracking.tracked import OnError, Tally
from rag_kit.evaluation.tracking.writing import Writer

#: The first version whose datasets keep the ids of examples.
_FIRST_VERSION = (15, 0)
_EXAMPLES_AT_ONCE = 200
_PAGE = 100


class PhoenixWriter(Writer):
    """Writes results; see `log_to_phoenix`."""

    def __init__(
        self, server: Server, tally: Tally, results: Results, max_concurrency: int, on_error: OnError
    ) -> None:
        super().__init__(server, tally, results, max_concurrency, on_error)
        self._judged = {
            each["name"]
            for each in results.manifest.get("metrics", [])
            if isinstance(each, Mapping) and each.get("asks_judge") and "name" in each
        }

    def write(self, dataset: str, experiment: str | None) -> None:
        """Write what is missing.

        Args:
            dataset: Its name.
            experiment: Its name; ``None``: the pipeline's, with a mark of the content.

        Raises:
            TrackingError: If Phoenix refuses, is too old, or answers what cannot be understood.
            InvalidInputError: If the experiment's name belongs to other results.
        """
        mark = content.fingerprint(self._results)
        self._check_version(self._server.ask("GET", "/v1/datasets", params={"name": dataset, "limit": 1}))
        dataset_id, version = self._examples(dataset)
        nodes = self._nodes(dataset_id)
        self._tally.run_id = self._experiment(dataset_id, version, experiment, mark)
        self._tally.url = (
            f"{self._server.url}/datasets/{dataset_id}/compare?experimentId={self._tally.run_id}"
        )
        there, runs = self._runs(self._tally.run_id, nodes)
        self._evaluations(self._tally.run_id, there, runs)

    def _check_version(self, answer: Answer) -> None:
        text = answer.headers.get("x-phoenix-server-version", "")
        version = re.match(r"(\d{1,6})(?:\.(\d{1,6}))?", text, re.ASCII)
        if version and (int(version[1]), int(version[2] or 0)) < _FIRST_VERSION:
            raise TrackingError(
                f"Phoenix at {self._server.url} is version {version[0]}, whose datasets keep no ids of examples, so "
                "that writing twice would double them; use version 15 or newer"
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
            answer = self._server.ask("POST", "/v1/datasets/upload", body, params={"sync": "true"})
            data = answer.whole.part("data")
            dataset, new = data.part("dataset_id").id(), data.find("version_id")
            version = new.id() if new else version
            counts = [data.find(f"num_{kind}_examples") for kind in ("created", "updated")]
            wrote = min(sum(each.count() for each in counts if each), len(rows))
            self._tally.wrote(wrote)
            self._tally.skip(len(rows) - wrote)
        return dataset, version

    def _nodes(self, dataset: str) -> dict[str, str]:
        """Example id -> the id by which Phoenix's runs name it."""
        answer = self._server.ask("GET", f"/v1/datasets/{quote(dataset)}/examples")
        ids = {}
        for each in answer.whole.part("data").part("examples").items():
            key = each.part("id").text()
            ids[key] = (each.find("node_id") or each.part("id")).text()
        nodes = {row.example.id: ids.get(content.example_key(row.example), "") for row in self._results.rows}
        if lost := [name for name, node in nodes.items() if not node]:
            raise answer.complain(f"the example {lost[0]!r:.80} is missing that it has just taken")
        return nodes

    def _experiment(self, dataset: str, version: str | None, name: str | None, mark: str) -> str:
        """Id of the experiment, which is made if it is not there."""
        wanted = name or content.experiment_name(self._results, mark)
        path = f"/v1/datasets/{quote(dataset)}/experiments"
        for each in self._pages(path):
            if each.fields().get("name") == wanted:
                metadata = each.find("metadata")
                if metadata and metadata.fields().get(content.FINGERPRINT) == mark:
                    return each.part("id").id()
                raise InvalidInputError(
                    f"Phoenix has an experiment {wanted!r:.120} of other results; give experiment= another name"
                )
        body = {
            "name": wanted, "metadata": content.run_metadata(self._results, mark), "repetitions": 1,
            **({"version_id": version} if version else {}),
        }  # fmt: skip
        answer = self._server.ask("POST", path, body, again=False)  # a second one would be another
        return answer.whole.part("data").part("id").id()

    def _runs(self, experiment: str, nodes: Mapping[str, str]) -> tuple[set[str], dict[str, str]]:
        """Write the runs that are missing; ids of those that were there, and example id -> run id of all."""
        path = f"/v1/experiments/{quote(experiment)}/runs"
        known = self._known_runs(path)
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
            if answer.status != 409:
                runs[row.example.id] = answer.whole.part("data").part("id").id()
                return
            # the answer to a first attempt was lost, or another process writes them too
            again = self._known_runs(path).get(nodes[row.example.id])
            if again is None:
                raise answer.complain("the run that it says is there is not among those of the experiment")
            runs[row.example.id] = again

        missing = [row for row in self._results.rows if row.example.id not in runs]
        self._each(missing, send, lambda row: 1 + len(row.cells))
        return there, runs

    def _known_runs(self, path: str) -> dict[str, str]:
        """Id of an example -> id of its run."""
        return {each.part("dataset_example_id").text(): each.part("id").id() for each in self._pages(path)}

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
        self._each(bodies, lambda body: self._server.ask("POST", "/v1/experiment_evaluations", body))

    def _incomplete(self, experiment: str) -> dict[str, set[str]]:
        """Run id -> names of the evaluations that it lacks. (The evaluations themselves cannot be read by REST where
        an experiment's name is Chinese: Phoenix 20 puts it into a header and fails.)"""
        names = sorted({content.clean_text(name) for row in self._results.rows for name in row.cells})
        path = f"/v1/experiments/{quote(experiment)}/incomplete-evaluations"
        return {
            each.part("experiment_run").part("id").text(): {
                name.text() for name in each.part("evaluation_names").items()
            }
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

    def _pages(self, path: str, more: Mapping[str, Any] | None = None) -> Iterator[Part]:
        params: dict[str, Any] = {**(more or {}), "limit": _PAGE}
        seen = set()
        while True:
            answer = self._server.ask("GET", path, params=params)
            yield from answer.whole.part("data").items()
            cursor = answer.whole.find("next_cursor")
            if cursor is None or not cursor.value:
                return
            params["cursor"] = cursor.text()
            if params["cursor"] in seen:
                raise answer.complain("the answer points to a page that was there before")
            seen.add(params["cursor"])
