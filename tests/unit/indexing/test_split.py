"""Cutting documents into chunks."""

from __future__ import annotations

import random
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.splitting import packing
from rag_kit.indexing.splitting.api import split
from rag_kit.text import sentences

LINES = st.sampled_from(
    [
        "# A heading",
        "## 第二节",
        "###### deep",
        "Title\n=====",
        "| a | b |",
        "| --- | --- |",
        "| 一 | 二 |",
        "```python",
        "```",
        "    x = 1",
        "- an item. With two sentences.",
        "  - inner",
        "12. numbered",
        "> quoted",
        "",
        "",
        "Dr. Li paid $3.50 for it. “Really?” he asked! Yes, etc. and so on; see e.g. Fig. 2.",
        "检索增强生成把检索与生成结合在一起。真的吗？“是的！”他说；然后走了……",
        "a line that was broken by the width of the page and goes on",
        "in the next one, without any stop",
        "x" * 70,
        "汉" * 70,
        "e\u0301" * 30,
        "👩\u200d👩\u200d👧🇨🇭👍🏽" * 4,
        "\u3000全角空格 and\ttabs",
    ]
)
TEXTS = st.one_of(
    st.lists(LINES, max_size=30).map("\n".join),
    st.lists(LINES, max_size=12).map("\n\n".join),
    st.text(alphabet="ab。. \n#|-`1)！《》“”é\u0301👍🏽\u200d🇨🇳字", max_size=200),
    st.text(max_size=200),
)


def split_spans(text: str, **settings: Any) -> list[packing.Span]:
    return list(packing.split_spans(text, **settings))


def spans_are_right(text: str, size: int, overlap: int, markdown: bool = True) -> None:
    spans = split_spans(text, chunk_size=size, chunk_overlap=overlap, markdown=markdown)
    covered = bytearray(len(text))
    for span in spans:
        assert 0 < span.end - span.start <= size
        assert text[span.start : span.end].strip()
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
    for one, two in pairwise(spans):
        assert one.start < two.start and one.end < two.end
        assert one.end - two.start <= overlap
    assert all(flag or text[place].isspace() for place, flag in enumerate(covered))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(text=TEXTS, size=st.integers(20, 300), share=st.floats(0, 0.5), markdown=st.booleans())
def test_no_text_is_lost_whatever_the_text(text, size, share, markdown):
    """Spans are in order, not blank, within the size and the overlap, and hold every visible character."""
    spans_are_right(text, size, int(size * share), markdown)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(LINES, max_size=25),
    size=st.sampled_from([60, 120, 200, 500]),
    overlap=st.sampled_from([0, 30]),
)
def test_no_sentence_is_cut_that_fits_into_a_chunk(lines, size, overlap):
    """The sentences are those of rag_kit.text; a cut stands inside one only if it is longer than the chunk size."""
    text = "\n\n".join(
        line for line in lines if line.strip("`") and not line.lstrip().startswith(("|", "    "))
    )
    spans = split_spans(text, chunk_size=size, chunk_overlap=overlap)
    cuts = {span.start for span in spans} | {span.end for span in spans}
    for sentence in sentences(text, max_chars=100_000):
        if len(sentence.text) <= size:
            assert not any(sentence.start < cut < sentence.end for cut in cuts), sentence


@settings(max_examples=60, deadline=None)
@given(
    characters=st.lists(
        st.sampled_from(["e\u0301", "👩\u200d👧", "👍🏽", "葛\U000e0100", "ก็", "x"]), max_size=150
    )
)
def test_no_character_is_torn(characters):
    """Combining marks, joined emoji and variants stay with what they belong to."""
    text = "".join(characters)
    edges, place = {0}, 0
    for character in characters:
        place += len(character)
        edges.add(place)
    for span in split_spans(text, chunk_size=20, chunk_overlap=0):
        assert span.start in edges and span.end in edges


def test_offsets_metadata_and_numbers():
    """Chunks are verbatim slices; numbers run over all parts of a source; the given documents stay as they were."""
    pages = [
        Document(
            "# A\n\nOne sentence. " + "Two is longer. " * 5,
            metadata={"source": "x", "page": 1, "tags": ["t"]},
        ),
        Document("Three.", metadata={"source": "x", "page": 2, "heading": "A"}),
        Document("Four.", metadata={"source": "y"}),
    ]
    chunks = split(pages, chunk_size=40, chunk_overlap=0)
    parts = {1: pages[0], 2: pages[1], None: pages[2]}
    for chunk in chunks:
        part = parts[chunk.metadata.get("page")]
        assert chunk.page_content == part.page_content[chunk.metadata["start"] : chunk.metadata["end"]]
    last = len(chunks) - 2
    assert [chunk.metadata["chunk"] for chunk in chunks] == [*range(last + 1), 0]
    assert chunks[last].metadata["heading"] == "A" and "heading" not in chunks[-1].metadata
    chunks[0].metadata["tags"].append("changed")
    assert pages[0].metadata == {"source": "x", "page": 1, "tags": ["t"]}


