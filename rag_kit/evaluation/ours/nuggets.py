"""Nugget recall: how many of the facts that a good answer holds does the answer hold?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from rag_kit.concurrency import afan_out_map
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.prompts import render_passages

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

#: Which nuggets count, and with which weight: the vital ones alone; all alike; all, an okay one with half a weight.
Which = Literal["vital", "all", "weighted"]
#: Where nuggets are taken from; ``auto`` takes the first of metadata, reference and reference_contexts that is there.
Origin = Literal["auto", "reference", "reference_contexts", "passages"]

_MOST = 20
_BATCH = 10
_CREDIT = {"full": 1.0, "partial": 0.5, "none": 0.0}
_NAMES: dict[str, tuple[Which, bool]] = {
    "ours_nugget_recall": ("vital", True),
    "ours_nugget_recall_all": ("all", True),
    "ours_nugget_recall_weighted": ("weighted", True),
    "ours_nugget_recall_partial": ("all", False),
}


@dataclass(frozen=True)
class _Nugget:
    text: str
    vital: bool


class NuggetRecall(Metric):
    """Share of the nuggets that the answer holds, as TREC's RAG track scores answers (Pradeep et al., 2024).

    Nuggets are small facts, *vital* (a good answer must hold it) or *okay*. People may give them
    (``metadata["nuggets"]``: a list of texts, or of objects with ``text`` and ``importance``); else the judge takes
    them from the reference answer or the gold passages (prompt ``judge_nuggets``, one call, at most 20). Then it labels
    each of them as held fully, in part or not (prompt ``judge_nugget_support``, ten a call). The details hold all
    scores: ``vital_strict`` (the track's main one), ``vital``, ``all_strict``, ``all`` and ``weighted_strict``,
    ``weighted`` (an okay nugget weighs half); in the strict ones a part counts nothing, else a half.

    To compare pipelines, all must be measured by the same nuggets: give the judge a cache, or nuggets of people. With
    ``origin="passages"`` they come from what this pipeline itself retrieved: then it says how much of that
    reaches the answer, and is not comparable.

    Args:
        which: ``"vital"``, ``"all"`` or ``"weighted"``.
        strict: Whether a nugget held in part counts nothing; else a half.
        origin: ``"auto"``, ``"reference"``, ``"reference_contexts"`` or ``"passages"``.

    Raises:
        InvalidInputError: If a setting is none of these.
    """

    source: Source = "ours"
    stage: Stage = "end_to_end"
    needs_judge: bool = True

    def __init__(self, which: Which = "vital", *, strict: bool = True, origin: Origin = "auto") -> None:
        if which not in get_args(Which):
            raise InvalidInputError(f"which is {which!r}; allowed are {', '.join(get_args(Which))}")
        if origin not in get_args(Origin):
            raise InvalidInputError(f"origin is {origin!r}; allowed are {', '.join(get_args(Origin))}")
        self.which = which
        self.strict = bool(strict)
        self.origin = origin
        known = [name for name, settings in _NAMES.items() if settings == (which, self.strict)]
        self.name = known[0] if known else f"ours_nugget_recall_{which}_partial"
        if origin == "passages":
            self.output_needs = frozenset({"answer", "passages"})

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The share; undefined where there are no nuggets of the kind that counts."""
        assert judge is not None
        nuggets = _given(example) if self.origin == "auto" else None
        if nuggets is None:
            texts = self._texts(example, output)
            if not texts:
                return Cell.not_applicable(f"there is nothing to take nuggets from ({self.origin})")
            values = {"question": example.question, "passages": render_passages(texts), "count": _MOST}
            reply = await judge.ask("judge_nuggets", values)
            nuggets = [_Nugget(one.text, one.importance == "vital") for one in reply.nuggets[:_MOST]]
        if not nuggets:
            return Cell.undefined("the text that nuggets are taken from holds none")
        labels = await _labels(example.question, output.answer or "", nuggets, judge)
        scores = _scores(nuggets, labels)
        details: dict[str, Any] = {
            "scores": scores,
            "nuggets": [
                {"text": one.text, "importance": "vital" if one.vital else "okay", "support": label}
                for one, label in zip(nuggets, labels, strict=True)
            ],
        }
        value = scores[f"{self.which}_strict" if self.strict else self.which]
        held = sum(label == "full" for label in labels)
        if value is None:
            return Cell.undefined("none of the nuggets is vital", **details)
        return Cell.ok(value, f"{held} of {len(nuggets)} nuggets are in the answer", **details)

    def settings(self) -> dict[str, Any]:
        """What counts, and where nuggets come from."""
        return {"which": self.which, "strict": self.strict, "origin": self.origin, "most": _MOST}

    def _texts(self, example: Example, output: Output) -> Sequence[str]:
        if self.origin == "passages":
            return output.contexts
        if example.reference and self.origin in ("auto", "reference"):
            return [example.reference]
        return example.reference_contexts if self.origin in ("auto", "reference_contexts") else ()


async def _labels(question: str, answer: str, nuggets: Sequence[_Nugget], judge: Judge) -> list[str]:
    """The label of each nugget.

    Raises:
        ModelError: The judge left one out, or labelled one that there is not, or one in two ways.
    """

    async def part(start: int) -> list[str]:
        batch = [one.text for one in nuggets[start : start + _BATCH]]
        reply = await judge.ask(
            "judge_nugget_support",
            {
                "question": question, "answer": answer, "nuggets": render_passages(batch), "count": len(batch),
            },
        )  # fmt: skip
        found: dict[int, str] = {}
        for label in reply.labels:
            if found.setdefault(label.id, label.support) != label.support:
                raise ModelError(f"the judge labelled nugget {label.id} in two ways")
        if sorted(found) != list(range(1, len(batch) + 1)):
            raise ModelError(
                f"the judge labelled nuggets {sorted(found)}; there are nuggets 1 to {len(batch)}"
            )
        return [found[number] for number in sorted(found)]

    parts = await afan_out_map(part, range(0, len(nuggets), _BATCH))
    return [label for labels in parts.values for label in labels]


def _scores(nuggets: Sequence[_Nugget], labels: Sequence[str]) -> dict[str, float | None]:
    """All scores of the track; None for those of vital nuggets where there is none."""

    def mean(weights: Sequence[float], credit: Mapping[str, float]) -> float | None:
        total = sum(weights)
        held = sum(weight * credit[label] for weight, label in zip(weights, labels, strict=True))
        return held / total if total else None

    strict = {**_CREDIT, "partial": 0.0}
    weights = {
        "vital": [float(one.vital) for one in nuggets],
        "all": [1.0] * len(nuggets),
        "weighted": [1.0 if one.vital else 0.5 for one in nuggets],
    }
    return {
        f"{name}{suffix}": mean(each, credit)
        for name, each in weights.items()
        for suffix, credit in (("_strict", strict), ("", _CREDIT))
    }


def _given(example: Example) -> list[_Nugget] | None:
    """The nuggets that people gave; None where they gave none.

    Raises:
        InvalidInputError: They have another form.
    """
    given = example.metadata.get("nuggets")
    if given is None:
        return None
    nuggets = []
    for one in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        fields = {"text": one, "importance": "vital"} if isinstance(one, str) else one
        text = fields.get("text") if isinstance(fields, Mapping) else None
        importance = fields.get("importance", "vital") if isinstance(fields, Mapping) else None
        if not isinstance(text, str) or not text.strip() or importance not in ("vital", "okay"):
            raise InvalidInputError(
                f"example {example.id!r:.80}: a nugget is {one!r:.120}; give a text, or an object with text and "
                "importance (vital or okay)"
            )
        nuggets.append(_Nugget(text.strip(), importance == "vital"))
    return nuggets


def nugget_recall(name: str) -> Metric:
    """``ours_nugget_recall`` (vital, strict), or with ``_all``, ``_weighted`` or ``_partial`` behind it."""
    which, strict = _NAMES[name]
    return NuggetRecall(which, strict=strict)
