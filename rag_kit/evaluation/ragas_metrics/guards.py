"""Known faults of Ragas 0.4.3, and what is done about each: one table, one line a class.

Whatever is not named here has the value that Ragas gives. For every class: NaN is ``undefined``, never a number; a
failure of the judge that Ragas swallows is an ``error``; and a reply that `reply_fault` finds wrong is asked for once
more, then it is an ``error`` too (Ragas would count a verdict of 2 as 2, and divide 2 verdicts on 4 statements by 2).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.text.citations import is_declined

NO_PASSAGES = "no passage was retrieved"
_MOST = 200_000
_MOST_CELLS = 10_000_000  # of ROUGE-L's table of words, which Python fills in 5 seconds
_WORDS = re.compile(r"[a-z0-9]+")
_BINARY = ("verdict", "attributed", "noncommittal")

#: What a metric is given -> a cell where there is nothing to compute; ``None``: Ragas computes.
Before = Callable[[Mapping[str, Any]], "Cell | None"]


@dataclass(frozen=True)
class Guard:
    """What is done about one class.

    Attributes:
        before: Sees what Ragas is about to be given.
        after: Sees the judge's replies; gives a reason why there is no value after all.
        remark: Says what Ragas gets wrong about these texts, beside the value that it gives.
    """

    before: Before | None = None
    after: Callable[[Sequence[Any]], str | None] | None = None
    remark: Callable[[Mapping[str, Any]], str] | None = None


def reply_fault(data: Any, reply: Any, scores: Sequence[int] = ()) -> str | None:
    """What makes a reply unusable for Ragas's sums; ``None`` if nothing does.

    Args:
        data: The input of the prompt, if it is known.
        reply: The reply, which has the form that Ragas asked for.
        scores: The scores of a rubric.

    Example:
        >>> from types import SimpleNamespace as Fields
        >>> reply_fault(Fields(statements=["a", "b"]), Fields(statements=[Fields(verdict=1)]))
        'it gave 1 verdicts for 2 statements'
        >>> reply_fault(None, Fields(verdict=2))
        'it gave the verdict 2; 0 and 1 are allowed'
    """

    def size(owner: Any, *names: str) -> int | None:
        lists = [getattr(owner, name, None) for name in names]
        return sum(map(len, lists)) if all(isinstance(each, list) for each in lists) else None  # type: ignore[arg-type]

    for asked, given, what in (
        ("statements", ("statements",), "verdicts for {} statements"),
        ("topics", ("classifications",), "classifications of {} topics"),
        ("questions", ("answers",), "answers to {} questions"),
        ("answer", ("TP", "FP"), "places for {} statements of the answer"),
    ):
        wanted, got = size(data, asked), size(reply, *given)
        if (
            wanted is not None
            and got is not None
            and wanted != got
            and not (asked == "answer" and got > wanted)
        ):
            return f"it gave {got} {what.format(wanted)}"
    lists = [value for value in vars(reply).values() if isinstance(value, list)]
    for one in (reply, *(item for items in lists for item in items)):
        for name in _BINARY:
            if getattr(one, name, 0) not in (0, 1, "0", "1"):
                return f"it gave the {name} {getattr(one, name)!r:.40}; 0 and 1 are allowed"
    if not str(getattr(reply, "question", "?")).strip() and not getattr(reply, "noncommittal", 1):
        return "it gave an empty question"
    rating, score = getattr(reply, "rating", None), getattr(reply, "score", None)
    allowed = (0, 2, 4) if hasattr(data, "reference_answer") else (0, 1, 2)
    if rating is not None and rating not in allowed:
        return f"it gave the rating {rating!r:.40}; allowed are {', '.join(map(str, allowed))}"
    if score is not None and scores and score not in scores:
        return f"it gave the score {score!r:.40}; the scale has {', '.join(map(str, scores))}"
    return None


def _zero(given: Mapping[str, Any]) -> Cell | None:
    return None if given["retrieved_contexts"] else Cell.ok(0.0, NO_PASSAGES)


def _unsupported(given: Mapping[str, Any]) -> Cell | None:
    if not given["retrieved_contexts"] and is_declined(given["response"]):
        return Cell.undefined(f"{NO_PASSAGES}, and the answer declines: it states nothing")
    return _zero(given)


def _misled(given: Mapping[str, Any]) -> Cell | None:
    return None if given["retrieved_contexts"] else Cell.undefined(f"{NO_PASSAGES}, so none can mislead")


def _calls(given: Mapping[str, Any]) -> Cell | None:
    made = any(getattr(message, "tool_calls", None) for message in given["user_input"])
    if made or given["reference_tool_calls"]:
        return None
    return Cell.undefined("no call was made, and none was expected")


def _queries(given: Mapping[str, Any]) -> Cell | None:
    empty = [name for name in ("reference", "response") if not given[name].strip()]
    return Cell.undefined(f"the {empty[0]} holds no query") if empty else None


def _short(given: Mapping[str, Any]) -> Cell | None:
    for name in ("reference", "response"):
        if len(given[name]) > _MOST:
            raise InvalidInputError(
                f"the {name} has {len(given[name]):,} characters; at most {_MOST:,} are compared, so cut it"
            )
    return None


def _short_rouge(given: Mapping[str, Any]) -> Cell | None:
    _short(given)
    rows, columns = (len(_WORDS.findall(given[name].lower())) for name in ("reference", "response"))
    if rows * columns > _MOST_CELLS:
        raise InvalidInputError(
            f"the texts have {rows:,} and {columns:,} words; at most {_MOST_CELLS:,} pairs are compared, so cut them"
        )
    return None


def _tables(given: Mapping[str, Any]) -> Cell | None:
    _short(given)
    wanted, got = (_columns(given[name]) for name in ("reference", "response"))
    if isinstance(wanted, str):
        raise InvalidInputError(f"the reference is no CSV table: {wanted}")
    if isinstance(got, str):
        return Cell.undefined(f"the answer is no CSV table: {got}")
    if not {str(name).lower() for name in wanted} & {str(name).lower() for name in got}:
        return Cell.undefined(f"the tables have no column in common: {wanted!r:.80} and {got!r:.80}")
    return None


def _columns(text: str) -> list[Any] | str:
    """The column names as pandas reads them, or why it does not."""
    import pandas

    try:
        return list(pandas.read_csv(io.StringIO(text)).columns)
    except (ValueError, RecursionError) as error:  # pandas's parser errors are ValueErrors
        return str(error)


def _all_declined(replies: Sequence[Any]) -> str | None:
    refused = [bool(reply.refused_to_answer) for reply in replies if hasattr(reply, "refused_to_answer")]
    fits = [fit for reply in replies for fit in getattr(reply, "classifications", ())]
    if refused and fits and all(refused) and not any(fits):
        return "no topic that came up is allowed, and none was answered"
    return None


def _empty(*names: str, first: bool = False) -> Callable[[Sequence[Any]], str | None]:
    """Whether a list that the judge was to make is empty: of the first reply alone, or of any."""

    def after(replies: Sequence[Any]) -> str | None:
        for reply in replies[:1] if first else replies:
            for name in names:
                if getattr(reply, name, None) == []:
                    return f"the judge found no {name}, so there is nothing to judge"
        return None

    return after


def _bleu(given: Mapping[str, Any]) -> str:
    if ". " in given["response"]:
        return "Ragas compares only the first sentence of the answer; see ours_bleu"
    return _foreign(given, "Ragas takes unspaced text for one word; see ours_bleu")


def _rouge(given: Mapping[str, Any]) -> str:
    return _foreign(given, "Ragas's words are ASCII letters and digits; see ours_rouge_l")


def _foreign(given: Mapping[str, Any], remark: str) -> str:
    foreign = any(sign.isalnum() and not sign.isascii() for sign in given["reference"])
    return remark if foreign else ""


_PRECISION = Guard(before=_zero)  # Ragas: ValueError where nothing was retrieved; so in the next lines too
GUARDS: dict[str, Guard] = {
    "ContextPrecision": _PRECISION,
    "ContextPrecisionWithReference": _PRECISION,
    "ContextPrecisionWithoutReference": _PRECISION,
    "ContextUtilization": _PRECISION,
    "ContextRecall": Guard(before=_zero),
    "ContextRelevance": Guard(before=_zero),
    "ResponseGroundedness": Guard(before=_zero),
    "Faithfulness": Guard(before=_unsupported),
    # Ragas gives 0 where the reference names nothing
    "ContextEntityRecall": Guard(before=_zero, after=_empty("entities", first=True)),
    # Ragas divides by nothing, or numpy raises
    "NoiseSensitivity": Guard(before=_misled, after=_empty("statements")),
    "SummaryScore": Guard(after=_empty("keyphrases", "questions")),
    # Ragas takes a text that states nothing for a perfect match
    "AnswerCorrectness": Guard(after=_empty("statements")),
    # Ragas: 0, or a score of one direction alone
    "FactualCorrectness": Guard(after=_empty("claims")),
    # Ragas gives 0 to an assistant that rightly declines everything
    "TopicAdherence": Guard(after=_all_declined),
    "ToolCallF1": Guard(before=_calls),  # Ragas gives 0 where nothing was called and nothing expected
    "SQLSemanticEquivalence": Guard(before=_queries),  # Ragas: ValueError
    "DataCompyScore": Guard(before=_tables),  # Ragas gives 1 to tables without a common column
    "BleuScore": Guard(before=_short, remark=_bleu),
    "RougeScore": Guard(before=_short_rouge, remark=_rouge),
    "CHRFScore": Guard(before=_short),
    "NonLLMStringSimilarity": Guard(before=_short),
}
