"""Text files in the encodings that people have."""

from __future__ import annotations

import codecs
from itertools import product

import pytest

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing.readers.encodings import decode

SIMPLIFIED = "检索增强生成把检索与生成结合在一起，先找到相关的段落，再写出有依据的答案。"
TRADITIONAL = "檢索增強生成把檢索與生成結合在一起，先找到相關的段落，再寫出有依據的答案。"
KOREAN = "이 보고서는 국회입법조사처에서 발행한 것으로, 보험금 지급 문제를 다룬다."
JAPANESE = "これは日本語の文章です。湖は深くて冷たいので、冬に泳ぐ人はいません。"
FRENCH = "Le café était déjà fermé; l'élève a mangé une crème brûlée."


@pytest.mark.parametrize("text", [SIMPLIFIED, TRADITIONAL, KOREAN, JAPANESE, FRENCH, "plain", "emoji 🦆"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_with_or_without_mark(text, encoding):
    """UTF-8 always; UTF-16 and UTF-32 by their mark."""
    assert decode(text.encode(encoding)) == text
    assert decode(codecs.BOM_UTF16_BE + text.encode("utf-16-be")) == text
    assert decode(codecs.BOM_UTF8 * 2 + text.encode() + codecs.BOM_UTF8) == text  # files put together


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SIMPLIFIED, "gb18030"),
        (SIMPLIFIED, "gbk"),
        (SIMPLIFIED[:8], "gb18030"),
        (TRADITIONAL, "big5"),
        (TRADITIONAL[:12], "big5"),
        (KOREAN, "cp949"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (FRENCH, "cp1252"),
        ("RAG 检索 " * 3 + "uses retrieval", "gb18030"),
        ("name,城市\nLi,北京\nWang,上海\n", "gb18030"),
        ("name,城市\nLi,臺北\nWang,高雄\n", "big5"),
    ],
)
def test_legacy_encodings_are_told_apart(text, encoding):
    """Short texts too: the encoding is found by how usual its characters are."""
    assert decode(text.encode(encoding)) == text


