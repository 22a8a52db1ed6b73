"""The language and scripts of a text, a text folded for comparison, and what may be asked as a question."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, cast

from rag_kit.errors import InvalidInputError

P = ParamSpec("P")
T = TypeVar("T")

Language = Literal["en", "zh"]

# Traditional characters and their simplified ones, aligned, from OpenCC's TSCharacters table (Apache-2.0);
# written by scripts/make_traditional_table.py
TRADITIONAL, SIMPLIFIED = Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8").split()

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u3098\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
#: Of six in seven people in China; most other words that are taken for names begin otherwise.
SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许邓韩冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟"
    "姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤"
)
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
UNSPACED = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
CLOSE = HAN + KANA + HANGUL + UNSPACED  # scripts that write no spaces between words
SPECIAL = re.compile(f"[{CLOSE}]")
FIRST_CLOSE = "\u0e01"  # the lowest code point of them: a comparison with it is faster than a pattern
_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
_JOIN = r"(?:[.'\-]|_+)"
_TAIL = r"(?:\+\+|\#(?![a-z0-9_]))?"  # c++, c#
ASCII_RUNS = re.compile(rf"{_NUMBER}|[a-z0-9]+(?:{_JOIN}[a-z0-9]+)*{_TAIL}")
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile("[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_WINDOW = 4000


def word_set(text: str) -> frozenset[str]:
    """Split a text into a set of words."""
    return frozenset(text.split())


_WORD_LISTS = Path(__file__).with_name("word_lists.txt").read_text(encoding="utf-8")


def word_list(name: str) -> frozenset[str]:
    """Return the words of a list in word_lists.txt by its name; ValueError if there is no list of that name."""
    start = _WORD_LISTS.index(f"\n{name}\n") + len(name) + 2
    return word_set(_WORD_LISTS[start:].partition("\n\n")[0])


ENGLISH_STOPS = word_list("english stops")
ENGLISH_FUNCTION_WORDS = ENGLISH_STOPS | word_list("other english function words")
"""English words that carry no topic."""
CHINESE_FUNCTION_WORDS = word_list("chinese function words")
"""Chinese words that carry no topic: function words only, nothing that names a thing, a time or a place."""


def detect_language(text: str) -> Language:
    """Tell Chinese from any other language, by script and grammar, in the first 4,000 characters.

    Chinese questions are full of Latin terms ("使用 GPT-4o 和 LangChain 构建 RAG"), English ones may name a
    Chinese word. So Latin letters count against Chinese only where English function words hold them together.
    Japanese (kana) and every other script give ``"en"``, the language of the prompts used for them.

    Example:
        >>> detect_language("GPT-4o 和 LangChain 有什么区别？"), detect_language("Who wrote 红楼梦?")
        ('zh', 'en')
    """
    if text.isascii():
        return "en"
    text = text[:_WINDOW]
    han_count = len(_HAN.findall(text))
    if not han_count or len(_KANA.findall(text)) * 5 > han_count:  # kana: it is Japanese
        return "en"
    words = [word for word in _WORD.findall(_HAN.sub(" ", text)) if len(word) > 1]
    has_english_grammar = any(word.lower() in ENGLISH_FUNCTION_WORDS for word in words)
    han_per_word = 2 if has_english_grammar else 1 / 4
    return "zh" if han_count >= han_per_word * len(words) else "en"


_TABLE_LINE = re.compile(r"^.*\|.*\|.*$", re.MULTILINE)
_MIN_WORDS = 8  # from so many words on, a lack of English function words tells something


def same_language(statement: str, passage: str) -> bool:
    """Tell whether two texts may be in one language, so that their words compare; True if nothing tells.

    False for texts in different scripts, and for an English and another text in Latin letters that share few words.

    Example:
        >>> same_language("水壶保修三年。", "The kettle has a warranty."), same_language("1,230", "A kettle.")
        (False, True)
    """
    texts = statement[:_WINDOW], passage[:_WINDOW]
    if len({*map(_script, texts)} - {""}) > 1:
        return False
    # a table has hardly any function words
    prose = (_TABLE_LINE.sub("", text) for text in texts)
    words, others = (_WORD.findall(text.lower()) for text in prose)
    if min(len(words), len(others)) < _MIN_WORDS or 5 * len({*words} & {*others}) >= len(words):
        return True
    return _is_english(words) == _is_english(others)


def _is_english(words: list[str]) -> bool:
    """Tell whether more than a tenth of the words are English function words."""
    return 10 * sum(word in ENGLISH_FUNCTION_WORDS for word in words) > len(words)


def _script(text: str) -> str:
    """Return the script of most letters, as Unicode names it, or ""; "CJK" for Chinese even with more Latin letters."""
    if text.isascii():
        return "LATIN" if re.search("[A-Za-z]", text) else ""
    if detect_language(text) == "zh":
        return "CJK"
    names = (unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha())
    counts = Counter("KANA" if name in ("CJK", "HIRAGANA", "KATAKANA") else name for name in names)
    return max(counts, key=counts.__getitem__, default="")


_DROPPED = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # soft hyphen, zero-width marks: invisible, yet split words
_APOSTROPHES_HYPHENS = "\u2019\u2018\u02bc\u2010\u2011"
_AFTER_NFKC = str.maketrans(TRADITIONAL + _APOSTROPHES_HYPHENS, SIMPLIFIED + "'''--", _DROPPED)


def fold(text: str) -> str:
    """Fold a text for matching: NFKC, case folding, traditional to simplified, no invisible marks.

    Full-width letters become plain, curly apostrophes straight, ligatures are taken apart. Chinese characters are
    mapped one by one, so that either script gives the same word. Folding twice changes nothing; the length may change.

    Example:
        >>> fold("ＧＰＴ－４ 漢語 Straße")
        'gpt-4 汉语 strasse'
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = text.translate(_AFTER_NFKC)
    if folded == text:
        return folded
    # Taking out an invisible mark can bring a letter and its accent together.
    return unicodedata.normalize("NFKC", folded)


