"""Passages that hold what a question names: identifiers, persons and other names, clauses, times."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from difflib import get_close_matches
from itertools import pairwise

from rag_kit.text.analysis import tag_words
from rag_kit.text.asking import without_remarks
from rag_kit.text.evidence.questions import Question, analyse, clauses_named, terms
from rag_kit.text.evidence.sentences import PassageText
from rag_kit.text.evidence.times import fit_in_time, time_spans
from rag_kit.text.language import ENGLISH_FUNCTION_WORDS, HAN, SURNAMES, fold
from rag_kit.text.values.numbers import NUMBER_WORDS, read_any
from rag_kit.text.values.reading import find_values, level

# XP-9900
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9.])(?=[A-Za-z]+[./_-]?\d)[A-Za-z][A-Za-z0-9./_-]+[A-Za-z0-9]")
# CK6150在2025年的单价, price of the CK6150
_ATTRIBUTE = re.compile(
    rf"(?:{_IDENTIFIER.pattern})[^的，。？?]{{0,12}}的(?P<han>[^，。？?]+)"
    rf"|(?P<english>\w+(?: \w+)?) of (?:the )?(?:{_IDENTIFIER.pattern})"
)
_N = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3}|(?:one|two|three|four|five|six|seven|eight|nine|ten)\b)"
_LISTED = rf"(?<![\d./-])(?P<listed>{_N}(?:,?\s?(?:[-~、,至到和或及与]|to|and|or)\s?{_N}){{0,9}})(?![./]?\d)"
# numbers of things: 第3期, 2至4号厂房, 二车间, phase 3, lines 1 and 2; not 15天, 前三季, 二级以上, 5号前
_NUMBERED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"第\s?{_LISTED}\s?(?P<kind>次|期|届|批|轮|季|页|部分|阶段|车间|级|层|楼|组|班|标段|版|卷|册)(?!以)",
        rf"(?<!月){_LISTED}号(?P<kind>(?![上下早晚前后之])[{HAN}])",
        rf"(?<![分共每各约满近第哪前后]){_LISTED}(?P<kind>期|季|阶段|车间|级|标段)(?!以)",
        rf"(?P<kind>附[件表录图]|议[题案]|(?<![{HAN}])[图表]|[{HAN}]{{2}}(?=\())\(?{_LISTED}",
        r"\b(?P<kind>building|line|phase|annex|appendix|schedule|exhibit|step|part|stage|level|grade|class|room|gate|unit"
        rf"|lot|batch|page|chapter|table|figure|zone|floor|team|shift|version|round)s?\s(?:no\.?\s)?{_LISTED}",
    )
]
_ORDINAL = r"(?:first|second|third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf)th|\d{1,3}(?:st|nd|rd|th))"
_VERSION = r"\d{1,9}(?:\.\d{1,9}){0,4}"
# Windows 10, ISO 9001, XP 3200
_NAME_AND_NUMBER = re.compile(
    rf"(?<![A-Za-z\d])(?P<name>[A-Za-z/]*[A-Z][A-Za-z]*)[ -](?P<number>{_VERSION})(?![A-Za-z\d%])"
)
_TO = r"(?: ?[-~至到]| (?:(?:up )?to|through|bis(?: zu)?)\b) ?"
# near a number: others are meant, too
_OPEN = re.compile(
    r"(?i)[+<>≥≤]|\b(?:from|since|least|minimum|than|later|newer|older|higher|above|below|up|onwards?|ab|seit|mindestens"
    r"|neuer|höher|älter)\b|以[上下前后]|更[高新低早旧]|起"
)
_OTHER_PARTS = re.compile(r"(?i)\bh[12]\b|half|(?:last|final|every|each|-) ?quarter|quarterly|year[ -]end")
_WITHIN = 25  # characters around a number in which such a word or a unit is looked for
_NO_LETTER_OR_DIGIT = re.compile(r"[^a-z0-9]+")
_HAN = re.compile(f"[{HAN}]+")
_TITLES = "老师|先生|女士|小姐|师傅|医生|律师|教授|院长|董事长|总|经理|主任|工"
_MIN_MISSPELLED, _MISSPELLED = 6, 0.85  # letters of a name; how alike the right word must be


def select_passages(question: Question, passages: Sequence[PassageText]) -> list[PassageText]:
    """Return the passages that may answer: with what the question names in their text, title, headings or file name.

    Each identifier and name must be in some passage. A passage must hold one of the identifiers and one of the Chinese
    persons, and its document a time that overlaps the question's times, if it names any. Other names are compared by
    their stems and may be misspelled by a letter; names in remarks of askers about themselves ("I live in Bath.") are
    not looked for. Where passages number a thing (二期, line 2, ISO 9001), the number in the question must be among
    theirs. A clause is looked for in the documents whose titles or file names have most of the question.

    Example:
        >>> from rag_kit.text.evidence.questions import analyse
        >>> pump = [PassageText(1, "The XP-3200 lifts water 8 m high. It was sold in 2022 and 2023.", "Pumps")]
        >>> questions = "How high does the XP3200 lift?", "How high does the XP-9900 lift?", "Was it sold in 2021?"
        >>> [len(select_passages(analyse(text), pump)) for text in questions]
        [1, 0, 0]
    """
    texts = {passage.number: "\n".join((passage.title, *passage.marks, passage.text)) for passage in passages}
    asked = analyse(without_remarks(question.text))
    if _lacks_name(asked, list(texts.values())) or _names_another(asked.text, "\n".join(texts.values())):
        return []
    kept = list(passages)
    identifiers = (one for one in _IDENTIFIER.findall(level(question.text)) if not time_spans(one))  # FY2022
    # each name is a tuple of the forms that a text may have
    codes: set[tuple[str, ...]] = {(_letters_and_digits(one),) for one in identifiers}
    for names, normalise in ((codes, _letters_and_digits), (_persons(fold(asked.text)), fold)):
        if names:
            plain = {number: normalise(text) for number, text in texts.items()}
            named_in = {
                number: {forms for forms in names if any(form in text for form in forms)}
                for number, text in plain.items()
            }
            if names - set().union(*named_in.values()):
                return []
            kept = [passage for passage in kept if named_in[passage.number]]
    if question.spans:  # a time may be named anywhere in the document
        times = [(_document(passage), time_spans(texts[passage.number])) for passage in passages]
        fitting = {document for document, spans in times if fit_in_time(question.spans, spans).overlap}
        kept = [passage for passage in kept if _document(passage) in fitting]
    if question.clauses:
        marks = {passage.number: "\n".join(passage.marks or (passage.title,)) for passage in kept}
        shared = {number: len(question.keys & set(terms(text))) for number, text in marks.items()}
        kept = [passage for passage in kept if shared[passage.number] == max(shared.values())]
    return kept


def _lacks_name(asked: Question, texts: Sequence[str]) -> bool:
    """Tell whether a question has a name in letters that no text has, in any form."""
    words = {key for text in texts for key in terms(text)}
    numbered = re.findall(rf"\b([A-Z]\w*) ((?i:{NUMBER_WORDS}))", asked.text)  # World War Two, or 2
    for name, number in numbered:
        if any(re.search(rf"\b{name} {read_any(number):.0f}\b", text) for text in texts):
            words.add(number.lower())
    names = [term.key for term in asked.terms if term.nominal and term.key.isalpha()]
    return not all(_is_known(name, words) for name in names)


def _names_another(question: str, text: str) -> bool:
    """Tell whether a text numbers what a question numbers, or names places or quarters, but all of them others."""
    numbers = _numbered(text)
    for kind, of_kind in _numbered(question).items():
        if kind in numbers and not (of_kind <= numbers[kind] or _is_numbered_otherwise(kind, text)):
            return True
    return (
        _has_other_number(level(question), level(text))
        or _has_other_place(fold(question), fold(text))
        or _has_other_quarter(level(question), level(text))
    )


def _numbered(text: str) -> dict[str, set[int]]:
    """Map each kind of things that a text numbers to the numbers: "phases 1 to 3" -> phase: 1, 2, 3."""
    numbers: dict[str, set[int]] = {}
    plain = level(text).replace("首次", "第一次").replace("再次", "第二次")
    for pattern in _NUMBERED:
        for match in pattern.finditer(plain):
            listed = [int(read_any(number)) for number in re.findall(_N, match["listed"], re.IGNORECASE)]
            numbers.setdefault(match["kind"].lower(), set()).update(range(min(listed), max(listed) + 1))
    return numbers


def _is_numbered_otherwise(kind: str, text: str) -> bool:
    """Tell whether a text numbers things in words, Roman figures or a column: the second phase, Phase II."""
    in_words = rf"\b{_ORDINAL}[ -](?:\w+ )?{kind}\b|(?<![a-z\d]){kind}[ -](?:[ivxl]{{1,5}}|{NUMBER_WORDS})\b"
    return bool(re.search(rf"(?i){in_words}|\|\s*{kind}(?:s|次|别|号|\s?no\.?)?\s*\|", text))


def _has_other_number(question: str, text: str) -> bool:
    """Tell whether a text has numbers behind a name of a question, but nowhere the question's or others around it."""
    for match in _NAME_AND_NUMBER.finditer(question):
        name, asked = match["name"], match["number"]
        is_time = find_values(f"{asked} {name}")[0].dimension in ("time", "months")  # Day 2
        if is_time or name.lower() in ENGLISH_FUNCTION_WORDS or clauses_named(match[0]):
            continue
        same = re.finditer(rf"(?<![\d.]){re.escape(asked)}(?!,?\d)", text)
        if _is_amount(match) or not all(map(_is_amount, same)):
            continue
        numbers = rf"({_VERSION})(?:{_TO}(?:{name}[ -]?)?({_VERSION}))?"
        behind_name = list(re.finditer(rf"(?i)(?<![a-z\d]){name}s?[ -]?{numbers}", text))
        fits = any(_may_include(number, asked) for number in behind_name)
        if behind_name and not (fits or _is_numbered_otherwise(name, text)):
            return True
    return False


