"""What is written of results, whichever tracker it goes to: plain JSON that any store can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from rag_kit._redact import redact
from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.keys import digest
from rag_kit.evaluation.runs.results import Results, Row

#: Under this name the fingerprint lies in the tracker's tags or metadata.
FINGERPRINT = "rag_kit.fingerprint"
_MAX_NAME = 200
_COST = ("calls", "tokens", "seconds")
_GOLD = ("reference", "answers", "reference_contexts", "relevant", "spans", "answerable")


def check_results(results: Any) -> Results:
    """See that there is something to write.

    Raises:
        InvalidInputError: If it is no `Results`, or has no rows.
    """
    if not isinstance(results, Results):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give what evaluate or Results.load returned"
        )
    if not results.rows:
        raise InvalidInputError("the results have no rows, so there is nothing to write; run evaluate first")
    return results


def fingerprint(results: Results) -> str:
    """A hash of the name, questions, outputs and scores. What the run took and when it ran are not part of it.

    Example:
        >>> row = Row(Example("q1", "Who?"), Output(answer="Ada."), {"exact_match": Cell.ok(1.0)})
        >>> fingerprint(Results("a", [row])) == fingerprint(Results("b", [row]))
        False
    """
    rows = [
        [
            row.example.to_json(),
            {name: value for name, value in row.output.to_json().items() if name not in _COST},
            {name: [cell.value, cell.status, cell.reason] for name, cell in row.cells.items()},
        ]
        for row in results.rows
    ]
    return digest([results.name, list(results.metrics), rows])


def dataset_name(results: Results) -> str:
    """The set's name; where it has none, one made of its content, so that every pipeline asked the same shares it."""
    described = results.manifest.get("dataset") or {}
    if described.get("name"):
        return clean_text(str(described["name"])[:_MAX_NAME])
    mark = described.get("fingerprint") or digest([row.example.to_json() for row in results.rows])
    return f"rag-kit-{str(mark)[:8]}"


def experiment_name(results: Results, mark: str) -> str:
    """Name of the pipeline, and a mark that other results of it do not share."""
    return clean_text(f"{results.name[:_MAX_NAME]}-{mark[:8]}")


def example_inputs(example: Example) -> dict[str, Any]:
    """What the pipeline is asked."""
    found: dict[str, Any] = {"question": example.question}
    if example.history:
        found["history"] = list(example.history)
    return _record(found)


def example_gold(example: Example) -> dict[str, Any]:
    """What is known of the right answer."""
    record = example.to_json()
    return _record({name: record[name] for name in _GOLD if name in record})


def example_metadata(example: Example) -> dict[str, Any]:
    """Id, tags and metadata of the example."""
    record = example.to_json()
    return _record({name: record[name] for name in ("id", "tags", "metadata") if name in record})


def example_key(example: Example) -> str:
    """The example's id, as a tracker can hold it; two that differ stay two."""
    cleaned = clean_text(example.id)
    return cleaned if cleaned == example.id else f"{cleaned}-{digest(example.id)[:8]}"


def run_output(output: Output) -> dict[str, Any]:
    """Answer, passages (id and text, best first), and what else the pipeline says; an error is written apart."""
    record = output.to_json()
    found = {"answer": output.answer}
    if output.passages is not None:
        found["passages"] = cast("Any", [{"id": each.id, "text": each.text} for each in output.passages])
    found |= {name: record[name] for name in ("status", "citations", "queries", "notes") if name in record}
    return _record(found)


def error_text(row: Row) -> str | None:
    """Why the pipeline gave nothing."""
    return None if row.output.error is None else clean_text(redact(row.output.error))


def reason_text(cell: Cell) -> str:
    """Why a score is what it is, or why there is none."""
    return clean_text(redact(cell.reason))


def run_metadata(results: Results, mark: str) -> dict[str, Any]:
    """What an experiment is told of the run: settings, versions, the summary of each metric; no key."""
    from rag_kit.evaluation.runs.manifest import clean

    manifest = results.manifest
    found: dict[str, Any] = {FINGERPRINT: mark, "pipeline": results.name, "metrics": list(results.metrics)}
    found |= {
        name: manifest[name]
        for name in ("created", "started", "ended", "status", "settings", "judge", "versions", "commit")
        if manifest.get(name) is not None
    }
    found["summary"] = {
        name: {**each.to_json(), "coverage": each.coverage} for name, each in results.summary().items()
    }
    return _record(clean(found))


def storable(value: Any) -> Any:
    """Plain JSON without what databases refuse: NUL, and halves of surrogate pairs.

    Example:
        >>> storable({"a": "x\\x00y", "b": ["\\ud800"]})
        {'a': 'x\ufffdy', 'b': ['\ufffd']}
    """
    return _storable(to_plain(value))


def _record(value: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", storable(value))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def clean_text(text: str) -> str:
    """A text without NUL and lone surrogates; each becomes U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def batches(items: Iterable[Any], count: int) -> list[list[Any]]:
    """Lists of at most so many.

    Example:
        >>> batches("abc", 2)
        [['a', 'b'], ['c']]
    """
    listed = list(items)
    return [listed[start : start + count] for start in range(0, len(listed), count)]