def test_headings_cut_and_their_path_is_kept():
    """A chunk never crosses a heading; headings that follow each other at once stay with their text."""
    text = "Intro.\n\n# A\n\n## B\n\nunder b\n\n### C ###\n\nunder c\n\n## D\n\nunder d\n\nE\n===\n\nunder e"
    found = [(text[s.start : s.end], s.heading) for s in split_spans(text)]
    assert found == [
        ("Intro.", ""),
        ("# A\n\n## B\n\nunder b", "A > B"),
        ("### C ###\n\nunder c", "A > B > C"),
        ("## D\n\nunder d", "A > D"),
        ("E\n===\n\nunder e", "E"),
    ]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# C#\n\nx\n\n## 用 F# ##\n\ny", ["C#", "C# > 用 F#"]),
        ("A\n=\n\nB\n===\n\nx\n\nC\n---\n\ny", ["", "B", "B > C"]),
        ("---\ntags: a\n---\n\nx\n\ntwo\nlines\n---\n\n| a |\n---\n", [""]),
        ("---\nlayout: post\n\ntags: a\n---\n\nB\n---\n\nx", ["", "B"]),
        (
            "The pump starts.\n---\n\n水泵启动。 \n---\n\n2. two\n---\n\n</p>\n---\n\n"
            + "w " * 101
            + "w\n---\nx",
            [""],
        ),
    ],
)
def test_signs_of_headings(text, headings):
    """Signs that close a heading are apart from it; a line is under a heading that has a blank line above."""
    assert [span.heading for span in split_spans(text)] == headings


def test_a_section_that_began_on_an_earlier_page_goes_on():
    """The heading in a part's metadata holds until the part's own headings say otherwise."""
    text = "still b\n\n## D\n\nunder d"
    assert [span.heading for span in split_spans(text, heading="A > B")] == ["A > B", "A > D"]


def test_hash_signs_are_no_headings_in_code_or_plain_text():
    """In a fence, and in files that are not markdown."""
    text = "# A\n\n```\n# comment\nx = 1\n```\n\nafter"
    assert [span.heading for span in split_spans(text)] == ["A"]
    (chunk,) = split([Document("# not a heading\n\ntext", metadata={"format": "txt"})])
    assert "heading" not in chunk.metadata


@pytest.mark.parametrize(("edge", "end"), [("| ", ""), ("", ""), ("", " |")])
def test_tables_stay_whole_or_are_cut_between_rows_with_their_header_noted(edge, end):
    """Rows are never torn, and a later piece knows the header; also without bars at the edges."""
    header = f"{edge}name | age{end}\n{edge}--- | ---{end}"
    rows = [f"{edge}person {n} | {n} | x" for n in range(30)]
    table = "\n".join([header, *rows])
    text = "Before the table stands a sentence.\n\n" + table + "\n\nAfter it."
    whole = split_spans(text, chunk_size=len(table), chunk_overlap=0)
    assert table in [text[s.start : s.end] for s in whole]
    pieces = split_spans(text, chunk_size=150, chunk_overlap=60)
    for span in pieces:
        for line in text[span.start : span.end].split("\n"):
            assert line in {
                "",
                "Before the table stands a sentence.",
                "After it.",
                *rows,
                *header.split("\n"),
            }
    assert [span.table_header for span in pieces[1:-1]] == ["", *[header] * (len(pieces) - 3)] or (
        pieces[1].table_header == header
    )
    assert sum(text[s.start : s.end].count("person 7 |") for s in pieces) == 1


def test_code_is_cut_between_lines_and_keeps_its_indentation():
    """A fence that does not fit is cut after a line."""
    lines = [f"    value_{n} = compute({n})" for n in range(20)]
    text = "Text before.\n\n```python\ndef f():\n" + "\n".join(lines) + "\n```\n\nText after."
    found = [text[s.start : s.end] for s in split_spans(text, chunk_size=120, chunk_overlap=0)]
    assert all(line in "\n".join(found).split("\n") for line in lines)


def test_overlap_repeats_whole_sentences():
    """Each chunk but the first begins with the end of the one before, if a sentence fits into the overlap."""
    text = " ".join(f"This is sentence number {n}." for n in range(40))
    found = split_spans(text, chunk_size=120, chunk_overlap=60)
    for one, two in pairwise(found):
        shared = text[two.start : one.end]
        assert shared.startswith("This is") and shared.endswith(".") and len(shared) <= 60


