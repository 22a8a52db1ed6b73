"""Whether two texts are in different languages, so that their words cannot be compared."""

from __future__ import annotations

import re

_SCRIPTS = {
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "kana": "\u3040-\u30ff",
    "hangul": "\uac00-\ud7af",
    "cyrillic": "\u0400-\u04ff",
    "arabic": "\u0600-\u06ff",
    "hebrew": "\u0590-\u05ff",
    "greek": "\u0370-\u03ff",
    "devanagari": "\u0900-\u097f",
    "thai": "\u0e00-\u0e7f",
}
_SCRIPT = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
_LATIN = re.compile(r"[a-z\u00c0-\u024f]+")
_FUNCTION_WORDS = {
    "en": "the of and to is was are were by with for that from it its has have which not at on be this or a "
    "an as they their his her you your can will he she we been there when who than but if",
    "de": "der die das und ist war wird wurde nicht mit von den dem des ein eine einer einen für auf im zu sind sich",
    "fr": "le la les des est était une et du dans pour par qui que sur avec pas aux sont ce cette au il elle de en",
    "es": "el la los las es era una y del por con para que se su en de al un fue está son",
    "it": "il la gli le è era una e del della di per con che non si nel nella un da sono al dei",
    "pt": "o os é era uma e da de por com para que não se na um foi são em ao",
    "nl": "de het een en van voor met niet dat op te zijn wordt werd bij aan door",
}
_LANGUAGE = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
_WINDOW = 4000
_TERM = 3
"""Words in Latin letters that may be a name or a term."""
_LETTER_WORD = 4
"""Letters that weigh as much as one Chinese character."""


def written_in(text: str) -> str:
    """The script of a text, or for Latin letters the language, where its function words tell it; else "latin" or "".

    Example:
        >>> written_in("The house is red."), written_in("Das Haus ist rot."), written_in("这所房子是红色的。")
        ('en', 'de', 'han')
        >>> written_in("Paris"), written_in("42")
        ('latin', '')
    """
    text = text[:_WINDOW].lower()
    letters = {name: len(pattern.findall(text)) for name, pattern in _SCRIPT.items()}
    if letters["kana"] * 5 > letters["han"]:
        letters["kana"] += letters["han"]
    words = _LATIN.findall(text)
    letters["latin"] = sum(map(len, words)) // _LETTER_WORD
    script = max(letters, key=lambda name: letters[name])
    if not letters[script]:
        return "latin" if words else ""
    if script != "latin":
        return script
    counts = {name: sum(word in known for word in words) for name, known in _LANGUAGE.items()}
    most = sorted(counts, key=lambda name: -counts[name])
    return most[0] if counts[most[0]] > counts[most[1]] + 1 else "latin"


def other_language(statement: str, passage: str) -> bool:
    """Whether a statement is in another language than its passage; False where one of them does not tell.

    Example:
        >>> other_language("水壶保修三年。", "The kettle has a warranty."), other_language("Paris.", "这是巴黎。")
        (True, False)
    """
    stated, cited = written_in(statement), written_in(passage)
    if stated == cited or not stated or not cited:
        return False
    if "latin" in (stated, cited):  # a name or a term alone may stand in any script
        latin, other = (statement, cited) if stated == "latin" else (passage, stated)
        return other in _SCRIPTS and len(_LATIN.findall(latin[:_WINDOW].lower())) > _TERM
    return True
