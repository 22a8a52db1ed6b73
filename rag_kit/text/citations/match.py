"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from difflib import SequenceMatcher
from itertools import combinations, pairwise, permutations
from typing import Literal, NamedTuple

from rag_kit.text.citations.source import Place, Source, clauses, content_keys, holds, letters_of
from rag_kit.text.citations.tokens import Token, are_alike, are_opposites, is_negation, tokens
from rag_kit.text.language import HAN, fold, same_language, word_set
from rag_kit.text.values.reading import Value, same_value

_MAX_UNKNOWN = 0.35  # share of a statement's content that the quote, and what it refers back to, may lack
# share of a statement's words that a sentence has in their order, from which a difference is a change of what it says
_MIN_CLOSE, _MIN_CLOSE_VALUES = 0.6, 0.5
_MIN_CLOSE_WORDING = 0.65  # the same, from which a wording of its own may be something else
_MOST_CHANGES = (
    2  # places in which a statement has other words than a sentence, up to which it is that sentence changed
)
_FEW = 4  # content words of a statement that says too little to be foreign to a passage
_CONTRIBUTES = 0.25
_MAX_PLACED = 20  # values of a statement that are compared by what stands beside them
_MIN_CONTEXT = 3  # words beside a part at an end that must be the same for it to stand in the same place
_MAX_THING = 2  # content words of a part that is one name or one thing
_DENIED_WITHIN = 3  # words after a negation among which the one is that it denies
_WEAK = ("ordinal", "weekday")  # values that a passage without one of their kind may say in other words
_POINTING = word_set(
    "it they he she this these its their his her that the 它 它们 他 她 该 这 这一 这些 此 其 本"
)
_STUDY = (
    r"(?:determine|evaluate|examine|investigate|assess|compare|explore|estimate|characteri[sz]e|study|test|analy[sz]e"
    r"|identify|clarify|establish)"
)
_OPEN_QUESTION = re.compile(
    rf"\b(?:{_STUDY[3:-1]}|evaluat|examin|investigat|assess|unknown|unclear|uncertain|question|know|ask)\w*\b.{{0,60}}\bwhether\b"
    rf"|^(?:in order )?to {_STUDY}\b|\b(?:sought|aim(?:s|ed)?|wish(?:ed)?) to\b|hypothesi[sz]e"
    r"|\b(?:aim|purpose|objective|goal)s?\b.{0,40}\b(?:was|were|is) to\b"
    r"|(?:研究|探讨|评估|分析|考察|调查|确定|不清楚|不确定|未知|不明).{0,20}是否|旨在|目的(?:是|在于)",
    re.IGNORECASE,
)
_TWO_HAN = re.compile(f"[{HAN}]{{2}}")
_VOICE = frozenset(["by", "被", "由", "把", "将"])


class Verdict(NamedTuple):
    """Tell whether a passage supports a statement, by which span, and why."""

    score: float
    reason: str
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """Explain the reason."""
        if self.reason in ("verbatim", "covered"):
            return "supported"
        return "undecided" if self.reason in ("language", "other", "paraphrase") else "unsupported"


def judge(statement: str, sources: Sequence[Source]) -> list[Verdict]:
    """Judge a statement without its marks against each passage that it cites; several may support it together."""
    verdicts = [_judge_against(statement, source) for source in sources]
    if len(sources) < 2 or any(verdict.status == "supported" for verdict in verdicts):
        return verdicts
    quotes = [source.plain(start, end) for source, (*_, start, end) in zip(sources, verdicts, strict=True)]
    both = Source("\n".join(quotes), "\n".join(source.context for source in sources))
    quoted = [token for sentence in both.tokens for token in sentence]
    together, _ = _compare_words(_in_words_of(tokens(statement), both), quoted)
    if together != "covered" or not all(quotes):
        return verdicts
    return [
        verdict._replace(reason=together) if verdict.score >= _CONTRIBUTES else verdict
        for verdict in verdicts
    ]


