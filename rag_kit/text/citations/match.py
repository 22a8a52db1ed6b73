"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from itertools import combinations, dropwhile
from typing import Literal, NamedTuple

from rag_kit.text.citations.cells import find_in_cells
from rag_kit.text.citations.change import MIN_CLOSE, find_change
from rag_kit.text.citations.comparing import Pair, compare_words, with_keys_of
from rag_kit.text.citations.cutting import Clause, assertions, clauses
from rag_kit.text.citations.parallel import mixes_parallels
from rag_kit.text.citations.placing import Placement, kind_of, place_values
from rag_kit.text.citations.source import PART_BREAK, PassageSource, Span, best_clause, holds, letters_of
from rag_kit.text.citations.swaps import find_exchange, has_other_agent, says_change, says_posts
from rag_kit.text.citations.tokens import (
    PRONOUNS,
    Token,
    are_alike,
    content_keys,
    has_alike,
    is_negation,
    tokens,
)
from rag_kit.text.language import HAN, fold, same_language, word_set

# share of a statement's words from which a sentence, with its neighbours, says the whole of it
_MOST_OF_ONE_SENTENCE = 0.75
_MAX_NEAR = 20  # clauses of a passage with most words of two clauses, which are compared with these
_REASONS_OF_QUOTE = ("number", "name", "paraphrase")  # that one of too few sentences may give
_REASONS_OF_ORDER = ("number", "order", "moved", "changed")  # that the order of several values may give
# Share of a statement's words that a sentence must have in their order, so that its reason counts: a difference is then
# a change of what the sentence says, and below it another wording.
_MIN_CLOSE_BY_REASON = dict.fromkeys(("name", "changed", "moved", "opposite", "negation", "other"), MIN_CLOSE)
_MIN_CLOSE_BY_REASON |= {"number": 0.5, "changed": 0.7}
_MIN_CLOSE_WORDING = 0.65  # the same, for a wording of the statement's own to be something else
_MAX_SHORT = 7  # content words of a statement that may have a wording of its own where its values fit
_MOST_CHANGES = 2  # places with other words up to which a statement is a sentence changed
# reasons that a sentence which only asks cannot give: it claims nothing
_NEEDS_CLAIM = ("covered", "changed", "moved", "opposite", "negation", "order")
# share of a statement's words that one of several passages must have to support it together with the others
_CONTRIBUTES = 0.25
_POINTING = PRONOUNS | word_set("the that this these 这 这一 这些 本")
_NEAR = 40  # characters before and behind a statement in its passage that are looked at
_EXCEPT = re.compile(r"半|[,，]?\s?(?:except|unless|other than|but not|除外)", re.IGNORECASE)
_BETWEEN_CLAUSES = re.compile(rf"(?<=\w)[，。；！？](?=[{HAN}])")
_TWO_HAN = re.compile(f"[{HAN}]{{2}}")
_STUDY = (
    r"(?:determine|evaluate|examine|investigate|assess|compare|explore|estimate|characteri[sz]e|study|test|analy[sz]e"
    r"|identify|clarify|establish)"
)
# in a sentence that claims nothing, as the aim of a study: "We sought to determine whether tea is safe."
_OPEN_QUESTION = re.compile(
    rf"\b(?:{_STUDY}|(?:evaluat|examin|investigat|unknown|unclear|uncertain|question|know|ask)\w*)\b.{{0,60}}\bwhether\b"
    rf"|^(?:in order )?to {_STUDY}\b|\b(?:sought|aim(?:s|ed)?|wish(?:ed)?) to\b|hypothesi[sz]e"
    r"|\b(?:aim|purpose|objective|goal)s?\b.{0,40}\b(?:was|were|is) to\b"
    r"|(?:研究|探讨|评估|分析|考察|调查|确定|不清楚|不确定|未知|不明).{0,20}是否|旨在|目的(?:是|在于)",
    re.IGNORECASE,
)


class Verdict(NamedTuple):
    """How well a passage supports a statement, why, and by which span: ``passage[start:end]``."""

    score: float  # share of the statement's content words that the span holds
    reason: str  # a key of reasons.txt
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """The status of the citation, by the reason."""
        if self.reason in ("verbatim", "covered"):
            return "supported"
        is_open = self.reason in ("language", "other", "paraphrase", "computed")
        return "undecided" if is_open else "unsupported"


