"""Citation precision and recall: do the cited passages support the answer, and is everything cited?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from rag_kit.concurrency import afan_out_map
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.prompts import render_passages
from rag_kit.text import fold
from rag_kit.text.citations.check import MAX_STATEMENTS, Statement, check_citations, statements
from rag_kit.text.citations.decline import is_declined

#: ``supported``: a cited passage says it; ``unsupported``: it is cited, and no cited passage says it;
#: ``undecided``: words do not tell, as where its passage is in another language;
#: ``ungrounded``: it says of itself that it rests on no passage; ``missing``: it has no citation and does not say so.
Kind = Literal["supported", "unsupported", "undecided", "ungrounded", "missing"]

_NAMES = {
    "ours_citations": "f1", "ours_citation_precision": "precision", "ours_citation_recall": "recall",
    "ours_citations_judged": "f1",
}  # fmt: skip
_MAX_DETAILS = 50
_SOURCE = r"(?:documents?|passages?|sources?|texts?|context|material)"
_DECLARED = re.compile(  # "as far as I know", "not in the documents", 据我所知
    r"\b(?:general|common|background|my own|own) knowledge\b|\bas far as i know\b|\b(?:ungrounded|unsourced)\b"
    rf"|\b(?:without|no) (?:a |any )?(?:source|citation)\b|\bnot (?:based on|taken from|from|in) (?:the |any |these "
    rf"|those |your )?(?:\w+ )?{_SOURCE}\b|\b{_SOURCE} (?:do|does) not (?:say|tell|mention|state|cover)\b"
    r"|据我所知|常识|(?:没有|无|缺乏)(?:出处|来源|依据)|(?:不是|并非|不|没有)(?:出自|来自|基于|依据)[^。！？]{0,8}"
    r"(?:文档|资料|段落|原文|材料)|(?:文档|资料|段落|原文|材料|文中)[^。！？]{0,4}(?:没有|未|并未)(?:说|提|写|给出)"
)


@dataclass(frozen=True)
class Checked:
    """One statement of an answer without its marks, with the verdict on each number that it cites."""

    text: str
    kind: Kind
    supports: dict[int, bool]  # without those that are undecided


def declared(statement: str) -> bool:
    """Tell whether a statement says of itself that it rests on no passage.

    Example:
        >>> declared("The documents do not say who built it."), declared("据我所知，它建于 1900 年。")
        (True, True)
        >>> declared("It is red.")
        False
    """
    return is_declined(statement) or _DECLARED.search(fold(statement)) is not None


class Citations(Metric):
    """How well an answer is cited, by words, or in ``ours_citations_judged`` by the judge (prompt ``judge_citation``).

    - precision: share of the citations whose passage supports their statement; undefined where there are none.
    - recall: share of the statements that a cited passage supports; those that say that they rest on none are left out.
    - F1: of the two; 0 for an answer that states something and cites nothing that supports it.

    The details count the statements by `Kind`; undecided ones are in neither share. An answer that declines has
    nothing to cite: undefined. Without a judge, words, numbers, names and negations decide whether a passage supports a
    statement (`rag_kit.text.citations.check.check_citations`): a right statement in quite other words counts as
    unsupported. The judge is asked once for each citation; a part is no support. Where none of several passages
    supports a statement alone, it is asked once more for all of them. Precision and recall are those of ALCE (Gao et
    al., 2023), with that check for an entailment model.

    Args:
        name: ``ours_citations``, ``ours_citations_judged`` (both F1), ``ours_citation_precision``, ``..._recall``.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output, Passage
        >>> output = Output(answer="The Rhine is 1,230 km long [1]. It is blue.",
        ...                 passages=(Passage("a", "The Rhine is 1,230 km long."),))
        >>> cell = asyncio.run(Citations("ours_citation_recall").measure(Example("q", "?"), output))
        >>> cell.value, cell.details["missing"]
        (0.5, 1)
    """

    source, stage = "ours", "generation"
    output_needs = frozenset({"answer", "passages"})
    skips_declined = True

    def __init__(self, name: str = "ours_citations") -> None:
        if name not in _NAMES:
            raise InvalidInputError(f"name is {name!r:.80}; allowed are {', '.join(_NAMES)}")
        self.name, self.needs_judge, self._figure = name, name.endswith("_judged"), _NAMES[name]

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return the value; its details hold the counts, both shares and the statements."""
        answer = output.answer or ""
        if output.status in ("refused", "clarify"):
            return Cell.undefined("it is no answer: there is nothing to cite")
        claims = statements(answer, output.contexts)
        if not claims:
            return Cell.undefined("the answer holds no statement")
        if judge is not None and self.needs_judge:
            verdicts = await _ask_judge(example.conversation, claims, output.contexts, judge)
        else:
            verdicts = _check_by_words(answer, claims, output.contexts)
        is_unsourced = output.status == "unsourced"
        pairs = list(zip(claims, verdicts, strict=True))[:MAX_STATEMENTS]
        return self._summarize([_classify_statement(*pair, is_unsourced) for pair in pairs])

    def _summarize(self, statements: Sequence[Checked]) -> Cell:
        """Make the cell of this metric (F1, precision or recall); its details hold the other figures."""
        kinds = Counter(statement.kind for statement in statements)
        verdicts = [verdict for statement in statements for verdict in statement.supports.values()]
        needing_support = len(statements) - kinds["ungrounded"] - kinds["undecided"]
        precision = sum(verdicts) / len(verdicts) if verdicts else None
        recall = kinds["supported"] / needing_support if needing_support else None
        counts: dict[str, int] = {kind: kinds[kind] for kind in get_args(Kind)}
        details: dict[str, Any] = {
            **counts, "citations": len(verdicts), "precision": precision, "recall": recall,
            "statements": [asdict(statement) for statement in statements[:_MAX_DETAILS]],
        }  # fmt: skip
        if recall is None:
            return Cell.undefined("every statement is undecided or declared to rest on no passage", **details)
        if self._figure == "precision" and precision is None:
            return Cell.undefined("the answer cites nothing", **details)
        precision = precision or 0.0
        f1 = 2 * precision * recall / (precision + recall or 1.0)  # 0 if both are
        values = {"f1": f1, "precision": precision, "recall": recall}
        reason = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        return Cell.ok(values[self._figure], reason, **details)


