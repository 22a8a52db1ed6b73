"""Does the answer hold the gold answer, and does the pipeline decline where it should, and only there?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.text import fold
from rag_kit.text.citations.check import renumber
from rag_kit.text.citations.placing import supports
from rag_kit.text.citations.tokens import tokens
from rag_kit.text.language import HAN
from rag_kit.text.values.layout import as_markdown
from rag_kit.text.values.numbers import FIGURES, HAN_DIGITS, NUMBER_WORDS, SCALE, WORDS
from rag_kit.text.values.numbers import HAN as HAN_NUMERAL
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.tables import table_rows
from rag_kit.text.values.value import Value

_MAX_WORDS = 2  # of an answer beside its values
_SPACE_IN_HAN = re.compile(rf"(?<=[{HAN}，。、；：！？])\s+|\s+(?=[{HAN}，。、；：！？])")  # in "长 城"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")  # the comma of 1,230
#: A place between two characters of one word or number; 3 is not found in 3.5, nor 5 in it.
_WITHIN_WORD = re.compile(rf"(?<=[^\W{HAN}])(?=[^\W{HAN}])|(?<=\d[.,])(?=\d)|(?<=\d)(?=[.,]\d)")
_NUMERAL = re.compile(rf"(?:{HAN_NUMERAL}|{FIGURES})(?:{SCALE})?|\b{NUMBER_WORDS}")
#: A numeral, or a count of something: 五号. 百货 and 万科 are none.
_COUNT = re.compile(rf"(?:{_NUMERAL.pattern})|(?![百千万亿]){HAN_NUMERAL}[{HAN}]")
_NO_HUNDRED = re.compile("百(?=[货姓科])")  # 第一百货 is no 第一百
_CUT_NUMERAL = re.compile(rf"(?<=[十百千])(?=[{HAN_DIGITS}])")  # 十五 is cut by it, 张三 in 张三一人 is not
_SMALL_NUMBER = rf"(?:{'|'.join(WORDS)})"
#: In "five and ten", not in "hundred and ten".
_BETWEEN_NUMBERS = re.compile(rf"\b({_SMALL_NUMBER}) and (?={_SMALL_NUMBER}\b)")
_NEAR = 40  # characters around some words in which the values, or a negation, are read
#: A negation at the end of a text; 不得不 is none.
_NEGATION = re.compile(r"(?:(?<!不[得能会可])(?<!非)不|未|没(?=有?$)|(?:\b(?:not|never|no longer)|n['’]t) )$")
_NEGATED_QUESTION = re.compile(r"(?:^|(.))[不没](?!\1)|未|\b(?:not?|never)\b|n['’]t\b")  # not 可不可以
#: Ends of a run that are neither an answer nor a decline: a guard stepped in, or a question was asked back.
_NEITHER = {"refused": "a guard refused the question", "clarify": "the pipeline asked a question back"}
_REASONS = {
    "answered": "it answers, and the corpus holds an answer",
    "answered_wrongly": "it answers, though the corpus holds no answer",
    "declined": "it declines, and the corpus holds no answer",
    "declined_wrongly": "it declines, though the corpus holds an answer",
}


class AnswerFound(Metric):
    """1 if one of ``example.answers`` occurs in the answer, else 0.

    Case, width and form of letters (NFKC, case folding), traditional and simplified characters, blanks and commas
    within numbers do not matter; a part of a longer word, number (五年 in 十五年) or value is no occurrence, and the
    numbers of citations are not read. An answer that is a value, with two words more at most, is found in any form
    and unit: 15天 is 十五天, 80% is 百分之八十, 2 years are 24 months; "tenth" is not 10. Right behind "not" or 不
    none is found, unless the question is negative, too. It looks at words alone: "Paris is wrong" holds Paris.
    """

    name, source, stage = "ours_answer_found", "ours", "end_to_end"
    example_needs = frozenset({"answers"})

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return 1 or 0, with the accepted answers that were found."""
        if example.answerable is False:
            return Cell.not_applicable(
                "the documents do not answer it: ours_decline tells whether it is declined"
            )
        answer = output.answer or ""
        text = normalize(renumber(answer, {}))  # without citations: it does not state their numbers
        accepted = {gold: normalize(gold) for gold in example.answers}
        if not any(accepted.values()):
            return Cell.not_applicable("the example's answers are blank")
        negated_too = _NEGATED_QUESTION.search(example.question) is not None
        found = []
        for gold, words in accepted.items():
            if occurs(words, text, negated_too=negated_too) or states(answer, gold):
                found.append(gold)
        if found:
            return Cell.ok(1.0, f"found: {found[0]:.200}", found=found)
        return Cell.ok(0.0, "none of the answers occurs", found=[])


