"""Do the citations of an answer hold, and is everything cited?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.text import fold
from rag_kit.text.citations import check_citations, is_declined
from rag_kit.text.citations.statements import MAX_STATEMENTS, statements

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

#: ``supported``: a cited passage says it; ``unsupported``: it is cited, and no cited passage says it;
#: ``undecided``: words do not tell, as where its passage is in another language;
#: ``ungrounded``: it says of itself that it rests on no passage; ``missing``: it has no citation and does not say so.
Kind = Literal["supported", "unsupported", "undecided", "ungrounded", "missing"]
KINDS: tuple[Kind, ...] = ("supported", "unsupported", "undecided", "ungrounded", "missing")
#: What the value is: F1 of precision and recall, or one of them.
What = Literal["f1", "precision", "recall"]

_NAMES: dict[What, str] = {
    "f1": "ours_citations",
    "precision": "ours_citation_precision",
    "recall": "ours_citation_recall",
}
_SHOWN = 50
_SOURCE = r"(?:documents?|passages?|sources?|texts?|context|material)"
_DECLARED = re.compile(
    r"\b(?:general|common|background|my own|own) knowledge\b|\bas far as i know\b|\b(?:ungrounded|unsourced)\b"
    rf"|\b(?:without|no) (?:a |any )?(?:source|citation)\b|\bnot (?:based on|taken from|from|in) (?:the |any |these "
    rf"|those |your )?(?:\w+ )?{_SOURCE}\b|\b{_SOURCE} (?:do|does) not (?:say|tell|mention|state|cover)\b"
    r"|据我所知|常识|(?:没有|无|缺乏)(?:出处|来源|依据)|(?:不是|并非|不|没有)(?:出自|来自|基于|依据)[^。！？]{0,8}"
    r"(?:文档|资料|段落|原文|材料)|(?:文档|资料|段落|原文|材料|文中)[^。！？]{0,4}(?:没有|未|并未)(?:说|提|写|给出)"
)


@dataclass(frozen=True)
class Checked:
    """One statement of an answer, with what becomes of its citations.

    Attributes:
        text: The statement, without marks.
        kind: See `Kind`.
        held: Cited number -> whether that passage supports the statement; without those that are undecided.
    """

    text: str
    kind: Kind
    held: dict[int, bool]


def declared(statement: str) -> bool:
    """Whether a statement without a citation says of itself that no passage is behind it.

    Example:
        >>> declared("The documents do not say who built it."), declared("据我所知，它建于 1900 年。")
        (True, True)
        >>> declared("It is red.")
        False
    """
    return is_declined(statement) or _DECLARED.search(fold(statement)) is not None


class Citations(Metric):
    """How well an answer is cited, without a model.

    - precision: share of the citations whose passage supports the statement that they stand at; undefined for an
      answer without one.
    - recall: share of the statements that a cited passage supports, of those that do not say themselves that they
      rest on none.
    - F1: of the two; 0 for an answer that states something and cites nothing that holds.

    The details count the statements by kind: ``supported``, ``unsupported``, ``undecided`` (words do not
    tell, as in two languages; left out of both shares), ``ungrounded`` (declared so) and ``missing``. An answer that
    declines has nothing to cite: undefined. Whether a passage supports a statement is decided by words,
    numbers, names and negations (`rag_kit.text.citations.check_citations`): a right statement in quite other
    words counts as unsupported. `JudgedCitations` asks the judge instead. Precision and recall are those of
    ALCE (Gao et al., 2023) with that check in place of an entailment model.

    Args:
        what: ``"f1"``, ``"precision"`` or ``"recall"``.

    Raises:
        InvalidInputError: If it is none of these.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output, Passage
        >>> output = Output(answer="The Rhine is 1,230 km long [1]. It is blue.",
        ...                 passages=(Passage("a", "The Rhine is 1,230 km long."),))
        >>> cell = asyncio.run(Citations("recall").measure(Example("q", "?"), output))
        >>> cell.value, cell.details["missing"]
        (0.5, 1)
    """

    source: Source = "ours"
    stage: Stage = "generation"
    output_needs = frozenset({"answer", "passages"})

    def __init__(self, what: What = "f1") -> None:
        if what not in _NAMES:
            raise InvalidInputError(f"what is {what!r}; allowed are {', '.join(_NAMES)}")
        self.what = what
        self.name = _NAMES[what]

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The value; the details hold the counts, both shares and the statements."""
        answer = output.answer or ""
        if output.status in ("declined", "refused", "clarify") or is_declined(answer):
            return Cell.undefined("it is no answer: there is nothing to cite")
        found = await self.check(example, output, judge)
        if not found:
            return Cell.undefined("the answer holds no statement")
        return self._cell(found)

    async def check(self, example: Example, output: Output, judge: Judge | None) -> list[Checked]:
        """Each statement of the answer, checked by words."""
        answer = output.answer or ""
        found = check_citations(answer, output.contexts)
        return sorted_out(answer, _by_statement(found.citations, answer), unsourced(output))

    def settings(self) -> dict[str, Any]:
        """What the value is, and who decides what supports a statement."""
        return {"what": self.what, "by": "words"}

    def _cell(self, found: Sequence[Checked]) -> Cell:
        kinds = Counter(one.kind for one in found)
        verdicts = [held for one in found for held in one.held.values()]
        wanted = len(found) - kinds["ungrounded"] - kinds["undecided"]
        precision = sum(verdicts) / len(verdicts) if verdicts else None
        recall = kinds["supported"] / wanted if wanted else None
        counts: dict[str, int] = {kind: kinds[kind] for kind in KINDS}
        details: dict[str, Any] = {
            **counts, "citations": len(verdicts), "precision": precision, "recall": recall,
            "statements": [asdict(one) for one in found[:_SHOWN]],
        }  # fmt: skip
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        if recall is None:
            return Cell.undefined("every statement is undecided or declared to rest on no passage", **details)
        if self.what == "precision":
            if precision is None:
                return Cell.undefined("the answer cites nothing", **details)
            return Cell.ok(precision, said, **details)
        if self.what == "recall":
            return Cell.ok(recall, said, **details)
        both = (precision or 0.0) + recall
        return Cell.ok(2 * (precision or 0.0) * recall / both if both else 0.0, said, **details)


def unsourced(output: Output) -> bool:
    """Whether the pipeline itself declares that its answer rests on no passage."""
    return output.status == "unsourced"


def sorted_out(answer: str, held: Sequence[dict[int, bool]], all_declared: bool) -> list[Checked]:
    """Each statement with its kind; ``held`` has one entry a statement."""
    found = []
    for statement, verdicts in zip(statements(answer), held, strict=True):
        kind: Kind
        if statement.numbers:
            kind = "supported" if any(verdicts.values()) else "unsupported" if verdicts else "undecided"
        else:
            kind = "ungrounded" if all_declared or declared(statement.text) else "missing"
        found.append(Checked(statement.text, kind, verdicts))
    return found[:MAX_STATEMENTS]


def _by_statement(citations: Sequence[Any], answer: str) -> list[dict[int, bool]]:
    """The verdicts of a report, which has one entry for each statement and number in order, by statement."""
    left: Iterator[Any] = iter(citations)
    found = [[(number, next(left).status) for number in one.numbers] for one in statements(answer)]
    return [
        {number: status == "supported" for number, status in one if status != "undecided"} for one in found
    ]


def citations(name: str) -> Metric:
    """``ours_citations``, ``ours_citation_precision`` or ``ours_citation_recall``."""
    return Citations(next(what for what, known in _NAMES.items() if known == name))