def test_chinese_chunks_end_at_punctuation():
    """A text of ordinary Chinese sentences is cut at its stops, all of it."""
    random.seed(3)
    text = "".join("水" * random.randint(5, 60) + random.choice("。！？") for _ in range(300))
    chunks = split([Document(text)], chunk_size=200, chunk_overlap=20)
    assert all(unicodedata.category(chunk.page_content[-1]).startswith("P") for chunk in chunks)
    clauses = "".join("水" * 50 + "，" for _ in range(40))
    assert all(chunk.page_content.endswith("，") for chunk in split([Document(clauses)], chunk_size=200))


def test_splitting_is_deterministic_and_empty_documents_give_nothing():
    """The same input, the same chunks; blank text, no chunk."""
    text = "# A\n\n" + "Some text. 一些文字。" * 50
    assert split([Document(text)]) == split([Document(text)])
    assert split([Document(""), Document(" \n\t")]) == [] and split([]) == []


def test_the_default_overlap_of_small_chunks_is_half_of_them():
    """Without an overlap of the caller's own, a size below 200 is allowed."""
    text = Document("Some words of a sentence stand here. " * 9)
    assert split([text], chunk_size=150) == split([text], chunk_size=150, chunk_overlap=75)
    assert len(split([text], chunk_size=150)) > len(split([text], chunk_size=150, chunk_overlap=0))


@pytest.mark.parametrize(
    ("settings_", "named"),
    [
        ({"chunk_size": 0}, "chunk_size=0"),
        ({"chunk_size": 10}, "20 characters or more"),
        ({"chunk_size": 100, "chunk_overlap": 51}, "chunk_overlap=51"),
        ({"chunk_size": None}, "whole number"),
        ({"chunk_overlap": -1}, "chunk_overlap=-1"),
        ({"chunk_size": 100.0}, "whole number"),
        ({"chunk_size": True}, "whole number"),
    ],
)
def test_wrong_sizes_are_refused(settings_, named):
    """The message says what was given and what is allowed."""
    with pytest.raises(InvalidInputError, match=named):
        split([Document("x")], **settings_)


def test_only_documents_are_split():
    """A plain string is told from a document."""
    with pytest.raises(InvalidInputError, match=r"documents\[0\]"):
        split(["text"])  # type: ignore[list-item]


def test_only_the_paragraphs_at_a_cut_are_cut_into_sentences(monkeypatch):
    """About one of many short paragraphs a chunk, for the overlap."""
    cut: list[str] = []
    real = packing.sentences
    monkeypatch.setattr(packing, "sentences", lambda text, **more: cut.append(text) or real(text, **more))
    text = "\n\n".join(f"Paragraph {number} says little. It is short." for number in range(1000))
    chunks = split([Document(text)])
    assert len(cut) <= len(chunks) < 60
    assert all(chunk.page_content.startswith(("Paragraph", "It is short.")) for chunk in chunks)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n| --- | --- |\n" + "| some cell | 12.5 |\n" * 40_000,
        "| a | b |\n" * 60_000,
        "." * 600_000,
        "……" * 300_000,
        'He said so.""' * 40_000,
        "a\n" + (" " * 99 + "\n") * 20_000 + "b",
        "So." + "[1]" * 200_000,
        "So.[1" + ",2" * 300_000,
    ],
    ids=["table", "rows", "stops", "ellipses", "quotes", "spaces", "citations", "citation"],
)
def test_the_time_of_a_split_grows_with_the_text(text: str) -> None:
    """Each of these took minutes: every row of a table was matched to the table's end, every run looked at anew."""
    spans = list(packing.split_spans(text))
    assert spans[0].start == 0 and spans[-1].end >= len(text.rstrip()) - 1
    assert all(0 < span.end - span.start <= 1000 for span in spans)


def test_headings_and_table_headers_do_not_multiply_a_file() -> None:
    """A heading or a header line as long as a book is not copied into each chunk below it."""
    heading = "# " + "word " * 20_000 + "\n\n" + "One sentence of text. " * 20_000
    header = "| a " * 20_000 + "|\n" + "|---" * 20_000 + "|\n" + "| b | c |\n" * 20_000
    for text in (heading, header):
        chunks = split([Document(text)])
        carried = sum(len(str(value)) for chunk in chunks for value in chunk.metadata.values())
        assert carried < 2 * len(text)
    (chunk, *_) = split([Document("# " + "long " * 100 + "\n\n## 深\n\nText.")])
    assert chunk.metadata["heading"].endswith(" > 深") and len(chunk.metadata["heading"]) == 204