def _is_amount(number: re.Match[str]) -> bool:
    """Tell whether a number in a text is in a value with a unit, or in a date."""
    begin = max(0, number.start() - _WITHIN)
    values = find_values(number.string[begin : number.end() + _WITHIN])
    spans = [(begin + one.start, begin + one.end) for one in values if one.dimension not in ("", "id")]
    return any(start < number.end() and number.start() < end for start, end in spans)


def _may_include(numbers: re.Match[str], asked: str) -> bool:
    """Tell whether a number is in a range of a text (3.12 is in 2-4, and in 3), or may be meant by its "or later"."""
    texts = asked, numbers[1], numbers[2] or numbers[1]
    number, first, last = ([int(part) for part in text.split(".")] for text in texts)
    around = numbers.string[max(0, numbers.start() - _WITHIN) : numbers.end() + _WITHIN]
    return first <= number <= last or number[: len(first)] == first or bool(_OPEN.search(around))


def _has_other_quarter(question: str, text: str) -> bool:
    """Tell whether the quarters and dates that a text names are all before or all after the quarters of a question."""
    asked = [value.amount for value in find_values(question) if value.dimension == "quarter"]
    if not asked or _OTHER_PARTS.search(text):
        return False
    values = find_values(text)
    quarters = [value.amount for value in values if value.dimension == "quarter"]
    if not quarters:
        return False
    months = (
        int(month) for value in values if value.dimension == "date" for month in value.key.split("-")[1:2]
    )
    named = [*quarters, *((month + 2) // 3 for month in months)]
    return not any(min(named) <= quarter <= max(named) for quarter in asked)


def _has_other_place(question: str, text: str) -> bool:
    """Tell whether a text lacks a place of a question, and always has others before the same word: 上海分公司."""
    pairs = [pair for run in _HAN.findall(question) for pair in pairwise(tag_words(run))]
    for (place, tag), (thing, _) in pairs:
        if _is_place(place, tag) and len(thing) > 1 and place[:2] not in text:
            # the Chinese characters before each mention of the thing
            before = {re.split(rf"[^{HAN}]", part[-6:])[-1] for part in text.split(thing)[:-1]}
            if before and all(run and _is_place(*tag_words(run)[-1]) for run in before):
                return True
    return False


def _is_place(word: str, tag: str) -> bool:
    return tag == "ns" and not word.endswith(("城市", "外国", "山区"))


def attribute_asked(question: Question) -> set[str]:
    """Return the terms for the attribute in questions such as "price of the CK6150"; none for other questions."""
    match = _ATTRIBUTE.search(question.text)
    if match is None:
        return set()
    plain_keys = {term.key for term in question.terms if not (term.nominal or term.date)}
    return plain_keys.intersection(terms(match["han"] or match["english"]))


def _document(passage: PassageText) -> Hashable:
    """Return a key that the passages of one document share; a passage without title and marks gets its number."""
    marks = (passage.title.partition("\n")[0], *passage.marks)
    return marks if any(marks) else passage.number


def _letters_and_digits(text: str) -> str:
    return _NO_LETTER_OR_DIGIT.sub("", text.lower())


def _persons(question: str) -> set[tuple[str, ...]]:
    """Return the Chinese names of persons in a question, each with the forms that a text may have.

    A name is cut to surname and next character, since its end is often in doubt. 张伟经理 may be written 张经理; of
    王老师 only 王 is looked for.
    """
    tagged = [pair for run in _HAN.findall(question) for pair in tag_words(run, guess_names=True)]
    # not "nrt": names that are written by their sound, in one of several ways
    names = {word[:2] for word, tag in tagged if tag in ("nr", "nrfg")}
    for (word, tag), (next_word, next_tag) in pairwise(
        tagged
    ):  # 赵, 志远: the given name may be a word of its own
        if next_tag == "nr" or (tag, next_tag) == ("nr", "nrfg"):
            names.add(word + next_word[0])
    persons: set[tuple[str, ...]] = set()
    for name in names:
        if len(name) == 2 and name[0] in SURNAMES:
            # 张经理, 张伟经理, 张伟东经理
            title = re.search(f"{name[0]}(?:{name[1]}[{HAN}]?)??({_TITLES})", question)
            address = name[0] + title[1][0] if title else name
            persons.add((name[0],) if title and name == address else (name, address))
    return persons


def _is_known(name: str, words: set[str]) -> bool:
    """Tell whether a name is among some stems, as it is, in another form (German, Germany), or misspelled."""
    if name in words or name.removesuffix("s") in words or not name.isascii():
        return True
    for word in words:
        short, long = sorted((name, word), key=len)
        # "german" and "germany": at least four letters, and at most three more
        if len(short) >= max(4, len(long) - 3) and long.startswith(short):
            return True
    return len(name) >= _MIN_MISSPELLED and bool(get_close_matches(name, words, 1, _MISSPELLED))