def _judge_against(statement: str, source: Source) -> Verdict:
    """The verdict on a statement by the best quote of one passage."""
    letters = letters_of(statement)
    if not source.spans or not letters.strip():
        return Verdict(0.0, "thin", *(source.spans or [(0, 0)])[0])
    stated = _in_words_of(tokens(statement), source)
    best, places = source.best_sentences(statement, stated)
    start, end = source.spans[places[0]][0], source.spans[places[-1]][1]
    verbatim = Verdict(1.0, "verbatim", start, end)
    held = holds(letters_of(source.text[start:end]), letters)
    if held and not _begins_inside(source.text[start:end], statement):
        return verbatim
    if not same_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    quoted = [token for place in places for token in source.tokens[place]]
    row = source.spans[best][0] in source.rows
    parts = [_in_words_of(part, source) for part in clauses(statement)]
    clause = [] if row or len(parts) > 1 else source.best_clause(best, stated)
    reason, score = _compare_words(stated, quoted, source, clause)
    placed = _place_values(stated, parts, source.places) if reason in ("covered", "paraphrase") else None
    if placed is False:
        reason = "number"
    elif held:
        return verbatim
    if row:
        return Verdict(score, reason, start, end)
    sentence, known, passage = source.tokens[best], content_keys(source.context_tokens), source.all_keys
    if sentence and sentence[0].key in _POINTING:
        passage -= source.keys[0] - content_keys(sentence)
        known |= source.keys[0]
    core = [token for token in stated if token.key not in known - content_keys(sentence)]
    if reason == "covered":
        changes = (_find_change(part, stated, passage) for part in (sentence, clause or sentence))
        reason = next((change for change in changes if change and not (placed and change == "moved")), reason)
    close, changes = _closeness(core, sentence, with_values=reason != "number")
    there = content_keys(quoted)
    if reason == "number" and all(t.value or _has_alike(t.key, there) for t in core if t.content):
        return Verdict(score, reason, start, end)  # nothing but the number is new
    if reason == "other" and close < _MIN_CLOSE_WORDING:
        reason = "covered"
    if reason in _LEAST and (close < _LEAST[reason] or changes > _MOST_CHANGES):
        reason = "paraphrase"
    if (
        reason in _NOTHING_SAID
        and _leaves_open(source.plain(*source.spans[best]))
        and not _leaves_open(statement)
    ):
        reason = "paraphrase"
    return Verdict(score, reason, start, end)


def _begins_inside(text: str, statement: str) -> bool:
    """Tell whether a Chinese statement stands in a text behind another character, maybe inside a word: 陪产假为15天."""
    said = fold(statement).rstrip("。.")
    before = fold(text).partition(said)[0]
    return before != fold(text) and bool(_TWO_HAN.fullmatch(before[-1:] + said[:1]))


def _leaves_open(sentence: str) -> bool:
    """Tell whether a sentence only asks: the aim of a study, or whether something is so; it denies and says nothing."""
    return _OPEN_QUESTION.search(sentence) is not None


_LEAST = dict.fromkeys(("name", "changed", "moved", "opposite", "negation", "other"), _MIN_CLOSE) | {
    "number": _MIN_CLOSE_VALUES
}
_NOTHING_SAID = ("covered", "changed", "moved", "opposite", "negation", "order")


def _closeness(stated: Sequence[Token], cited: Sequence[Token], *, with_values: bool) -> tuple[float, int]:
    """Share of a statement's content words that a sentence has in their order, and in how many places others stand."""
    old, new = ([t.key for t in row if t.content and (with_values or not t.value)] for row in (cited, stated))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    same = sum(d - c for kind, _, _, c, d in codes if kind == "equal")
    return (same / len(new) if new else 1.0), sum(kind in ("replace", "insert") for kind, *_ in codes)


def _in_words_of(stated: list[Token], source: Source) -> list[Token]:
    """A statement's tokens, with each value under the key that the passage has for it."""
    row = []
    for token in stated:
        if token.value:
            same = (key for key, value in source.values.items() if says(value, token.value))
            key = token.key if token.key in source.values else next(same, source.counted.get(token.key))
            token = token._replace(key=key or token.key)
        row.append(token)
    return row