def judge(statement: str, sources: Sequence[PassageSource]) -> list[Verdict]:
    """Judge a statement without its marks against each passage that it cites; several may support it together."""
    verdicts = [_judge_against(statement, source) for source in sources]
    if len(sources) < 2 or any(verdict.status == "supported" for verdict in verdicts):
        return verdicts
    # no passage supports it alone: do their quotes together?
    pairs = zip(sources, verdicts, strict=True)
    quotes = [source.plain(verdict.start, verdict.end) for source, verdict in pairs]
    joined = PassageSource("\n".join(quotes), "\n".join(source.context for source in sources))
    stated = with_keys_of(joined, tokens(statement))
    quoted = [token for span in joined.spans for token in span.tokens]
    # only the words of the quotes count, none of a passage around them
    reason, _ = compare_words(Pair(stated, quoted, PassageSource(""), Span(0, 0), [(stated, ())]))
    if reason != "covered" or not all(quotes):
        return verdicts
    return [one._replace(reason="covered") if one.score >= _CONTRIBUTES else one for one in verdicts]


def _judge_against(statement: str, source: PassageSource) -> Verdict:
    """Judge a statement by one passage: as a whole, and each of the assertions that it joins by itself.

    The quote of the whole has few sentences, and the passage may make the other assertions elsewhere.
    """
    whole = _judge_by_quote(statement, source)
    if source.rows and whole.reason != "verbatim" and (finding := find_in_cells(statement, source)):
        if finding == "covered":
            return whole._replace(reason=find_exchange(statement, source) or "covered")
        return whole if whole.status == "unsupported" else whole._replace(reason=finding)
    parts = assertions(statement)
    if whole.reason in ("verbatim", "language", "thin") or len(parts) < 2:
        return whole
    verdicts = [_judge_by_quote(part, source) for part in parts]
    stated_parts = [with_keys_of(source, tokens(part)) for part in parts]
    if whole.status == "supported":
        for part, verdict in zip(stated_parts, verdicts, strict=True):
            if verdict.status == "unsupported" and not _may_be_right(part, verdict, source):
                return whole._replace(reason=verdict.reason)
    elif all(verdict.status == "supported" for verdict in verdicts):
        return whole._replace(reason=_reason_by_parts(statement, stated_parts, source, whole, verdicts))
    return whole


def _may_be_right(part: Sequence[Token], verdict: Verdict, source: PassageSource) -> bool:
    """Tell whether a part of a supported statement may be right, though it is not supported by itself.

    Alone it may lack the words that say what its value is of, or have words from another part of its sentence. In a
    row of a table neither is so.
    """
    if verdict.start in {row.start for row in source.rows}:
        return False
    if verdict.reason == "number":
        return True
    quoted_keys = content_keys(tokens(source.plain(verdict.start, verdict.end)))
    are_values_placed = place_values(part, source.places) == "all"
    return verdict.reason == "changed" and are_values_placed and content_keys(part) <= quoted_keys


def _reason_by_parts(
    statement: str,
    parts: Sequence[list[Token]],
    source: PassageSource,
    whole: Verdict,
    verdicts: Sequence[Verdict],
) -> str:
    """Return the reason for a statement whose parts are all supported, though it is not as a whole."""
    are_placed = all(place_values(part, source.places) == "all" for part in parts)
    if are_placed and whole.reason in _REASONS_OF_ORDER:
        return "covered"
    if whole.reason not in _REASONS_OF_QUOTE or whole.score >= _MOST_OF_ONE_SENTENCE:
        return whole.reason
    stated = [token for part in parts for token in part]
    if place_values(stated, source.places) == "wrong" or find_exchange(statement, source):
        return whole.reason
    pairs = zip(parts, verdicts, strict=True)
    outside = [part for part, verdict in pairs if verdict.start < whole.start or verdict.end > whole.end]
    # words of another sentence may have been put in place of some; its values are hardly
    have_values = all(any(token.value for token in part) for part in outside)
    return "covered" if outside and have_values else "paraphrase"


