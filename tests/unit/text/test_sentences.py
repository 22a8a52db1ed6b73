from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_kit.errors import InvalidInputError
from rag_kit.text import sentences

CASES = [
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("Mr. J. R. Smith paid $3.14 in Fig. 3. He left.", ["Mr. J. R. Smith paid $3.14 in Fig. 3.", "He left."]),
    (
        "It was fine, e.g. red, cf. Jones et al. 2004. So be it.",
        ["It was fine, e.g. red, cf. Jones et al. 2004.", "So be it."],
    ),
    (
        "The U.S. economy grew. It works at 5 p.m. She does not.",
        ["The U.S. economy grew.", "It works at 5 p.m.", "She does not."],
    ),
    ("See vitamin C. The end.", ["See vitamin C.", "The end."]),
    ('"Stop!" he said. He left.', ['"Stop!" he said.', "He left."]),
    ("(It rained.) Then it stopped.", ["(It rained.)", "Then it stopped."]),
    ("Wait... what? I said no... Then he left.", ["Wait... what?", "I said no...", "Then he left."]),
    ("Visit example.com. Then use v2.0.1 now.", ["Visit example.com.", "Then use v2.0.1 now."]),
    (
        "Paris is the capital [1]. It is big.[2] So [3].",
        ["Paris is the capital [1].", "It is big.[2]", "So [3]."],
    ),
    ("# Title\n\nText one. Two.\n- item\n- more", ["# Title", "Text one.", "Two.", "- item", "- more"]),
    ("1. Step one\n2. Step two\n", ["1. Step one", "2. Step two"]),
    ("今天下雨。明天晴！后天呢？", ["今天下雨。", "明天晴！", "后天呢？"]),
    ("“真的吗？”他问。“是的。”她答。", ["“真的吗？”他问。", "“是的。”她答。"]),
    ("《你好，李焕英！》很好看。价格是3.5元。", ["《你好，李焕英！》很好看。", "价格是3.5元。"]),
    ("他（真的！）来了。走吧。", ["他（真的！）来了。", "走吧。"]),
    (
        "是的……也许吧。GPT-4o在v2.0.1版发布.接着升级。",
        ["是的……也许吧。", "GPT-4o在v2.0.1版发布.", "接着升级。"],
    ),
    (
        "第一章 概述\n本章介绍概念。\n（一）背景\n二、方法",
        ["第一章 概述", "本章介绍概念。", "（一）背景", "二、方法"],
    ),
    (
        "Der Rest verfällt am 31. März. Max. 5 Tage, z. B. im 3. Quartal, siehe Nr. 4.",
        ["Der Rest verfällt am 31. März.", "Max. 5 Tage, z. B. im 3. Quartal, siehe Nr. 4."],
    ),
    (
        "Im 2. Abschnitt, z. B. die 3. Zeile. Der 5. Treffer.",
        ["Im 2. Abschnitt, z. B. die 3. Zeile.", "Der 5. Treffer."],
    ),
    ("| Dr. Lee. He won. | 5 |\n| Eva. | 6 |", ["| Dr. Lee. He won. | 5 |", "| Eva. | 6 |"]),
    ("", []),
    (" \n\t\n", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_boundaries(text: str, expected: list[str]) -> None:
    """Abbreviations, decimals, initials, quotes, brackets, lists, headings, titles and ellipses."""
    assert [sentence.text for sentence in sentences(text)] == expected


def test_hard_wrapped_lines_run_on() -> None:
    """A line broken by the page width is no boundary; a short line (a heading) is."""
    text = "Introduction\nThe quick brown fox jumps over the lazy dog and then\nit sleeps. New one."
    assert [s.text for s in sentences(text)][1:] == [text.split("\n", 1)[1].split(" New")[0], "New one."]


@given(st.text(alphabet=st.sampled_from("aB1. 。!？…”\"'()（）《》\n\r-[]\u2028,，猫"), max_size=200))
def test_offsets_are_exact_and_nothing_is_lost(text: str) -> None:
    """Every sentence is a span of the source, in order, and only white space lies between."""
    found = sentences(text, max_chars=20)
    end = 0
    for sentence in found:
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text == sentence.text.strip()
        assert 0 < len(sentence.text) <= 20
        assert not text[end : sentence.start].strip()
        end = sentence.end
    assert not text[end:].strip()


def test_long_text_without_stops_is_bounded_and_fast() -> None:
    """A hundred kilobytes without punctuation, or of nothing but, is cut in linear time."""
    for text in (
        "字" * 100_000,
        "word " * 20_000,
        "." * 100_000,
        "a." * 50_000,
        "《" * 100_000,
        "\n" * 100_000,
    ):
        start = time.perf_counter()
        assert all(len(sentence.text) <= 1000 for sentence in sentences(text))
        assert time.perf_counter() - start < 4


def test_cut_prefers_commas() -> None:
    """An overlong sentence is cut after a comma."""
    text = "一二三四五六七八九十，" * 10
    assert all(sentence.text.endswith("，") for sentence in sentences(text, max_chars=50))


def test_too_small_a_bound_is_refused() -> None:
    """max_chars below 20 is an error that says so."""
    with pytest.raises(InvalidInputError, match="20 or more"):
        sentences("a", max_chars=5)


@pytest.mark.parametrize("mark", ["[1]", " [1][2]", "[1, 3]", "【1】"])
def test_a_row_that_is_cited_is_one_sentence(mark: str) -> None:
    """A stop inside a row ends no sentence, also where citations follow its last bar."""
    rows = [f"| pump | does it start? |{mark}", f"| fan | is it loud? |{mark}"]
    assert [sentence.text for sentence in sentences("\n".join(rows))] == rows