def _classify_statement(statement: Statement, supports: dict[int, bool], is_unsourced: bool) -> Checked:
    """Classify a statement by its citations and the verdicts on them; ``is_unsourced``: the whole answer has none."""
    kind: Kind
    if not statement.numbers:
        kind = "ungrounded" if is_unsourced or declared(statement.text) else "missing"
    elif not supports:
        kind = "undecided"
    else:
        kind = "supported" if any(supports.values()) else "unsupported"
    return Checked(statement.text, kind, supports)


def _check_by_words(answer: str, claims: Sequence[Statement], texts: list[str]) -> list[dict[int, bool]]:
    """Return for each statement: number cited -> whether that passage supports it; undecided ones are left out."""
    # the report has one entry for each statement and number, in order
    citations = iter(check_citations(answer, texts).citations)
    verdicts: list[dict[int, bool]] = []
    for claim in claims:
        statuses = {number: next(citations).status for number in claim.numbers}
        decided = {number: status for number, status in statuses.items() if status != "undecided"}
        verdicts.append({number: status == "supported" for number, status in decided.items()})
    return verdicts


async def _ask_judge(
    question: str, claims: Sequence[Statement], texts: list[str], judge: Judge
) -> list[dict[int, bool]]:
    """Return for each statement: number cited -> whether that passage supports it, by the judge."""

    async def supports(statement: str, passages: list[str]) -> bool:
        values = {"question": question, "passages": render_passages(passages), "statement": statement}
        verdict = await judge.ask("judge_citation", values)
        return bool(verdict.support == "full")

    async def judge_statement(statement: Statement) -> dict[int, bool]:
        valid = [number for number in statement.numbers if 1 <= number <= len(texts)]
        verdicts = dict.fromkeys(statement.numbers, False)
        for number in valid:
            verdicts[number] = await supports(statement.text, [texts[number - 1]])
        if len(valid) > 1 and not any(verdicts.values()):  # none alone: maybe all of them together
            together = await supports(statement.text, [texts[number - 1] for number in valid])
            verdicts.update(dict.fromkeys(valid, together))
        return verdicts

    return (await afan_out_map(judge_statement, claims)).values
