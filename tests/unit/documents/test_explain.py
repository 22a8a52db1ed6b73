from __future__ import annotations

import re
import sys
import unicodedata

from langchain_core.documents import Document

from rag_kit.documents import add_note, clean_text, explain, with_provenance

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31mred\x1b[0m \x9b2J \u202eevil\u202c "
    "\u2066iso\u2069 \u200e\u200f zero\u200bwidth \ufeff \x00 \r over \U000e0041 $\\alpha$ &amp;"
)


def hostile_document() -> Document:
    doc = Document(HOSTILE, metadata={"file": HOSTILE, "heading": HOSTILE})
    doc = with_provenance(doc, score=1.0, rank=1, stage=HOSTILE, retriever=HOSTILE, query=HOSTILE, weight=0.5)
    return add_note(doc, HOSTILE)


def test_hostile_text_is_inert_in_text() -> None:
    """No control, bidirectional or invisible character reaches the terminal; they show as escapes."""
    shown = str(explain([hostile_document(), Document("second")], width=4000))
    assert not [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    for escape in (r"\x1b", r"\x9b", r"\u202e", r"\u2066", r"\u200f", r"\u200b", r"\x00"):
        assert escape in shown


def test_hostile_text_is_inert_in_html() -> None:
    """Nothing in a document becomes a tag, an entity, a formula or a turned line in Jupyter."""
    page = explain([hostile_document(), Document("second")])._repr_html_()
    tags = set(re.findall(r"<\s*/?([a-zA-Z]+)", page))
    assert tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "bdi", "br", "em", "p"}
    assert "&lt;script&gt;" in page and "&amp;amp;" in page
    assert "mathjax_ignore" in page
    assert not [c for c in page if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]


def test_all_control_and_format_characters_are_escaped() -> None:
    """Every control and format character of Unicode is escaped, but newline, tab and some visible Arabic signs."""
    arabic = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
    visible = {*arabic, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
    missed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and code not in visible
        and chr(code) not in "\n\t"
        and clean_text(chr(code)) == chr(code)
    ]
    assert missed == []
    assert clean_text("plain\n\ttext 中文 é 😀 – “q”") == "plain\n\ttext 中文 é 😀 – “q”"


def test_every_stage_is_told() -> None:
    """The text names rank, score, place and for each stage the retriever, rank, score, weight and query.

    A retriever that is named for its stage is named once.
    """
    doc = Document("Body.", metadata={"file": "a.md", "page": 2})
    doc = with_provenance(doc, score=7.5, rank=3, stage="bm25", retriever="words", query="why", weight=0.4)
    doc = with_provenance(doc, score=0.25, rank=1, stage="rerank", retriever="judge", query="why")
    shown = str(explain([doc]))
    first = "bm25 · words · rank 3 · score 7.5 · weight 0.4"
    twin = with_provenance(Document("t"), score=1.0, rank=1, stage="bm25", retriever="bm25", query="q")
    assert "     bm25 · rank 1" in str(explain([twin]))
    assert all(part in shown for part in ("a.md", "page 2", first, "rerank · judge", '"why"', "Body."))


def test_a_note_of_all_documents_is_shown_once() -> None:
    """A degradation, which every result carries, is told once."""
    shown = str(explain([add_note(Document(text), "degraded: x") for text in "abc"]))
    assert shown.count("degraded: x") == 1


def test_edge_cases() -> None:
    """No documents, documents without provenance, and long lines."""
    assert str(explain([])) == "no documents"
    assert "no documents" in explain([])._repr_html_()
    assert "1." in str(explain([Document("x")]))
    assert max(map(len, str(explain([hostile_document()], width=60)).splitlines())) <= 60
