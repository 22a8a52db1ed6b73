"""Does each citation of an answer hold?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.citations.match import Source, Verdict, judge
from rag_kit.text.citations.statements import MAX_ANSWER, MAX_STATEMENTS, Statement, statements

CitationStatus = Literal["supported", "unsupported", "undecided", "missing_passage"]
ReportStatus = Literal["grounded", "flagged", "undecided", "uncited", "declined"]


@dataclass(frozen=True)
class Citation:
    """One statement of an answer with one of the passages that it cites.

    Attributes:
        number: The number in the brackets; passages count from 1.
        statement: The statement, without its citation marks.
        quote: The sentence or sentences of the passage that support it best, a verbatim span of the passage;
            None where there is no passage of that number.
        quote_start: Offset of the quote in the passage, in characters; None without a quote.
        quote_end: Offset of its end; ``passage[quote_start:quote_end] == quote``.
        status: ``"supported"``, ``"unsupported"``, ``"undecided"`` (words do not tell) or
            ``"missing_passage"``.
        score: Share of the statement that the passage holds, in [0, 1].
        reason: Why, in one short sentence.
    """

    number: int
    statement: str
    quote: str | None
    quote_start: int | None
    quote_end: int | None
    status: CitationStatus
    score: float
    reason: str


@dataclass(frozen=True)
class CitationReport:
    """All citations of an answer.

    Attributes:
        status: ``"declined"`` (the answer says that it is not in the documents), ``"flagged"`` (a citation does
            not hold), ``"undecided"`` (a citation could not be checked, and all others hold), ``"uncited"`` (all that
            is cited holds, but a statement has no citation) or ``"grounded"``.
        citations: One entry per pair of statement and cited number, in the order of the answer.
        uncited: The statements without a citation.
    """

    status: ReportStatus
    citations: tuple[Citation, ...] = ()
    uncited: tuple[str, ...] = ()


def check_citations(
    answer: str,
    passages: Sequence[str | Any],
    *,
    language: str | None = None,
    judged: Mapping[str, Literal["supported", "unsupported"]] | None = None,
) -> CitationReport:
    """Check every citation ``[n]`` of an answer against the passage that it names.

    A statement is supported where the passage says it: word for word, or with most of its words and with all of
    its numbers and names, the same negations and no opposites, and nothing that stands elsewhere in the passage
    in the place of something else. It is lexical: a statement that says the same in quite other words is
    reported as unsupported, and a false one may pass (`docs/benchmarks.md` has the figures). A statement in
    another language than its passage, and one that differs by a single word which the passage does not have, are
    undecided. Time is linear in the answer
    and in each cited passage; MAX_ANSWER characters and MAX_STATEMENTS statements of an answer are checked, and
    a longer one is flagged.

    Args:
        answer: The answer, with marks such as ``[1]``, ``[1, 2]`` or ``【1】``.
        passages: The texts of the passages, or LangChain documents; number n is ``passages[n - 1]``.
        judged: Statement -> what a language model says of it; it decides in place of the words.
        language: Of the answer, ``"en"`` or ``"zh"``: the language that reasons are given in; None: English.

    Returns:
        The report; see :class:`CitationReport`.

    Raises:
        InvalidInputError: The answer is no string, or the passages are no list of strings or documents.

    Example:
        >>> report = check_citations("The Rhine is 1,230 km long [1].", ["Rivers: The Rhine is 1,230 km long."])
        >>> report.status, report.citations[0].status
        ('grounded', 'supported')
        >>> check_citations("The Rhine is 1,320 km long [1].", ["The Rhine is 1,230 km long."]).citations[0].reason
        'A number differs from the passage.'
    """
    answer, passages = _answer(answer), _texts(passages)
    if is_declined(answer):
        return CitationReport("declined")
    reasons = _REASONS.get(language or "en", _REASONS["en"])
    sources: dict[int, Source] = {}
    citations: list[Citation] = []
    uncited: list[str] = []
    found = statements(answer)
    for statement in found:
        if not statement.numbers:
            uncited.append(statement.text)
            continue
        citations.extend(_cited(statement, passages, sources, reasons, judged or {}))
    status: ReportStatus = "grounded"
    statuses = {one.status for one in citations}
    if statuses & {"unsupported", "missing_passage"} or len(answer) > MAX_ANSWER:
        status = "flagged"
    elif "undecided" in statuses:
        status = "undecided"
    elif uncited or not citations or len(found) >= MAX_STATEMENTS:
        status = "uncited"
    return CitationReport(status, tuple(citations), tuple(uncited))


def _answer(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    advice = "; give its text, e.g. message.text" if hasattr(answer, "content") else ""
    raise InvalidInputError(f"answer is a {type(answer).__name__}; it must be a string{advice}.")


def _texts(passages: Any) -> list[str]:
    """The passages' texts, whether given as strings or as documents."""
    if isinstance(passages, (str, bytes)) or not isinstance(passages, Sequence):
        raise InvalidInputError(
            f"passages is a {type(passages).__name__}; give a list of strings or documents, in the order in "
            "which the answer numbers them from 1."
        )
    texts = []
    for number, passage in enumerate(passages, start=1):
        text = passage if isinstance(passage, str) else getattr(passage, "page_content", None)
        if not isinstance(text, str):
            raise InvalidInputError(
                f"passage {number} is a {type(passage).__name__}; each must be a string or a document."
            )
        texts.append(text)
    return texts