def _judge_by_quote(statement: str, source: PassageSource) -> Verdict:
    """Judge a statement by the best quote of one passage: first word for word, then by its words and their places."""
    letters = letters_of(statement)
    if not source.spans or not letters.strip():
        return Verdict(0.0, "thin", 0, source.spans[0].end if source.spans else 0)
    # a line of a table, maybe its header, which is compared with no row; or a sentence of several parts
    may_be_line = statement.count("|") > 1 or PART_BREAK.search(statement)
    for start, end in dict.fromkeys(span.whole for span in source.spans) if may_be_line else ():
        if letters_of(source.text[start:end]) == letters:
            return Verdict(1.0, "verbatim", start, end)
    stated = with_keys_of(source, tokens(statement))
    best, quoted_spans = source.best_spans(stated)
    sentence = source.plain(best.start, best.end)
    only_asks = bool(_OPEN_QUESTION.search(sentence)) and not _OPEN_QUESTION.search(statement)
    whole_start, whole_end = quoted_spans[0].whole[0], quoted_spans[-1].whole[1]
    whole = source.text[whole_start:whole_end]
    # 经理由王强担任，负责人由刘洋担任 does not say 王强担任负责人
    with_marks = (letters_of(_BETWEEN_CLAUSES.sub("丶", text)) for text in (whole, statement))
    is_verbatim = holds(*with_marks) and not only_asks
    before, behind = _text_around(whole, statement)
    if any(is_negation(token.key) for token in tokens(before)[-1:]):  # behind "Do not", 员工不得
        is_verbatim = False
    if _EXCEPT.match(behind):  # "every floor" of "every floor except the third", 一年 of 一年半
        is_verbatim = False
    # 陪产假为15天 does not say 产假为15天: the statement begins inside of a word
    if is_verbatim and not _TWO_HAN.fullmatch(before[-1:] + statement.strip()[:1]):
        return Verdict(1.0, "verbatim", whole_start, whole_end)
    start, end = quoted_spans[0].start, quoted_spans[-1].end
    if not same_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    quoted = [token for span in quoted_spans for token in (*span.tokens, *span.caption)]
    of_sentence = [clause for span in quoted_spans if span.whole == best.whole for clause in span.clauses]
    stated_clauses = [with_keys_of(source, clause) for clause in clauses(statement)]
    pairs = [(clause, best_clause(of_sentence, clause)) for clause in stated_clauses]
    pair = Pair(stated, quoted, source, best, pairs)
    reason, score = _compare(statement, pair, source.plain(start, end), is_verbatim)
    if only_asks and not best.row and reason in _NEEDS_CLAIM:
        reason = "paraphrase"
    return Verdict(score, reason, start, end)


def _compare(statement: str, pair: Pair, quote: str, is_verbatim: bool) -> tuple[str, float]:
    """Return the reason for a verdict, and the share of the statement's content words that the quote has."""
    reason, score = compare_words(pair)
    is_conditional = len(pair.clauses) > 1 or any(token.key == "if" for token in pair.stated)
    if reason == "negation" and score == 1 and not is_conditional:  # all words but it, in whatever order
        return reason, score
    placement: Placement = "open"
    exchange = ""  # the reason, if the statement exchanges things
    if reason in ("covered", "paraphrase"):
        placement = place_values(pair.stated, pair.source.places)
        exchange = _reason_of_exchange(statement, pair, quote if reason == "covered" else "", placement)
    if is_verbatim and not exchange:
        return "verbatim", 1.0
    if pair.best.row or exchange == "name":
        return exchange or reason, score
    return _compare_with_sentence(statement, pair, exchange or reason, placement), score


def _reason_of_exchange(statement: str, pair: Pair, quote: str, placement: Placement) -> str:
    """Return why a statement in words of its passage confuses names, columns of a row or values, or ""."""
    if reason := find_exchange(statement, pair.source, quote):
        return reason
    sentence = [span for span in pair.source.spans if span.whole == pair.best.whole]
    if mixes_parallels(pair.stated, [clause for span in sentence for clause in span.clauses]):
        return "name"
    if has_other_agent(pair.stated, pair.best.tokens, pair.source):
        return "name"
    parts = [list(part) for part, _ in pair.clauses]
    if quote and are_words_exchanged(parts, pair.source):
        return "name"
    is_wrong = placement == "wrong" or are_values_exchanged(parts, pair.source)
    if is_wrong and not says_change(statement, pair.source):
        return "number"
    return "changed" if any(_has_end_of(span, pair) for span in sentence if span is not pair.best) else ""


def _has_end_of(part: Span, pair: Pair) -> bool:
    """Tell whether a statement about one part of a sentence ends as another one: 3日前退全款 for 7日前退全款."""
    stated, end, own = map(_words_behind_value, (pair.stated, part.tokens, pair.best.tokens))
    return len(stated & end - pair.best.keys) > 1 and bool(own - content_keys(pair.stated))


def _words_behind_value(text: Sequence[Token]) -> set[str]:
    """Return the content words, without values, behind the first value of a text."""
    return content_keys(token for token in dropwhile(lambda token: not token.value, text) if not token.value)


def _compare_with_sentence(statement: str, pair: Pair, reason: str, placement: Placement) -> str:
    """Return the reason for a verdict after a comparison with the best sentence, word by word in their order.

    If all words of the statement are covered but one was changed, the reason is that change. If too few are in the
    order of the sentence, the statement is no changed copy of it, and the reason is "paraphrase".
    """
    sentence = pair.best.sentence
    referred, passage_words = _split_referred(pair)
    if reason == "covered":
        reason = _reason_of_change(pair, placement, passage_words) or "covered"
    if reason in ("moved", "order") and says_posts(statement, pair.source):
        reason = "covered"
    # words that the sentence refers back to are no difference
    compared = [token for token in pair.stated if token.key not in referred - content_keys(sentence)]
    if reason == "number":
        quoted_words = content_keys(pair.quoted)
        words = [token.key for token in compared if token.content and not token.value]
        if all(has_alike(word, quoted_words) for word in words):
            return "number"  # nothing but the value is new
    share, differing_places = _compare_order(
        compared, sentence, with_values=reason != "number", with_forms=reason == "negation"
    )
    is_short = sum(token.content for token in pair.stated) <= _MAX_SHORT
    if reason == "other" and (share < _MIN_CLOSE_WORDING or (is_short and placement == "all")):
        return "covered"
    is_close = differing_places <= _MOST_CHANGES and share >= _MIN_CLOSE_BY_REASON.get(reason, 0)
    if reason in _MIN_CLOSE_BY_REASON and not is_close:
        return "paraphrase"
    return "moved" if reason == "moved value" else reason


