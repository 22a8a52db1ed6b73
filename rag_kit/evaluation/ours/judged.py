"""Nugget recall: the share of the vital facts that an answer holds, by the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_kit.concurrency import afan_out_map
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.prompts import render_passages

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

_MOST = 20
_NUGGETS = 10  # a call


class _Nugget(NamedTuple):
    text: str
    vital: bool


class NuggetRecall(Metric):
    """Share of the nuggets that the answer holds, as TREC's RAG track scores answers (Pradeep et al., 2024).

    Nuggets are small facts, *vital* (a good answer must hold it) or *okay*. People may give them
    (``metadata["nuggets"]``: a list of texts, or of objects with ``text`` and ``importance``); else the judge takes
    them from the reference answer, else from the gold passages (prompt ``judge_nuggets``, one call, at most 20). Then
    it labels each of them as stated fully, in part or not (prompt ``judge_nugget_support``, ten a call). The details
    hold all scores: ``vital_strict`` (the track's main one), ``vital``, ``all_strict`` and ``all``; in the strict ones
    a part counts nothing, else a half. To compare pipelines, all must be measured by the same nuggets: give the judge
    a cache, or nuggets of people.
    """

    source: Source = "ours"
    stage: Stage = "end_to_end"
    needs_judge: bool = True

    def __init__(self, name: str = "ours_nugget_recall") -> None:
        self.name = name

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The share; undefined where there are no nuggets of the kind that counts."""
        assert judge is not None
        nuggets = _given(example)
        if nuggets is None:
            texts = [example.reference] if example.reference else example.reference_contexts
            if not texts:
                return Cell.not_applicable("there is nothing to take nuggets from")
            values = {"question": example.question, "passages": render_passages(texts), "count": _MOST}
            reply = await judge.ask("judge_nuggets", values)
            nuggets = [_Nugget(one.text, one.importance == "vital") for one in reply.nuggets[:_MOST]]
        if not nuggets:
            return Cell.undefined("the text that nuggets are taken from holds none")
        labels = await _labels(example.question, output.answer or "", nuggets, judge)
        scores = _scores(nuggets, labels)
        rows = [
            {"text": one.text, "importance": "vital" if one.vital else "okay", "support": label}
            for one, label in zip(nuggets, labels, strict=True)
        ]
        value = scores["vital_strict"]
        if value is None:
            return Cell.undefined("none of the nuggets is vital", scores=scores, nuggets=rows)
        reason = f"{labels.count('full')} of {len(nuggets)} nuggets are in the answer"
        return Cell.ok(value, reason, scores=scores, nuggets=rows)


async def _labels(question: str, answer: str, nuggets: Sequence[_Nugget], judge: Judge) -> list[str]:
    """The label of each nugget; `ModelError` where the judge left one out, invented one, or gave one two labels."""

    async def part(start: int) -> list[str]:
        batch = [one.text for one in nuggets[start : start + _NUGGETS]]
        values = {
            "question": question, "answer": answer, "nuggets": render_passages(batch), "count": len(batch)
        }  # fmt: skip
        reply = await judge.ask("judge_nugget_support", values)
        given = sorted({(label.id, label.support) for label in reply.labels})
        if [number for number, _ in given] != list(range(1, len(batch) + 1)):
            raise ModelError(f"the judge gave the labels {given}; one each is due for 1 to {len(batch)}")
        return [label for _, label in given]

    parts = await afan_out_map(part, range(0, len(nuggets), _NUGGETS))
    return [label for labels in parts.values for label in labels]


def _scores(nuggets: Sequence[_Nugget], labels: Sequence[str]) -> dict[str, float | None]:
    """All scores; None for those of vital nuggets where there is none."""
    found: dict[str, float | None] = {}
    for name in ("vital", "all"):
        chosen = [label for one, label in zip(nuggets, labels, strict=True) if one.vital or name == "all"]
        for suffix, part in (("_strict", 0.0), ("", 0.5)):
            earned = chosen.count("full") + part * chosen.count("partial")
            found[f"{name}{suffix}"] = earned / len(chosen) if chosen else None
    return found


def _given(example: Example) -> list[_Nugget] | None:
    """The nuggets that people gave; None where they gave none."""
    given = example.metadata.get("nuggets")
    if given is None:
        return None
    nuggets = []
    for one in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        fields = {"text": one} if isinstance(one, str) else one if isinstance(one, Mapping) else {}
        text, importance = fields.get("text"), fields.get("importance", "vital")
        if not isinstance(text, str) or not text.strip() or importance not in ("vital", "okay"):
            raise InvalidInputError(
                f"example {example.id!r:.80}: a nugget is {one!r:.120}; give a text, or an object with text and "
                "importance (vital or okay)"
            )
        nuggets.append(_Nugget(text.strip(), importance == "vital"))
    return nuggets