def test_a_declared_charset_is_believed_in_markup_only():
    """An HTML meta element settles what bytes alone cannot."""
    data = '<meta charset="windows-1251"><p>Утка'.encode("windows-1251")
    assert "Утка" in decode(data, markup=True)
    assert decode(b'charset="utf-16" plain', markup=True) == 'charset="utf-16" plain'


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(SIMPLIFIED, "gb18030"), (SIMPLIFIED, "utf-8"), (TRADITIONAL, "big5"), (JAPANESE, "utf-8")],
)
def test_a_damaged_byte_makes_no_rubbish_of_the_rest(text, encoding):
    """A file cut within its last character, or with a byte pasted in, is read but for that place."""
    lines = f"{text}\n".encode(encoding) * 20
    cut, pasted = decode(lines[:-2]), decode(lines[: len(lines) // 2] + b"\xff" + lines[len(lines) // 2 :])
    assert cut.startswith(f"{text}\n" * 19)
    assert pasted.startswith(f"{text}\n" * 9)
    assert pasted.endswith(f"{text}\n" * 9)


RUSSIAN = "Договор аренды действует до первого марта. Насос запускается при сорока градусах."
UKRAINIAN = "Насос запускається за сорока градусів, якщо ємність заповнена."
GREEK = "Η αντλία ξεκινά στους σαράντα βαθμούς."
POLISH = "Pompa włącza się przy czterdziestu stopniach, gdy zbiornik jest pełny."
TURKISH = "Pompa kırk derecede çalışır; değeri hiçbir zaman aşılmamalıdır, çünkü yağ ısınır."
HEBREW = "המשאבה מתחילה לפעול בארבעים מעלות."
ARABIC = "تبدأ المضخة العمل عند أربعين درجة."
THAI = "ปั๊มจะเริ่มทำงานที่อุณหภูมิสี่สิบองศา"
LITHUANIAN = "Siurblys įsijungia esant keturiasdešimčiai laipsnių, kai talpykla pilna."
GERMAN = "Die Übergabe erfolgt täglich um fünf Uhr, größere Mengen nur nach Absprache."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN[:30], "cp1251"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "cp866"),
        (UKRAINIAN, "koi8-u"),
        (GREEK, "cp1253"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859-2"),
        (TURKISH, "cp1254"),
        (HEBREW, "cp1255"),
        (ARABIC, "cp1256"),
        (LITHUANIAN, "cp1257"),
        (THAI, "cp874"),
        (GERMAN, "cp1252"),
        ("La señora Muñoz pagó 5 € — ½ día; à Orléans, œuvre, naïve façade.", "cp1252"),
        ("Le coût s'élève à 45 €. Été à Nîmes : 30 °C. Cœur naïf, où, ça.", "cp1252"),
        ("Name,Price\nPump,£940\nSeal,£4.50\n", "cp1252"),
        ("It’s 20 €, 5 m² at 40 °C, or so «they» said.", "cp1252"),
        ("Łódź", "cp1250"),
        ("Jablonec nad Nysą", "iso8859-2"),
        ("Klawisz z kropką; młyn i mamą", "iso8859-2"),
        (SIMPLIFIED, "gb18030"),
        (JAPANESE, "iso2022_jp"),
        (KOREAN, "iso2022_kr"),
        (SIMPLIFIED, "hz"),
        (SIMPLIFIED, "utf-7"),
        (GERMAN, "utf-7"),
        ("Größe der Pumpe – 5 €\n", "utf-7"),
        *product(
            (SIMPLIFIED, TRADITIONAL, KOREAN, RUSSIAN, GERMAN, THAI, "plain text"), ("utf-16-le", "utf-16-be")
        ),
    ],
)
def test_an_encoding_that_is_guessed_is_right_and_noted(text, encoding):
    """The text comes out, and a note names the encoding."""
    with use_notes() as notes:
        assert decode(text.encode(encoding)) == text
    assert len(notes.texts) == 1 and notes.texts[0].startswith("encoding guessed: ")


@pytest.mark.parametrize("text", [GERMAN, SIMPLIFIED, RUSSIAN, KOREAN, THAI])
@pytest.mark.parametrize("harm", ["lost", "changed", "cut"])
def test_a_damaged_byte_of_utf8_is_one_replacement_character(text, harm):
    """The rest stays UTF-8, also where the damaged character is one of few beyond ASCII."""
    data = text.encode()
    place = next(i for i in range(len(data) // 2, len(data)) if data[i] > 0x7F)
    damaged = {
        "lost": data[:place] + data[place + 1 :],
        "changed": data[:place] + b"?" + data[place + 1 :],
        "cut": data[: max(i for i in range(len(data)) if data[i] > 0xBF) + 1],
    }[harm]
    with use_notes() as notes:
        read = decode(damaged)
    assert 1 <= read.count("\ufffd") <= 2 and read.startswith(text[: len(text) // 4])
    assert not set(read) - set(text) - set("\ufffd?")
    assert notes.texts[-1].startswith("damaged at ")


def test_a_guess_looks_where_a_long_file_is_not_ascii():
    """Lines of ASCII at its beginning say nothing."""
    assert decode(b"a line of a log\n" * 20_000 + RUSSIAN.encode("cp1251")).endswith(RUSSIAN)


def test_a_text_in_utf8_leaves_no_note():
    """Nothing was guessed of UTF-8, ASCII, or what a mark or a declaration says."""
    with use_notes() as notes:
        decode(SIMPLIFIED.encode())
        decode(b"plain")
        decode(b"C++ and a+b-c; ~{x}; call +49 30 1234567 or rock+pop+soul+password \x1b[31mred\x1b[0m")
        decode(SIMPLIFIED.encode("utf-16"))
        decode('<meta charset="windows-1251"><p>Утка'.encode("cp1251"), markup=True)
        decode(JAPANESE.encode("iso-2022-jp"), declared="ISO-2022-JP")
    assert notes.texts == []
