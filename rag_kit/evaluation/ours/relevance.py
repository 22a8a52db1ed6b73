"""How relevant is what came back, as the judge sees it: by sentences, and by graded passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_kit.concurrency import afan_out_map
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.ranking.metrics import retrieval_metrics
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output, Passage

MAX_SENTENCES = 400
"""Sentences looked at for one question; what follows is left out, and the reason says so."""

_BATCH = 40
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"#{1,6}\s")
_UMBRELA = re.compile(r"ours_umbrela(_ndcg)?(?:@([1-9]\d{0,2}))?")
_REASON = 300


class ContextRelevance(Metric):
    """Relevant sentences of the retrieved passages / all their sentences: 4 of 10 are 0.4.

    The judge chooses the relevant ones (prompt ``judge_sentences``), 40 sentences a call. Headings and lines without
    a word are no sentences. It is the measure that the first Ragas paper (Es et al., 2023) called context relevance;
    what Ragas ships under that name today are two grades of 0 to 2 of the whole context. It falls with every
    sentence that is there for nothing, so longer passages score lower: compare pipelines of like sizes.
    """

    source: Source = "ours"
    stage: Stage = "retrieval"
    output_needs = frozenset({"passages"})
    needs_judge: bool = True

    def __init__(self, name: str = "ours_context_relevance") -> None:
        self.name = name

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The share; undefined where nothing, or no sentence, came back."""
        found = [
            one.text
            for text in output.contexts
            for one in sentences(text)
            if _WORD.search(one.text) and not _HEADING.match(one.text)
        ]
        read = found[:MAX_SENTENCES]
        if not read:
            return Cell.undefined("nothing was retrieved that holds a sentence")

        async def chosen(start: int) -> list[str]:
            assert judge is not None
            batch = read[start : start + _BATCH]
            values = {"question": example.question, "passages": render_passages(batch), "count": len(batch)}
            given = (await judge.ask("judge_sentences", values)).sentences
            for each in given:
                if type(each) is not int or not 1 <= each <= len(batch):
                    raise ModelError(
                        f"the judge chose sentence {each!r:.40}; there are sentences 1 to {len(batch)}"
                    )
            return [batch[number - 1] for number in sorted(set(given))]

        parts = await afan_out_map(chosen, range(0, len(read), _BATCH))
        relevant = [text for part in parts.values for text in part]
        reason = f"{len(relevant)} of {len(read)} sentences are relevant"
        if len(found) > len(read):
            reason += f"; {len(found) - len(read)} more were not looked at"
        return Cell.ok(len(relevant) / len(read), reason, relevant=relevant, sentences=len(read))


class Umbrela(Metric):
    """The judge grades each passage from 0 to 3 (prompt ``judge_relevance``), one call a passage.

    0: nothing to do with the question; 1: related, answers nothing; 2: answers in part; 3: holds the answer. The
    scale and the way to decide are those of UMBRELA (Upadhyay et al., 2024), the prompt is this kit's own. The value
    is the mean grade of the first k passages, from 0 to 3, or the nDCG of their grades against the best order of the
    same passages: is the order right? What was not found, it does not know: only judgements of people, or of the
    pooled results of all pipelines, say that.

    Args:
        name: ``"ours_umbrela"`` or ``"ours_umbrela_ndcg"`` for 10 passages, or with ``@k`` behind it for another
            number of them.

    Raises:
        InvalidInputError: If it is none of these.
    """

    source: Source = "ours"
    stage: Stage = "retrieval"
    output_needs = frozenset({"passages"})
    needs_judge: bool = True

    def __init__(self, name: str = "ours_umbrela") -> None:
        match = _UMBRELA.fullmatch(name)
        if match is None:
            raise InvalidInputError(
                f"name is {name!r:.80}; give ours_umbrela@k or ours_umbrela_ndcg@k, k from 1 to 999"
            )
        self.name, self.k = name, int(match[2] or 10)
        self._ndcg = match[1] is not None
        self.high = 1.0 if self._ndcg else 3.0

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The value; the details hold each passage's grade and the judge's reason."""
        passages = (output.passages or ())[: self.k]
        if not passages:
            return Cell.undefined("nothing was retrieved: there is nothing to grade")

        async def grade(passage: Passage) -> tuple[int, str]:
            assert judge is not None
            values = {"question": example.question, "passages": render_passages([passage.text])}
            reply = await judge.ask("judge_relevance", values)
            return reply.grade, reply.reason[:_REASON]

        found = (await afan_out_map(grade, passages)).values
        grades = [given for given, _ in found]
        rows = [
            {"id": passage.id, "grade": given, "reason": why}
            for passage, (given, why) in zip(passages, found, strict=True)
        ]
        reason = f"grades {', '.join(map(str, grades))}"
        if self._ndcg and not any(grades):
            why = f"{reason}: no order of them is better than another"
            return Cell.undefined(why, grades=grades, passages=rows)
        value = _ndcg(grades) if self._ndcg else sum(grades) / len(grades)
        return Cell.ok(value, reason, grades=grades, passages=rows)


def _ndcg(grades: Sequence[int]) -> float:
    """The nDCG of graded passages against the best order of the same passages."""
    graded = {str(place): grade for place, grade in enumerate(grades)}
    return retrieval_metrics({"q": list(graded)}, {"q": graded}, ["ndcg"]).means()["ndcg"]