def says(said: Value, stated: Value) -> bool:
    """Tell whether a passage that says one value supports the other: equal, or with less said of its unit."""
    if same_value(stated, said):
        return True
    if stated.bound and said.bound and stated.bound != said.bound:
        return False
    bare = not stated.dimension or (not stated.per and stated.unit == said.unit)
    return bare and bool(said.unit) and said.dimension != "ratio" and stated.amount == said.amount


def _compare_words(
    stated: list[Token], quoted: list[Token], source: Source | None = None, clause: Sequence[Token] = ()
) -> tuple[str, float]:
    """The reason for the verdict, and the share of the statement's content words that the quote has.

    The quote may refer back to what the passage's opening sentence, its title and its headings name, in words such as
    "the company"; words of other sentences of the passage are what it says of something else.
    """
    opening = content_keys(source.context_tokens) if source else set()
    passage = source.all_keys - opening if source else frozenset()
    inside = bool(source and source.rows)
    content = list(dict.fromkeys(token for token in stated if token.content))
    keys = content_keys(quoted) | opening
    words = [token.key for token in quoted if token.content and not token.value and not token.name]
    words += [token.key for token in source.context_tokens if not token.value] if source else []
    missing = [
        token
        for token in content
        if token.key not in keys and (token.value or token.name or not _has_alike(token.key, words))
    ]
    score = 1 - len(missing) / len(content) if content else 0.0
    if not score:
        thin = len(content) > _FEW or any(token.name or token.value for token in content)
        return ("thin" if thin else "paraphrase"), score
    first = source.keys[0] if source and not inside else set()
    unknown = [token for token in missing if token.value or token.key not in first]
    kinds = (
        {place.value.dimension for place in source.places}
        if source and any(t.value for t in unknown)
        else set()
    )
    if any(
        token.value and (token.value.dimension not in _WEAK or token.value.dimension in kinds)
        for token in unknown
    ):
        return "number", score
    if any(token.name for token in unknown):
        return "name", score
    if sum(token.key in passage for token in unknown) > (not inside):
        return "changed", score
    said = {token.key for token in quoted}
    new = {token.key for token in stated} - said
    lost = said - {token.key for token in stated}
    if any(are_opposites(a, b) for a in new for b in lost):
        return "opposite", score
    whole = 2 * len(content_keys(stated) & content_keys(clause)) < len(content_keys(stated))
    if negated := _negates_alone(stated, quoted if whole else clause):
        return negated, score
    return ("paraphrase" if len(unknown) > _MAX_UNKNOWN * len(content) else "covered"), score


def _negates_alone(stated: Sequence[Token], quoted: Sequence[Token]) -> str:
    """The reason "negation" where one text denies a word that the other has and does not deny, or ""."""
    for text, other in ((stated, quoted), (quoted, stated)):
        there = [denied for pair in _denied(other) for denied in pair]
        keys, count = content_keys(other), Counter(token.key for token in text)
        denials = list(_denied(text))
        for first, *more in denials:
            once = count[first] == sum(first == denied for denied, *_ in denials)
            if (
                once
                and _has_alike(first, keys)
                and not any(_has_alike(word, there) for word in (first, *more))
            ):
                return "negation"
    if sum(is_negation(t.key) for t in stated) > sum(is_negation(t.key) for t in quoted):
        return "paraphrase"
    return ""


def _denied(text: Sequence[Token]) -> Iterable[list[str]]:
    """Yield what a text denies: after each negation the first two content words, or the last one before it."""
    for place, token in enumerate(text):
        if is_negation(token.key):
            after = [one.key for one in text[place + 1 : place + 1 + _DENIED_WITHIN] if one.content][:2]
            before = [one.key for one in text[:place] if one.content][-1:]
            if after or before:
                yield after or before


