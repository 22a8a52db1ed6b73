"""A cited passage, prepared for many statements: sentences and table rows, their words, and the values beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cached_property
from itertools import chain, groupby, pairwise, takewhile

from rag_kit.text.citations.cutting import Clause, clauses
from rag_kit.text.citations.placing import CellTokens, ValuePlace, row_places, sentence_places
from rag_kit.text.citations.tokens import MODALS, Token, content_keys, is_negation, tokens
from rag_kit.text.language import HAN, fold
from rag_kit.text.sentences import Sentence, sentences
from rag_kit.text.values.layout import as_markdown
from rag_kit.text.values.numbers import HAN_DIGITS
from rag_kit.text.values.tables import TableCell, table_rows
from rag_kit.text.values.units import unit_named
from rag_kit.text.values.value import Value, counted_by

_MAX_SENTENCES = 2000
PART_BREAK = re.compile(
    rf"(?<=；)|(?<=;)(?:\s|(?=[{HAN}]))|(?<=,)\s(?=(?:while|whereas)\s)|(?<=，)(?=而[^且])"
)
# a label that a colon follows, with the text behind it: 联系人：刘洋，电话：555-0119
_LABELLED = re.compile(
    r"(?:^|[\u3000\t，；。]|  )\W{0,4}(?P<label>[^\s：:|，；。]{2,16})[：:] ?"
    r"(?P<text>[^\n|\u3000，；。]{2,60}?)(?=  |[\u3000\t，；。]|$)",
    re.MULTILINE,
)
_POST = re.compile(
    r"(?P<post>[^\s，。；：|]{2,12})由(?P<holder>[^，。；|]{2,8}?)(?:担任|出任|兼任|负责|主持|主办|承办|协办)"
    r"|(?P<person>[^\s，。；：由|]{2,8}?)(?:担任|出任|兼任|负责|主持)(?P<office>[^，。；|]{2,12})"
)
_PLACED = re.compile(
    r"(?P<thing>[^\s，。；：|]{2,10}?)(?:设[在于]|位于|坐落[在于]|在)(?P<place>[^，。；|]{2,10})(?<![的内前后时中])(?=[，。；]|$)"
)
_PARTY = (
    "[甲乙丙丁]方|(?:出租|承租|发包|承包|委托|受托|托运|承运|买|卖|转让|受让|供|需|出借|借款|担保)[方人]"
    "|用人单位|劳动者"
)
_DUTY = re.compile(
    rf"(?<![向给对为与和同])(?P<party>{_PARTY})(?:[^，。；,;]{{0,6}}?(?:有权|无权|应当?|必须|不得|负责)(?P<action>[^，。；,;\n]{{3,40}}))?"
)
_MARK = re.compile(r"\s?\[\d{1,4}(?:[,，–-] ?\d{1,4})*\]")
ANSWERS = dict.fromkeys(["yes", "ja", "是", "有", "可", "可以", "能", "✓", "✔", "√", "☑"], True)
ANSWERS |= dict.fromkeys(
    ["no", "none", "nein", "否", "无", "不", "不可", "不可以", "不是", "没有", "不能"], False
)
ANSWERS |= dict.fromkeys(["✗", "✘", "×", "☒", "-", "–", "—", "——"], False)
_ENDS_SENTENCE = re.compile(r"[.!?。！？;；]\W*$")
_NUMBER_SIGN = re.compile(r"\bno\.?$", re.IGNORECASE)  # the end of a header such as "Article no."
_DIRECTED = re.compile(r"\w \b(?:to|by|from|of)$")  # the end of a header
_WITHIN_NUMBER = re.compile(rf"[\d{HAN_DIGITS}十百千万亿]{{2}}")
# but 10~~20元，30~~40元
_STRUCK = re.compile(r"(?<!\d)~~[^~\n]{1,500}~~|~~(?!\d)[^~\n]{1,500}~~|~~[\d.,]{1,20}~~(?!\d)")
# -5 is not 5, nor is 温度-5℃; no signs are the dashes of 3度-5度 and 张三-2024年
_MINUS = re.compile(
    rf"(?:(?<=.)(?<![\w)\-\n])(?<!\d )|(?<=[{HAN}])(?<![\d{HAN_DIGITS}][{HAN}])"
    r"(?=.\d[\d,.]*\s?(?:[~至到-]\s?[-−]?\d[\d,.]*\s?)?[%‰℃°度万亿]))[-−](?=\d)"
)
_NOT_WORD = re.compile(r"[^\w$€£¥%‰℃℉°]+|_+")
# words that say by which time a value is counted, as in a "monthly rent of 900 EUR" -> name of the unit
_PERIODS = {word: word for word in ("month", "year", "week", "day", "hour")} | {
    "annual": "year",
    "daili": "day",
    "季": "季度",
}
_HAN_PERIOD = re.compile(r"每?个?([年季月周日天])度?(?:$|[费租薪工收销产利息均付额休])")  # 每月, 月费
_BESIDE_HAN = re.compile(rf" (?=[{HAN}])|(?<=[{HAN}]) ")


class Span:
    """A sentence of a passage or a row of one of its tables, which the passage has at ``text[start:end]``.

    A part of a sentence between semicolons counts as a sentence.

    Attributes:
        clauses: The clauses of a sentence; none of a row.
        whole: Where the sentence begins and ends that it is a part of.
        earlier: The content words of the parts before it in that sentence.
        sentence: The tokens of that sentence.
        row: The cells of a row; none of a sentence.
        cells: Their tokens.
        caption: What is above the table of a row: the sentence before it, the titles since the table before, and the
            title of the passage.
    """

    def __init__(
        self,
        start: int,
        end: int,
        clauses: Sequence[Clause] = (),
        whole: tuple[int, int] | None = None,
        earlier: Set[str] = frozenset(),
        row: Sequence[TableCell] = (),
    ) -> None:
        self.start, self.end, self.clauses, self.earlier, self.row = start, end, clauses, earlier, row
        self.whole = whole or (start, end)
        headers = [tokens(_NUMBER_SIGN.sub("", cell.header)) for cell in row]
        texts = [tokens(cell.text, cell.values) for cell in row]
        self.cells = list(map(CellTokens, headers, texts))
        in_cells = (token for cell in self.cells for token in (*cell.header, *cell.text))
        self.tokens = list(in_cells if row else chain.from_iterable(self.clauses))
        self.keys = content_keys(self.tokens)
        self.sentence = self.tokens
        self.caption: Sequence[Token] = ()

    def said_by_cells(self) -> list[CellTokens]:
        """Return what the cells of a row and its caption say, each with the content words of its header.

        A cell with no more than yes or no says its header and the name of its row, after "not" where it denies them.
        """
        said = [CellTokens([], list(self.caption))] if self.row else []
        for cell, source in zip(self.cells, self.row, strict=True):
            content = [token for token in cell.header if token.content and token.key not in MODALS]
            named = [token for token in content if not is_negation(token.key)]
            is_denying = any(is_negation(token.key) for token in cell.header)
            affirms = ANSWERS.get(source.text.lower())  # None if it says something else
            if affirms is None:
                said.append(CellTokens(named, cell.text))
            else:
                # "no" under "Resistant to", or "yes" under "Not resistant to"
                denial = [Token("not")] if affirms == is_denying else []
                said.append(CellTokens(named, [*denial, *named, *self.cells[0].text], answers=True))
        return said


class PassageSource:
    """A passage prepared for many statements.

    Args:
        text: Its text; what is struck through (``~~30 days~~``) does not count as said, and all tables are read.
        context: What its title and headings say; the passage counts as saying it.

    Attributes:
        original: The text as it was given.
        text: The same with blanks for what is struck through, and with all tables in Markdown.
        offsets: For each character of `text`, and its end, the offset in `original`.
    """

    def __init__(self, text: str, context: str = "") -> None:
        self.original, self.context = text, context
        self.text, self.offsets = as_markdown(_STRUCK.sub(lambda struck: " " * len(struck[0]), text))

    @cached_property
    def spans(self) -> list[Span]:
        """The rows of its tables and the sentences outside of these, in order."""
        rows = [Span(row.start, row.end, row=row.cells) for row in table_rows(self.text, self.context)]
        spans = [*rows]
        for sentence in sentences(self.text)[:_MAX_SENTENCES]:
            if not any(row.start <= sentence.start < row.end for row in rows):
                spans += self._parts_of(sentence, has_tables=bool(rows))
        spans.sort(key=lambda span: span.start)
        self._add_captions(spans)
        return spans

    def _parts_of(self, sentence: Sentence, *, has_tables: bool) -> list[Span]:
        """Cut a sentence at its semicolons; the header of a table stays whole, as a span without clauses."""
        is_header = has_tables and sentence.text.count("|") > 1
        cuts = [] if is_header else [cut.end() for cut in PART_BREAK.finditer(sentence.text)]
        ends = [sentence.start, *(sentence.start + cut for cut in cuts), sentence.end]
        parts: list[Span] = []
        earlier: Set[str] = frozenset()
        for start, end in pairwise(ends):
            part = [] if is_header else clauses(self.plain(start, end))
            parts.append(Span(start, end, part, (sentence.start, sentence.end), earlier))
            earlier |= parts[-1].keys
        for span in parts:
            span.sentence = [token for part in parts for token in part.tokens]
        return parts

    def _add_captions(self, spans: Sequence[Span]) -> None:
        """Give each row what is above its table."""
        title: Sequence[Token] = ()  # the first line of the passage, if it is one
        lines: list[Span] = []  # the sentences between two tables
        for are_rows, group in groupby(spans, key=lambda span: bool(span.row)):
            if not are_rows:
                lines = [span for span in group if span.tokens]  # the header of a table has none
                continue
            titles = [line.tokens for line in lines[:-1] if self._is_title(line)]
            caption = list(chain(title, *titles, *(line.tokens for line in lines[-1:])))
            if not title and len(lines) > 1 and self._is_title(lines[0]):
                title = lines[0].tokens
            for row in group:
                row.caption = caption

    def _is_title(self, span: Span) -> bool:
        return not _ENDS_SENTENCE.search(self.text[span.start : span.end])

    @cached_property
    def rows(self) -> list[Span]:
        """The rows of its tables."""
        return [span for span in self.spans if span.row]

    @cached_property
    def labels(self) -> dict[str, set[str]]:
        """The texts of each label (a header, a post, "label: text"), label and text as `letters_of` writes them."""
        labelled = [(cell.header, cell.text) for row in self.rows for cell in row.row]
        labelled += [(match["label"], match["text"]) for match in _LABELLED.finditer(self.text)]
        texts: dict[str, set[str]] = {}
        for label, text in [*labelled, *relations_in(self.text)]:
            for name in filter(None, re.split(r"[（(）)\s]+", label)):  # "Contact (sales)" is two labels
                texts.setdefault(letters_of(name).strip(), set()).update({letters_of(text).strip()} - {""})
        return texts

    def plain(self, start: int = 0, end: int | None = None) -> str:
        """Return a span of the text, or all of it, without marks of footnotes."""
        return _MARK.sub("", self.text[start:end])

    @cached_property
    def all_keys(self) -> frozenset[str]:
        """The content words of all sentences."""
        return frozenset().union(*(span.keys for span in self.spans))

    @cached_property
    def said_together(self) -> list[Set[str]]:
        """The content words of each row, and of each clause of a sentence with those of the clauses before it."""
        together: list[Set[str]] = []
        for span in self.spans:
            words: Set[str] = frozenset()
            for clause in span.clauses:
                words |= content_keys(clause)
                together.append(words)
            if span.row:
                together.append(span.keys | content_keys(span.caption))
        return together

    @cached_property
    def directed(self) -> list[str]:
        """The rows as sentences about a header such as "Reports to"."""
        headed = ((row.row[0].text, cell) for row in self.rows for cell in row.row[1:])
        return [f"{name} {cell.header} {cell.text}" for name, cell in headed if _DIRECTED.search(cell.header)]

    @cached_property
    def row_keys(self) -> frozenset[str]:
        """The content words of the cells of tables, without their headers."""
        return frozenset().union(*(content_keys(cell.text) for row in self.rows for cell in row.cells))

    @cached_property
    def context_tokens(self) -> list[Token]:
        """The tokens of title and headings."""
        return [token for line in self.context.splitlines() for token in tokens(line)]

    @cached_property
    def context_keys(self) -> frozenset[str]:
        """The content words of title and headings."""
        return frozenset(content_keys(self.context_tokens))

    @cached_property
    def places(self) -> list[ValuePlace]:
        """The values of the passage, its title and its headings, with the words beside each."""
        places: list[ValuePlace] = []
        for number, span in enumerate(self.spans):
            if span.row:
                places += row_places(span.cells)
            else:
                places += sentence_places(span.clauses, span.earlier, number)
        values = [token.value for token in self.context_tokens if token.value]
        places += [ValuePlace(value, frozenset(), earlier=self.all_keys) for value in values]
        return [place._replace(order=order) for order, place in enumerate(places)]

    @cached_property
    def values(self) -> dict[str, Value]:
        """The distinct values by their normal form."""
        return {place.value.normal: place.value for place in self.places}

    @cached_property
    def completed(self) -> dict[str, str]:
        """The normal form of each value that words beside it complete, mapped to that of the value as it is written.

        A "monthly rent of 900 EUR" is 900 EUR a month; under a title with the year 2024, 2月10日 is of that year.
        """
        written: dict[str, str] = {}
        in_titles = [token.value.key for token in self.context_tokens if token.value]
        years = [key for key in in_titles if key.isdecimal()]
        for place in self.places:
            if place.value.key.startswith("-"):  # a day without a year
                dated = (place.value._replace(key=f"{year}{place.value.key}") for year in years)
                written |= {value.normal: place.value.normal for value in dated}
        for place in self.places:
            for period in filter(None, map(_period_of, place.clause)):
                written[counted_by(place.value, unit_named(period)).normal] = place.value.normal
        return written

    def best_spans(self, stated: Sequence[Token]) -> tuple[Span, list[Span]]:
        """Return the sentence or row that has most of a statement's words, and the spans to quote, in order.

        These are that one and, if it is a sentence, those around it with further words, up to the next sentences.
        """
        keys, stated_values = content_keys(stated), {token.key for token in stated if token.value}
        # a row has the words of its caption, too
        shared = [keys & (span.keys | content_keys(span.caption)) for span in self.spans]

        def rank(n: int) -> tuple[int, int, int]:
            # words of the title may be in any sentence; of equals the one that is about as long as the statement
            length = len(self.spans[n].keys)
            said = shared[n] - self.context_keys
            values = set() if self.spans[n].row else said & stated_values
            return len(said) + len(values), len(shared[n]), -abs(length - len(keys))

        best = max(range(len(shared)), key=rank)
        if self.spans[best].row:
            return self.spans[best], [self.spans[best]]
        parts = [n for n, span in enumerate(self.spans) if span.whole == self.spans[best].whole]
        # from the span before its sentence to that behind
        around = self.spans[max(parts[0] - 1, 0) : parts[-1] + 2]
        wholes = {span.whole for span in around if not span.row}

        def adds(n: int) -> bool:
            return self.spans[n].whole in wholes and bool(shared[n] - shared[best])

        before, behind = range(best - 1, -1, -1), range(best + 1, len(shared))
        quoted = [best, *takewhile(adds, before), *takewhile(adds, behind)]
        return self.spans[best], [self.spans[n] for n in sorted(quoted)]


def best_clause(clauses: Sequence[Clause], stated: Sequence[Token]) -> Clause:
    """Return the clause of a sentence that has most of a statement's values, then of its words; [] if there is none.

    A clause may refer back, so the words of the clauses before it count as well. Of equals the shortest is
    returned: it has the fewest other words.
    """
    stated_keys, stated_values = content_keys(stated), {token.key for token in stated if token.value}
    keys_so_far: set[str] = set()
    best, highest = Clause(), (-1, 0, 0, 0)
    for clause in clauses:
        keys = content_keys(clause)
        keys_so_far |= keys
        shared = len(stated_values & keys), len(stated_keys & keys_so_far), len(stated_keys & keys)
        if (rank := (*shared, -len(clause))) > highest:
            best, highest = clause, rank
    return best


def _period_of(word: str) -> str:
    """Return the unit of time that a word such as "monthly", 每月 or 月费 counts by; "" for another word."""
    period = _HAN_PERIOD.match(word)
    return _PERIODS.get(period[1], period[1]) if period else _PERIODS.get(word, "")


def letters_of(text: str) -> str:
    """Return a text for comparison word by word: folded, without marks and punctuation, a blank around each word.

    Example:
        >>> letters_of("Tea, black[1]"), letters_of("红茶 (3)")
        (' tea black ', '红茶3 ')
    """
    words = _NOT_WORD.sub(" ", _MINUS.sub("负", fold(_MARK.sub("", text))))
    return _BESIDE_HAN.sub("", f" {words} ".replace("  ", " "))


def holds(passage: str, statement: str) -> bool:
    """Tell whether a passage has a statement word for word, both as `letters_of` gives them, and not blank.

    A place where the statement begins or ends inside a number does not count.

    Example:
        >>> holds(letters_of("在十四世纪"), letters_of("四世纪")), holds(letters_of("3-day trip"), letters_of("3 day"))
        (False, True)
    """
    start = passage.find(statement)
    while start >= 0:
        end = start + len(statement)
        begins_in_number = _WITHIN_NUMBER.fullmatch(passage[start - 1 : start] + statement[0])
        ends_in_number = _WITHIN_NUMBER.fullmatch(statement[-1] + passage[end : end + 1])
        if not begins_in_number and not ends_in_number:
            return True
        start = passage.find(statement, start + 1)
    return False


def posts_in(text: str) -> list[tuple[str, str]]:
    """Return posts with who holds them.

    Example:
        >>> posts_in("安全员由刘洋担任，张伟担任项目经理。")
        [('安全员', '刘洋'), ('项目经理', '张伟')]
    """
    return [
        (match["post"] or match["office"], match["holder"] or match["person"])
        for match in _POST.finditer(text)
    ]


def relations_in(text: str) -> list[tuple[str, str]]:
    """Return posts with who holds them, things with their places, and parties with what they may or must do, or "".

    Example:
        >>> relations_in("工厂设在嘉兴，甲方应当支付租金。")
        [('工厂', '嘉兴'), ('甲方', '支付租金')]
    """
    places = [(match["thing"], match["place"]) for match in _PLACED.finditer(text)]
    duties = [(match["party"], match["action"] or "") for match in _DUTY.finditer(text)]
    return posts_in(text) + places + duties
