"""A set that a model wrote, with what became of the questions that are not in it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_kit.errors import NothingGeneratedError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.evaluation.sets.generating.filters import REASONS

_ADVICE = {
    "model_failed": "Name a model that can write JSON",
    "nothing_to_ask": "Give longer passages, of whole sentences with names and numbers, or another model",
    "one_passage_is_enough": 'Ask for kinds=["single_hop"], or give documents that speak of the same things',
    "wrong_language": 'Give language="auto", or documents in one language',
}


class GeneratedSet(EvaluationSet):
    """What `generate` gives: an `EvaluationSet`, and a count of what was dropped for what reason.

    Attributes:
        dropped: Reason -> how many questions; the reasons are explained by ``GeneratedSet.REASONS``.
        examples_dropped: Up to 200 of them: ``kind``, ``question``, ``reason``.
        asked: How many passages, or pairs of passages, the model was shown.
        stopped_by: Which cap ended the run before there were enough, ``"no more passages"``, or ``None``.
        usage: ``calls``, ``tokens`` and ``seconds`` of this run; what was taken from the file took none.
    """

    REASONS = REASONS

    def __init__(
        self,
        name: str,
        examples: Iterable[Example],
        *,
        corpus: Iterable[Passage] | None = None,
        dropped: Mapping[str, int] | None = None,
        examples_dropped: Sequence[Mapping[str, str]] = (),
        asked: int = 0,
        stopped_by: str | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, examples, corpus=corpus)
        self.dropped = {reason: (dropped or {}).get(reason, 0) for reason in REASONS}
        self.examples_dropped = tuple(examples_dropped)
        self.asked = asked
        self.stopped_by = stopped_by
        self.usage = dict(usage or {})

    def report(self) -> str:
        """How many questions were kept, how many were dropped and why; for people."""
        kinds = {kind: len(part) for kind, part in self.slices("type").items()}
        lines = [
            f"{len(self)} questions ({', '.join(f'{n} {kind}' for kind, n in kinds.items()) or 'none'}) "
            f"from {self.asked} times asking; {sum(self.dropped.values())} dropped"
        ]
        lines += [
            f"  {count:>5}  {reason}: {REASONS[reason]}" for reason, count in self.dropped.items() if count
        ]
        return "\n".join([*lines, *([f"ended early: {self.stopped_by}"] if self.stopped_by else [])])

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<pre>{html.escape(self.report())}</pre>"


def nothing_kept(result: GeneratedSet) -> NothingGeneratedError:
    """The error for a set without a question: what was dropped for which reason, and what to do."""
    counts = sorted(((n, reason) for reason, n in result.dropped.items() if n), reverse=True)
    reasons = "; ".join(f"{n} {reason} ({REASONS[reason]})" for n, reason in counts)
    example = next((each for each in result.examples_dropped if each["question"]), None)
    first = f" The first was {example['question']!r:.160} ({example['reason']})." if example else ""
    advice = _ADVICE.get(counts[0][1], "Give other documents, or another model")
    ended = f" Ended by: {result.stopped_by.rstrip('.')}." if result.stopped_by else ""
    return NothingGeneratedError(
        f"No question was kept of those written about {result.asked} passages. Dropped: {reasons}.{first}{ended} "
        f"{advice}.",
        dropped=result.dropped,
    )