def _have_swapped(parts: Sequence[Sequence[Token]], places: Sequence[Place]) -> bool:
    """Tell whether two values of a statement each stand beside words that stand beside the other in the passage."""
    held = [
        (token.value, {one.key for one in part if one.content and not one.value})
        for part in parts
        for token in part
        if token.value
    ][:_MAX_PLACED]
    found = [(value, words, [place for place in places if says(place.value, value)]) for value, words in held]
    for (value, words, at), (other, others, there) in combinations(found, 2):
        if words is others or not (len(at) == len(there) == 1) or _kind(value) != _kind(other):
            continue
        straight = len(words & at[0].own) + len(others & there[0].own)
        if len(words & there[0].own) + len(others & at[0].own) > straight:
            return True
    return False


def _place_values(
    stated: list[Token], parts: Sequence[Sequence[Token]], places: Sequence[Place]
) -> bool | None:
    """True where each value stands beside the words of its statement, False where another does; None without rivals."""
    if _have_swapped(parts, places):
        return False
    mine = [token.value for token in stated if token.value][:_MAX_PLACED]
    words = content_keys(stated)
    sure = False
    for token in [token for token in stated if token.value][:_MAX_PLACED]:
        if not token.value or token.value.dimension == "id":
            continue
        beside = words - {token.key}
        same = [place for place in places if says(place.value, token.value)]
        kind = _kind(same[0].value) if same else ""
        rivals = [
            place
            for place in places
            if same and _kind(place.value) == kind and not any(says(place.value, value) for value in mine)
        ]
        if not rivals:
            continue
        if all(_is_of_another(words, place) for place in same) and any(
            place.subject & words for place in rivals
        ):
            return False
        best = max(same, key=lambda place: _fit(beside, place))
        if any(_is_nearer(beside, rival, best) for rival in rivals):
            return False
        sure = sure or _fit(beside, best) > max(_fit(beside, rival) for rival in rivals)
    return sure or None


def _is_of_another(words: Set[str], place: Place) -> bool:
    """Tell whether a value is said of something that is named and that a statement with these words does not name."""
    return bool(place.subject) and not place.subject & words


def _kind(value: Value) -> str:
    """The dimension of a value, whatever it is counted by."""
    return value.dimension.split("/")[0]


def _is_nearer(words: Set[str], rival: Place, best: Place) -> bool:
    """Say if a value stands nearer to the words than another; a later one needs a word that goes with it alone."""
    apart = words & rival.own - (best.own | best.within)
    if _fit(words, rival)[:2] == _fit(words, best)[:2]:
        return rival.own <= words and not best.own <= words  # of large tanks, where the statement is of tanks
    # "14 months with the drug and 9 months in the control arm": the second has a word of its own, and no other
    beside = rival.own <= words or len(words & rival.own) >= len(words & best.own)
    return beside and _fit(words, rival) > _fit(words, best) and bool(apart or rival.order < best.order)


def _fit(words: Set[str], place: Place) -> tuple[int, int, int]:
    """How many of the words stand beside a value: in the sentence up to it, in its clause, in the sentence before."""
    return len(words & (place.own | place.within)), len(words & place.own), len(words & place.before)


def _find_change(cited: list[Token], stated: list[Token], passage: Set[str]) -> str:
    """Why a statement that has the words of a sentence says something else: a reason, or "".

    The two are aligned. Where the words around are the same, what stands in one place must be the same too: another
    number, another name, an opposite, or words that the passage has elsewhere, are another statement. A wording
    of its own, which the passage does not have, is free; where it is the only difference, nothing tells which it is.
    """
    voices = (cited, stated)
    cited, stated = ([t for t in row if t.content or is_negation(t.key)] for row in voices)
    old_keys, new_keys = [token.key for token in cited], [token.key for token in stated]
    codes = SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_opcodes()
    surplus = Counter(old_keys)
    surplus.subtract(new_keys)
    # the length of what is equal, with one more at both ends
    equal = [0, *(b - a if kind == "equal" else 0 for kind, a, b, _, _ in codes), 0]
    parts = [code for code in codes if code[0] != "equal"]
    single = sum(any(token.content for token in stated[c:d]) for _, _, _, c, d in parts) == 1
    for place, (kind, a, b, c, d) in enumerate(codes):
        before, after = equal[place], equal[place + 2]
        if kind == "equal" or not (len(parts) == 1 or (before and after) or before + after >= _MIN_CONTEXT):
            continue
        old_words, new_words = _drop_alike(cited[a:b], stated[c:d])
        if not old_words or not new_words:
            continue
        inside = (before and after) or (a == c == 0 and after >= _MIN_CONTEXT)
        small = bool(inside) and max(len(old_words), len(new_words)) <= _MAX_THING
        if reason := _find_replacement(old_words, new_words, surplus, passage, small=small, single=single):
            return reason
    old_voice, new_voice = (_VOICE.intersection(token.key for token in row) for row in voices)
    same_voice = old_voice == new_voice
    share = len(set(old_keys) & set(new_keys)) / max(1, len(set(new_keys)))
    moved = same_voice and share >= _MIN_CLOSE and _have_changed_places(cited, stated)
    return "order" if moved else ""