def _cited(
    statement: Statement,
    passages: Sequence[str],
    sources: dict[int, Source],
    reasons: dict[str, str],
    judged: Mapping[str, Literal["supported", "unsupported"]],
) -> list[Citation]:
    known = [number for number in statement.numbers if 1 <= number <= len(passages)]
    for number in known:
        if number not in sources:
            sources[number] = Source(passages[number - 1])
    verdicts = judge(statement.text, [sources[number] for number in known])
    by_number = dict(zip(known, verdicts, strict=True))
    said = judged.get(statement.text)
    return [
        _citation(number, statement, passages, by_number.get(number), said, reasons)
        for number in statement.numbers
    ]


def _citation(
    number: int,
    statement: Statement,
    passages: Sequence[str],
    verdict: Verdict | None,
    said: CitationStatus | None,
    reasons: dict[str, str],
) -> Citation:
    if verdict is None:
        reason = reasons["missing_passage"]
        return Citation(number, statement.text, None, None, None, "missing_passage", 0.0, reason)
    start, end = verdict.start, verdict.end
    quote = passages[number - 1][start:end]
    status, reason = said or verdict.status, reasons[said or verdict.reason]
    return Citation(number, statement.text, quote, start, end, status, round(verdict.score, 3), reason)


_REASONS = {
    "en": {
        "verbatim": "The passage says it word for word.",
        "covered": "The passage holds its words, numbers and names.",
        "thin": "The passage holds too few of its words.",
        "number": "A number differs from the passage.",
        "name": "A name differs from the passage.",
        "negation": "A negation was added or left out.",
        "opposite": "A word was turned into its opposite.",
        "order": "Names or numbers stand in another order than in the passage.",
        "changed": "Words were changed against the passage.",
        "empty": "There is no statement to check.",
        "language": "The passage is in another language.",
        "other": "A word stands where the passage has another one; they may mean the same.",
        "joined": "Its words stand in different places of the passage.",
        "supported": "The language model finds it in the passages.",
        "unsupported": "The language model does not find it in the passages.",
        "missing_passage": "There is no passage of that number.",
    },
    "zh": {
        "verbatim": "段落原文如此。",
        "covered": "段落包含其中的词语、数字和名称。",
        "thin": "段落里找到的词语太少。",
        "number": "数字与段落不符。",
        "name": "名称与段落不符。",
        "negation": "多了或少了否定词。",
        "opposite": "词语被换成了反义词。",
        "order": "名称或数字的顺序与段落不同。",
        "changed": "词语与段落不一致。",
        "empty": "没有可核对的论断。",
        "language": "段落使用另一种语言。",
        "other": "有一处用词与段落不同，意思可能相同。",
        "joined": "其中的词语分散在段落的不同位置。",
        "supported": "语言模型认为段落支持它。",
        "unsupported": "语言模型认为段落不支持它。",
        "missing_passage": "没有这个编号的段落。",
    },
}