class Decline(Metric):
    """1 where a question with an answer in the corpus is answered, and one without is declined; else 0.

    A decline is the status ``declined`` of a graph, or an answer that says that the documents do not hold it and
    nothing else (`rag_kit.text.citations.decline.is_declined`, English and Chinese). Whether it is right does not
    matter. ``details["kind"]`` is ``answered``, ``declined``, ``answered_wrongly`` or ``declined_wrongly``.
    """

    name, source, stage = "ours_decline", "ours", "end_to_end"
    example_needs = frozenset({"answerable"})

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return 1 if the question is answered or declined as it should be, else 0; undefined if it was neither."""
        if output.status in _NEITHER:
            return Cell.undefined(_NEITHER[output.status])
        is_right = output.declined != example.answerable
        kind = "declined" if output.declined else "answered"
        if not is_right:
            kind += "_wrongly"
        return Cell.ok(float(is_right), _REASONS[kind], kind=kind)


def normalize(text: str) -> str:
    """Return a text to compare: case, width and script folded, blanks unified, no commas in numbers.

    Example:
        >>> normalize("Ｔhe  Rhine:\\n1,230 km"), normalize("長 城 在 北京")
        ('the rhine: 1230 km', '长城在北京')
    """
    return _THOUSANDS.sub("", _SPACE_IN_HAN.sub("", " ".join(fold(text).split())))


def squeeze(text: str) -> str:
    """Normalize a text and remove all blanks and bars, so that layout does not matter."""
    return "".join(normalize(text.replace("|", " ")).split())


def states(text: str, answer: str) -> bool:
    """Tell whether a text states the values of an answer (24 months) in any form or unit, and its other words.

    Example:
        >>> states("The lease runs for two years.", "24 months"), states("保修期为十五天。", "15天")
        (True, True)
        >>> states("The lease runs for two years.", "24 days")
        False
    """
    answer_tokens = [token for token in tokens(answer) if token.content]
    values = [token.value for token in answer_tokens if token.value]
    words = {token.key for token in answer_tokens if not token.value}
    if not values or len(words) > _MAX_WORDS:
        return False
    text = renumber(text, {})  # without citations: it does not state their numbers
    text_tokens = tokens(text)
    stated = [token.value for token in text_tokens if token.value]
    # in a table a number has the unit of its header
    stated += [
        value for row in table_rows(as_markdown(text)[0]) for cell in row.cells for value in cell.values
    ]
    # "tenth" is not 10; but 5 may be asked for as 第几
    cardinal = [value for value in stated if value.dimension != "ordinal" or "第" in text]
    for value in values:
        candidates = stated if value.dimension else cardinal
        if not any(supports(candidate, value) for candidate in candidates):
            return False
    return words <= {token.key for token in text_tokens}


def occurs(words: str, text: str, *, negated_too: bool = True) -> bool:
    """Tell whether ``words`` are in ``text``, not inside a longer word or number, nor a value in a longer one.

    Both are taken as ``normalize`` gave them. Chinese has no blanks to look for: there any place counts. Places right
    behind "not" or 不 count only if ``negated_too``.

    Example:
        >>> occurs("art", "a party"), occurs("art", "art, mostly"), occurs("3", "3.5 km"), occurs("长城", "万里长城在")
        (False, True, False, True)
        >>> occurs("五年", "保密十五年"), occurs("five years", "for twenty-five years"), occurs("五年", "五年半")
        (False, False, False)
        >>> occurs("张三", "由张三一人负责"), occurs("为期五年", "为期五年半")  # longer than a value: as it is written
        (True, True)
    """
    if not words:
        return False
    starts = (m.start() for m in re.finditer(f"(?={re.escape(words)})", text))  # overlapping ones, too
    own_values = find_values(words)
    covers_all = any((value.start, value.end) == (0, len(words)) for value in own_values)
    is_value = covers_all or _COUNT.fullmatch(words) is not None
    rejected: set[tuple[str, int]] = set()  # windows: a long text may repeat what is around the words
    for start in starts:
        end, window_start = start + len(words), max(0, start - _NEAR)
        if any(_WITHIN_WORD.match(text, edge) for edge in (start, end)):
            continue
        if not negated_too and _NEGATION.search(text[window_start:start]):
            continue
        if not is_value:  # a sentence or a name: 张三 in 由张三一人负责
            is_part = _CUT_NUMERAL.match(text, end) is not None
        else:
            window = text[window_start : end + _NEAR], start - window_start
            is_part = window in rejected or _is_part_of_value(words, own_values, *window)
            rejected.add(window)
        if not is_part:
            return True
    return False


def _is_part_of_value(words: str, own_values: Sequence[Value], text: str, start: int) -> bool:
    """Tell whether the words at ``start`` of a text begin or end inside a longer value, as 五年 in 十五年 or 五年半.

    ``own_values`` are those that are read from the words alone.
    """
    text = _NO_HUNDRED.sub(" ", _BETWEEN_NUMBERS.sub(r"\1 ... ", text))  # of the same length
    edges = (start, start + len(words))
    values = find_values(text)
    # two values may touch, as a day and a time in 周五十点: an edge between them is inside of none
    touching = {position for value in values for position in (value.start, value.end)}
    inner_edges = [edge for edge in edges if edge not in touching]
    for numeral in _NUMERAL.finditer(text):  # 五年 in 十五年
        if any(numeral.start() < edge < numeral.end() for edge in inner_edges):
            return True
    for value in values:  # 五年 in 五年半
        is_cut = any(value.start < edge < value.end for edge in edges)
        comparable = [own for own in own_values if own.dimension == value.dimension]
        if is_cut and comparable and not any(supports(value, own) for own in comparable):
            return True
    return False