def _reason_of_change(pair: Pair, placement: Placement, passage_words: Set[str]) -> str:
    """Return the change of a statement against its sentence, the best part of that, or its best clause, or ""."""
    # values that surely are in their places were not moved
    harmless = {"all": ("moved", "moved value"), "some": ("moved value",)}.get(placement, ())
    for quoted in (pair.best.sentence, pair.best.tokens, pair.clause or pair.best.tokens):
        change = find_change(quoted, pair.stated, passage_words)
        if change and change not in harmless:
            return change
    return ""


def _split_referred(pair: Pair) -> tuple[set[str], frozenset[str]]:
    """Return the words that the best sentence and clause may refer back to, and the passage's other words.

    It may refer to title and headings, and by "it" or "the company" to the first sentence or the clauses before.
    """
    sentence, clause = pair.best.tokens, pair.clause
    referred = {*pair.source.context_keys}
    others = pair.source.all_keys - referred
    if sentence and sentence[0].key in _POINTING:
        first_sentence = pair.source.spans[0].keys
        referred |= first_sentence
        others -= first_sentence - content_keys(sentence)
    if clause and clause[0].key in _POINTING:
        earlier = content_keys(sentence) - content_keys(clause)
        referred |= earlier
        others -= earlier
    return referred, others


def _text_around(text: str, statement: str) -> tuple[str, str]:
    """Return what is before, on its line, and behind a statement that a text has word for word; "" if it has not.

    Of each at most 40 characters.
    """
    before, separator, behind = fold(text).partition(fold(statement).strip().rstrip("。."))
    return (before.rpartition("\n")[2][-_NEAR:], behind[:_NEAR]) if separator else ("", "")


def _compare_order(
    stated: Sequence[Token], sentence: Sequence[Token], *, with_values: bool, with_forms: bool
) -> tuple[float, int]:
    """Return the share of a statement's content words that a sentence has in their order, and how many places differ.

    Without `with_values`, values are left out; with `with_forms`, a form of a word counts as the word.
    """
    quoted_keys, keys = (
        [token.key for token in text if token.content and (with_values or not token.value)]
        for text in (sentence, stated)
    )
    if with_forms:
        for position, key in enumerate(keys):
            if key not in quoted_keys:
                keys[position] = next((form for form in quoted_keys if are_alike(key, form)), key)
    matcher = SequenceMatcher(None, quoted_keys, keys, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    differing_places = sum(tag in ("replace", "insert") for tag, *_ in matcher.get_opcodes())
    return (same / len(keys) if keys else 1.0), differing_places


def are_values_exchanged(clauses: Sequence[Clause], source: PassageSource) -> bool:
    """Tell whether a clause has the value of another one, and both surely fit once these change places."""
    values = [(clause, token, token.value) for clause in clauses for token in clause if token.value]
    for (clause, token, value), (other_clause, other, other_value) in combinations(values, 2):
        if clause is other_clause or token.key == other.key or kind_of(value) != kind_of(other_value):
            continue
        placements = [place_values(text, source.places) for text in (clause, other_clause)]
        swapped = _with(clause, token, other), _with(other_clause, other, token)
        if "wrong" in placements and all(place_values(text, source.places) == "all" for text in swapped):
            return True
    return False


def _with(clause: Clause, old: Token, new: Token) -> Clause:
    return [new if token is old else token for token in clause]


def are_words_exchanged(clauses: Sequence[Clause], source: PassageSource) -> bool:
    """Tell whether two clauses of a statement mix the words of two of a passage.

    In "Ann cooks, and Ben sings" beside "Ann sings; Ben cooks" each has words of both. Only words that the passage has
    count, and none that the two clauses share.
    """
    known = [content_keys(clause) & source.all_keys for clause in clauses]
    together = source.said_together  # the words of each clause of the passage
    unsaid = [keys for keys in known if len(keys) > 1 and not any(keys <= words for words in together)]
    for one, other in combinations(unsaid, 2):
        both, shared = one | other, one & other
        near = sorted(together, key=lambda words: -len(words & both))[:_MAX_NEAR]
        for words, other_words in combinations(near, 2):
            in_one_alone = words ^ other_words
            if both <= words | other_words and not shared & in_one_alone:
                return True
    return False