def _have_changed_places(cited: list[Token], stated: list[Token]) -> bool:
    """Tell whether two words changed places: each stands beside what the other stands beside in the sentence.

    Equal words on the right of both do not count for both: then what follows them changed places.
    """
    old, new = _neighbours(cited), _neighbours(stated)
    numbers = {token.key for token in stated if token.value}
    names = {token.key for token in stated if token.name}
    strict = {word for word in new if word in numbers or names.intersection(word.split())}
    for a, b in permutations(old.keys() & new.keys(), 2):
        if (a in numbers) != (b in numbers) or (b in old[a] and a not in strict):
            continue  # a time and a place, the members of an enumeration, a word and its attribute
        beside = any(word and word == other for word, other in zip(new[a], old[b], strict=True))
        if beside and new[b][0] and new[b][0] == old[a][0]:
            return True
    return False


def _neighbours(text: list[Token]) -> dict[str, tuple[str, str]]:
    """Content word, or name of several words, that occurs once -> those before and after it."""
    words: list[str] = []
    for before, token in pairwise([Token(""), *text]):
        if before.name and token.name:
            words[-1] += f" {token.key}"
        elif token.content:
            words.append(token.key)
    count = Counter(words)
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    return {word: (before, after) for before, word, after in around if count[word] == 1}


def _drop_alike(old: list[Token], new: list[Token]) -> tuple[list[Token], list[Token]]:
    """The content words of each of two parts of which the other part has no form."""
    old_words, new_words = ([token for token in part if token.content] for part in (old, new))
    return (
        [
            token
            for token in old_words
            if token.name or not _has_alike(token.key, {t.key for t in new_words if not t.name})
        ],
        [
            token
            for token in new_words
            if token.name or not _has_alike(token.key, {t.key for t in old_words if not t.name})
        ],
    )


def _find_replacement(
    old: list[Token], new: list[Token], surplus: Counter[str], passage: Set[str], *, small: bool, single: bool
) -> str:
    """Why a statement's content words in a place say something else than the sentence's there: a reason, or "".

    `surplus` counts how many times more the sentence has a word than the statement; `small` is whether one name or
    thing stands for one other, `single` whether nothing else is new in the statement.
    """
    # what the statement says more often than the sentence was brought from elsewhere, or repeated
    brought = [token for token in new if surplus[token.key] < 0]
    things = [token for token in old if token.thing]
    kinds = {token.value.dimension for token in old if token.value}
    if any(token.value and token.value.dimension in kinds for token in brought):
        return "number"
    if any(token.name for token in brought) and any(token.name for token in old):
        return "name"
    if all(surplus[token.key] <= 0 for token in things or old):
        return ""  # the statement says it elsewhere
    if any(are_opposites(a.key, b.key) for a in new for b in old):
        return "opposite"
    if things and any(token.key in passage for token in brought):
        return "changed"
    if things and small and not brought:
        return "moved"
    known = {token.key for token in old}
    named = any(token.name for token in old)
    strange = [
        t
        for t in new
        if (t.thing or named) and not t.value and t.key not in passage and not _has_alike(t.key, known)
    ]
    alone = small and single and all(token.thing for token in new)
    return "other" if strange and (things or alone) else ""


def _has_alike(key: str, others: Iterable[str]) -> bool:
    return any(are_alike(key, other) for other in others)