def cache_of_texts(maxsize: int, longest: int = 1_000) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a decorator like ``functools.lru_cache`` for functions of a text; results of long texts are not kept."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        kept = cast("Callable[P, T]", lru_cache(maxsize=maxsize)(function))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            is_short = len(cast("str", args[0])) <= longest
            return kept(*args, **kwargs) if is_short else function(*args, **kwargs)

        return call

    return decorate


@cache
def unicode_runs() -> re.Pattern[str]:
    """Return the pattern for the words of texts beyond ASCII.

    Python's ``\\w`` leaves out combining marks, which would cut every Hindi or Arabic word to pieces; they are
    collected here from the Unicode tables (30 ms, once).
    """
    characters = map(chr, range(0x300, 0x1E000))
    marks = {ord(c) for c in characters if unicodedata.category(c)[0] == "M" and not SPECIAL.match(c)}
    # as ranges, which are matched faster
    firsts = [code for code in sorted(marks) if code - 1 not in marks]
    lasts = [code for code in sorted(marks) if code + 1 not in marks]
    mark = "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))
    letter = rf"[^\W_{CLOSE}]"
    word = rf"{letter}(?:{letter}|[{mark}])*"
    scripts = "|".join(f"[{script}]+" for script in (HAN, KANA, HANGUL, UNSPACED))
    return re.compile(rf"{scripts}|{_NUMBER}|{word}(?:{_JOIN}{word})*{_TAIL}")


#: About what embedding models read (8,000 tokens); longer is a document, and no question about one.
MAX_QUESTION_CHARS = 32_000


def check_question(question: Any, *, example: str = "'How ...?'") -> str:
    """Check that a value can be asked, and return it; `example` shows in the message how to give one.

    Raises:
        InvalidInputError: It is not a string, holds white space only, or more than `MAX_QUESTION_CHARS` characters.

    Example:
        >>> check_question("Who?")
        'Who?'
    """
    if not isinstance(question, str):
        raise InvalidInputError(f"question is a {type(question).__name__}; give a text, as in {example}.")
    if not question.strip():
        raise InvalidInputError(f"question is empty; give a text, as in {example}.")
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInputError(
            f"question has {len(question):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed. Ask for what "
            "matters, and put long texts into the index."
        )
    return question
