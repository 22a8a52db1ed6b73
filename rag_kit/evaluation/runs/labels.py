"""Verdicts of people on the cells of a run, in a file of its folder, where a line is one verdict."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_kit.documents.files import AppendLog, read_log
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Labelled, Scale
from rag_kit.evaluation.runs.rows import Row, hash_input

LABELS = "labels.jsonl"
_WAIT = 10.0  # seconds for a lock, which is held while a line is written
_MAX_VALUE = 1e300  # of a verdict
Verdicts = dict[str, dict[str, float | None]]


@dataclass
class Labels:
    """People's verdicts by metric and example: a value; ``None`` where a person cannot tell.

    ``outdated`` counts those on answers or examples that have changed since; they are left out.
    """

    verdicts: Verdicts = field(default_factory=dict)
    outdated: int = 0
    #: Folder -> the verdicts that this object has read there or written.
    _stored: dict[Path, Verdicts] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, folder: Path, rows: Sequence[Row], scales: Mapping[str, Scale] = {}) -> Labels:
        """Read the verdicts on these rows; of several on one cell the last counts, and none on an earlier output.

        One that is not on its metric's scale (7 for .7, written by hand) is refused like what is no number.
        """
        labels, lines = cls(), list(read_log(folder / LABELS))
        keys = {row.example.id: hash_input(row.example, row.output) for row in rows} if lines else {}
        for number, line in lines:
            if line is None and number == lines[-1][0]:  # cut off by a kill
                continue
            record: dict[str, Any] = line or {}
            metric, example_id, key = (str(record.get(name) or "") for name in ("metric", "id", "key"))
            value = record.get("value", math.nan)  # None is a verdict, nan is refused below
            is_verdict = value is None or _is_on_scale(value, *scales.get(metric, (None, None)))
            if not (metric and example_id and key and is_verdict):
                raise InvalidInputError(
                    f"{LABELS}:{number} in {str(folder)!r} is damaged, or its value {value!r:.40} is not on the "
                    "scale of its metric; take the line out, and label that cell again"
                )
            if keys.get(example_id) == key:
                labels.verdicts.setdefault(metric, {})[example_id] = value
            else:
                labels.outdated += 1
        labels._stored[folder.resolve()] = {name: dict(values) for name, values in labels.verdicts.items()}
        return labels

    def save(self, folder: Path, rows: Sequence[Row]) -> None:
        """Append the verdicts given since the file was read; only its owner can read it.

        Verdicts that another process wrote meanwhile stay; its lock is waited for.
        """
        ids = {row.example.id for row in rows}
        stored_before = self._stored.setdefault(folder.resolve(), {})
        new = [verdict for verdict in _changed(self.verdicts, stored_before) if verdict[1] in ids]
        if not new:
            return
        with AppendLog(folder / LABELS, wait=_WAIT) as log:
            stored_now = Labels.load(folder, rows).verdicts  # maybe with verdicts of others
            missing = [verdict for verdict in _changed(self.verdicts, stored_now) if verdict in new]
            keys = {row.example.id: hash_input(row.example, row.output) for row in rows}
            log.append(
                {"metric": metric, "id": example_id, "value": value, "key": keys[example_id]}
                for metric, example_id, value in missing
            )
        for metric, example_id, value in new:
            stored_before.setdefault(metric, {})[example_id] = value

    def notes(self, scores: Mapping[str, tuple[str, Mapping[str, float], Labelled | None]]) -> list[str]:
        """Describe the labels of each metric; ``scores`` has its source, its values, and its mean with labels."""
        notes = []
        for metric, (source, values, estimate) in scores.items():
            verdicts = {key: value for key, value in self.verdicts.get(metric, {}).items() if key in values}
            if not verdicts:
                continue
            unclear = sum(value is None for value in verdicts.values())
            too_few = f"{len(verdicts) - unclear} labels, and from 10 on an interval"
            mean = f"{metric}: {source} {sum(values.values()) / len(values):.3f}"
            notes.append(labelled_line(mean, estimate or too_few, verdicts, unclear, values))
        if self.outdated:
            notes.append(f"{self.outdated} labels are of answers that have changed since, and are left out.")
        return notes


def _changed(verdicts: Verdicts, stored: Verdicts) -> list[tuple[str, str, float | None]]:
    """Return (metric, id of the example, value) of the verdicts that are not stored, or with another value."""
    absent = object()  # None is a verdict
    changed = []
    for metric, values in verdicts.items():
        for example_id, value in values.items():
            if stored.get(metric, {}).get(example_id, absent) != value:
                changed.append((metric, example_id, value))
    return changed


def _is_on_scale(value: Any, low: float | None, high: float | None) -> bool:
    least = -_MAX_VALUE if low is None else low
    greatest = _MAX_VALUE if high is None else high
    return isinstance(value, int | float) and least <= value <= greatest


def labelled_line(
    mean: str, estimate: object, labelled: Collection[str], unclear: int, scored: Iterable[str]
) -> str:
    """Describe a mean beside its estimate from labels: some may be unclear, or be no random sample of the scored."""
    parts = [mean, str(estimate)]
    if unclear:
        parts.append(f"it says nothing of answers like the {unclear} of which people could not tell")
    if set(labelled) != set(draw_order(scored)[: len(labelled)]):
        parts.append("it holds if the labels are a random sample, as rag-kit label draws one")
    return f"{'; '.join(parts)}."


def draw_order(ids: Iterable[str]) -> list[str]:
    """Order ids at random, the same for every run over them: the first n are a random sample."""
    return sorted(ids, key=lambda i: hashlib.sha256(f"label {i}".encode("utf-8", "surrogatepass")).digest())
