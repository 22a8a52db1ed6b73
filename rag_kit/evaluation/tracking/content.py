"""What is written of results, whichever tracker it goes to: plain JSON that any store can hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rag_kit._redact import redact
from rag_kit.concurrency import fan_out_map
from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row, clean, digest

#: Metadata by which results are found again, and known to be complete.
FINGERPRINT, STATE = "rag_kit.fingerprint", "rag_kit.state"
_MAX_NAME = 200
_AT_ONCE = 8
_counting = threading.Lock()


@dataclass
class Tracked:
    """What was written to a tracker.

    Args:
        tool: ``"langsmith"``, ``"mlflow"`` or ``"phoenix"``.
        url: Where people find it; no key in it.
        run_id: The tracker's id of the experiment (LangSmith, Phoenix) or of the run (MLflow).
        written: Entries that were missing or other: examples, runs and scores; with MLflow params, metrics, files.
    """

    tool: str
    url: str
    run_id: str = ""
    written: int = 0


class Upload:
    """Results made ready: names, a fingerprint, metadata without keys, each row as plain JSON."""

    def __init__(self, results: Results, dataset: str | None, experiment: str | None) -> None:
        manifest, summary = storable(clean(results.manifest)), results.summary()
        described = manifest["dataset"] if isinstance(manifest.get("dataset"), dict) else {}
        asked = described.get("fingerprint") or digest([row.example.to_json() for row in results.rows])
        self.results, self.rows, self.chosen = results, [_record(row) for row in results.rows], experiment
        self.dataset = (
            dataset or str(described.get("name") or f"rag-kit-{str(asked)[:8]}")[:_MAX_NAME].strip()
        )
        self.pipeline = storable(results.name)[:_MAX_NAME].strip()
        metrics = [each for each in manifest.get("metrics") or () if isinstance(each, dict)]
        self.judged = {each.get("name") for each in metrics if each.get("asks_judge")}
        # what the run took and when it ran is no part of it
        content = [{name: value for name, value in record.items() if name != "usage"} for record in self.rows]
        self.fingerprint = digest([results.name, list(results.metrics), content])
        self.experiment = experiment or f"{self.pipeline}-{self.fingerprint[:8]}"
        numbers = {storable(k): {**each.to_json(), "coverage": each.coverage} for k, each in summary.items()}
        self.metadata = {**manifest, "summary": numbers, FINGERPRINT: self.fingerprint}

    def write_rows(self, write: Callable[[dict[str, Any]], int], tracked: Tracked) -> None:
        """Write rows side by side; ``write`` returns how many entries of a row were missing."""

        def count(record: dict[str, Any]) -> None:
            written = write(record)
            with _counting:
                tracked.written += written

        fan_out_map(count, self.rows, max_concurrency=_AT_ONCE)

    def check_owner(self, fingerprint: Any) -> None:
        """See that the experiment of this name has these results."""
        if fingerprint != self.fingerprint:
            raise InvalidInputError(
                f"{self.experiment!r:.120} has other results; give experiment= another name"
            )


def _record(row: Row) -> dict[str, Any]:
    """A row as plain JSON; its key is the example's id, and two that differ stay two."""
    example, output, key = row.example.to_json(), row.output.to_json(), storable(row.example.id)
    for each in output.get("passages", ()):
        del each["metadata"], each["provenance"]
    kept = ("answer", "passages", "status", "citations", "queries", "notes")
    return dict(storable({
        "key": key if key == row.example.id else f"{key}-{digest(row.example.id)[:8]}",
        "asked": {name: example.pop(name) for name in ("question", "history") if name in example},
        "about": {name: example.pop(name) for name in ("id", "tags", "metadata") if name in example},
        "gold": example,
        "output": {name: output[name] for name in kept if name in output},
        "error": redact(row.output.error or "") or None,
        "scores": {name: {"value": cell.value, "status": cell.status, "reason": redact(cell.reason) or None}
                   for name, cell in row.cells.items()},
        "usage": {name: getattr(row.output, name) for name in ("seconds", "calls", "tokens")},
    }))  # fmt: skip


def storable(value: Any) -> Any:
    """Plain JSON without what databases refuse: NUL, and halves of surrogate pairs.

    Example:
        >>> storable({"a": "x\\x00y", "b": ["\\ud800"]})
        {'a': 'x\ufffdy', 'b': ['\ufffd']}
    """
    value = to_plain(value)
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [storable(item) for item in value]
    return {storable(k): storable(v) for k, v in value.items()} if isinstance(value, dict) else value
