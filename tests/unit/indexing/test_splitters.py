"""Splitters by name and of other makers: exact places, everything covered, nothing too long."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import (
    Language,
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
    RecursiveJsonSplitter,
)
from support.embedding import WordEmbeddings

from rag_kit.cli.main import main
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, split
from rag_kit.indexing.splitting.named import SPLITTERS, named_splitter
from rag_kit.retrieval import ParentDocumentRetriever

WORDS = [
    "The pump runs. ",
    "水泵在四十度时启动。",
    "## 阀门\n",
    "\n\n",
    "\n",
    "aaaa",
    "  ",
    "x" * 70,
    "e\u0301",
    "👨‍👩‍👧",
    "def f():\n    pass\n",
]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=25).map("".join).filter(str.strip)


def cut(text: str, name: Any, **fields: Any) -> list[Document]:
    if name == "semantic":
        fields["embeddings"] = WordEmbeddings()
    return split([Document(text, metadata={"source": "a.py"})], splitter=name, **fields)


@pytest.mark.parametrize("name", SPLITTERS)
@settings(max_examples=30, deadline=None)
@example(text="x" * 70, size=20, share=2)
@example(text="x" * 70 + "The pump runs. " + "x" * 70, size=20, share=1)
@example(text="x" * 160 + "\n\n" + "x" * 60, size=20, share=2)
@example(text="x" * 140 + "\n\n" + "x" * 70 + "The pump runs. ", size=20, share=2)
@example(text="The pump runs. The pump runs. ", size=28, share=2)
@given(text=TEXTS, size=st.integers(20, 90), share=st.integers(0, 2))
def test_chunks_are_exact_cover_everything_and_are_bounded(
    name: str, text: str, size: int, share: int
) -> None:
    """The spans say where each chunk stands; no visible character is lost; none is longer than asked."""
    chunks = cut(text, name, chunk_size=size, chunk_overlap=size * share // 4)
    covered: set[int] = set()
    for chunk in chunks:
        start, end = chunk.metadata["start"], chunk.metadata["end"]
        assert text[start:end] == chunk.page_content and chunk.page_content.strip()
        length = len(re.findall(r"\w|[^\w\s]", chunk.page_content)) if name == "tokens" else end - start
        assert (len(chunk.page_content.split()) if name == "tokens" else length) <= size
        covered |= set(range(start, end))
    assert all(place in covered for place, mark in enumerate(text) if not mark.isspace())
    # of a chunk of one repeated letter the place may be any that holds it
    places = pairwise((chunk.metadata["start"], chunk.page_content) for chunk in chunks)
    back = [content for (before, _), (start, content) in places if start < before]
    assert not back or (
        name in ("recursive", "tokens") and all(len(set(content)) == 1 for content in back)
    ), back
    assert [chunk.metadata["chunk"] for chunk in chunks] == list(range(len(chunks)))


@settings(max_examples=25, deadline=None)
@given(text=TEXTS, size=st.integers(20, 60))
def test_tokens_are_counted_by_a_function(text: str, size: int) -> None:
    """Whatever counts: here bytes, of which a Chinese character has three."""

    def count(piece: str) -> int:
        return len(piece.encode())

    chunks = cut(text, "tokens", chunk_size=size, chunk_overlap=5, tokenizer=count)
    assert all(count(chunk.page_content) <= size for chunk in chunks)
    assert all(text[c.metadata["start"] : c.metadata["end"]] == c.page_content for c in chunks)


def test_tokens_are_counted_by_a_local_tokenizer(tmp_path: Path) -> None:
    """A ``tokenizer.json`` on the disk; the overlap repeats tokens; a file that is none is refused by name."""
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"pump": 0, "runs": 1, "[UNK]": 2}, unk_token="[UNK]")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    text = " ".join(f"pump{number}" for number in range(60))
    chunks = cut(text, "tokens", chunk_size=20, chunk_overlap=4, tokenizer=tmp_path / "tokenizer.json")
    assert [len(chunk.page_content.split()) for chunk in chunks] == [20, 20, 20, 12]
    assert chunks[1].metadata["start"] < chunks[0].metadata["end"]
    (tmp_path / "wrong.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"wrong\.json"):
        cut("pump", "tokens", tokenizer=tmp_path / "wrong.json")


def test_each_cuts_where_its_name_says() -> None:
    """Paragraphs alone; by meaning between two topics; code between functions of its language."""
    prose = "One pump. Two pumps.\n\nA valve.\n\n湖水很深。"
    assert texts(cut(prose, "paragraph")) == ["One pump. Two pumps.", "A valve.", "湖水很深。"]
    topics = (
        "Pump oil pump oil. Oil pump oil. Pump oil pump. Song dance song. Dance song song. Song dance dance."
    )
    assert texts(cut(topics, "semantic")) == [
        topics[: topics.index("Song")].strip(),
        topics[topics.index("Song") :],
    ]
    code = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    python = RecursiveCharacterTextSplitter.from_language(Language.PYTHON, chunk_size=40, chunk_overlap=0)
    assert texts(cut(code, python)) == ["def one():\n    return 1", "def two():\n    return 2"]
    headed = cut("# Lake\n\nDeep water.\n\n# Pump\n\nIt runs.", "sentence", chunk_size=20, chunk_overlap=0)
    assert headed[-1].metadata["heading"] == "Pump"


def as_json(documents: Any) -> list[Document]:
    cutter = RecursiveJsonSplitter(max_chunk_size=30)
    try:
        values = [json.loads(document.page_content) for document in documents]
    except ValueError as error:
        raise InvalidInputError("no JSON") from error
    return [Document(text) for value in values for text in cutter.split_text(value, True, False)]


def test_what_rewrites_the_text_gives_chunks_without_a_place() -> None:
    """JSON is cut into JSON; LangChain's splitter by headings leaves the headings out of its texts."""
    chunks = cut(json.dumps({"水泵": {"start": 40, "stop": 70}, "valve": ["a", "b"]}), as_json)
    assert len(chunks) > 1 and all("start" not in chunk.metadata for chunk in chunks)
    assert "水泵" in chunks[0].page_content and all(json.loads(chunk.page_content) for chunk in chunks)

    def shouted(documents: Any) -> list[Document]:
        return [Document(doc.page_content.upper()) for doc in documents]

    assert (
        "start"
        not in split([Document("deep", metadata={"start": 3, "end": 7})], splitter=shouted)[0].metadata
    )


def test_any_langchain_splitter_will_do_and_names_serve_parents_too(tmp_path: Path) -> None:
    """With its own sizes, places included; children of parents are cut by the same names."""
    theirs = RecursiveCharacterTextSplitter(chunk_size=30, chunk_overlap=10)
    chunks = cut("The lake is deep. " * 10, theirs)
    assert chunks[-1].metadata["end"] == 179 and all(len(chunk.page_content) <= 30 for chunk in chunks)
    manual = Document("The pump starts. It stops. 阀门在夜里关闭。", id="m")
    with ParentDocumentRetriever.from_documents(
        [manual], child_splitter="sentence", child_size=20
    ) as parents:
        assert len(parents.index.ids()) == 2
        assert parents.invoke("阀门")[0].page_content == manual.page_content
    with pytest.raises(InvalidInputError, match="sentense"):
        ParentDocumentRetriever.from_documents([manual], child_splitter="sentense")


def test_mistakes_are_named() -> None:
    """An unknown name lists the known ones; what is missing is said before anything is cut."""
    with pytest.raises(InvalidInputError, match="allowed: 'structure', 'tokens'"):
        cut("a", "sentences")
    with pytest.raises(InvalidInputError, match="text splitter or a function"):
        cut("a", 3)
    with pytest.raises(ConfigurationError, match="embedding model"):
        named_splitter("semantic")
    with pytest.raises(InvalidInputError, match="for splitter='tokens'"):
        cut("a", "structure", tokenizer=len)


def test_an_index_remembers_its_splitter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By name; another splits all files again; one that was given as an object must be given again."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Lake\n\nDeep water. Cold water.\n\n# 湖\n\n湖水很深。\n", encoding="utf-8")
    command = ["ingest", str(docs), "--index", str(tmp_path / "index"), "--embedding-model", "none"]
    assert main([*command, "--splitter", "paragraph"]) == 0
    with DocumentIndex.open(tmp_path / "index") as index:
        assert "Deep water. Cold water." in texts(index.get(index.ids()))
    again = ingest(docs, tmp_path / "index")
    assert (again.updated, again.unchanged) == (0, 1)
    report = ingest(docs, tmp_path / "index", options=IngestOptions(splitter="sentence"))
    assert report.updated == 1 and any("splitter changed" in note for note in report.notes)
    own = MarkdownHeaderTextSplitter([("#", "part")])

    def by_heading(documents: Any) -> list[Document]:
        return [part for doc in documents for part in own.split_text(doc.page_content)]

    report = ingest(docs, tmp_path / "index", options=IngestOptions(splitter=by_heading))
    with DocumentIndex.open(tmp_path / "index") as index:
        assert {doc.metadata.get("part") for doc in index.get(index.ids())} == {"Lake", "湖"}
    with pytest.raises(InvalidInputError, match="by_heading"):
        ingest(docs, tmp_path / "index")
    capsys.readouterr()


def test_a_file_that_its_splitter_cannot_cut_is_reported_and_the_others_go_in(tmp_path: Path) -> None:
    """As one that cannot be read: its name, and why."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("no json", encoding="utf-8")
    (tmp_path / "docs" / "b.txt").write_text('{"pump": {"start": 40}}', encoding="utf-8")
    report = ingest(tmp_path / "docs", tmp_path / "index", options=IngestOptions(splitter=as_json))
    assert report.added == 1 and [(name, "no JSON" in why) for name, why in report.failed] == [("a.md", True)]


def texts(documents: list[Document]) -> list[str]:
    return [doc.page_content for doc in documents]


@pytest.mark.parametrize(("made", "named"), [(3, "int"), (None, "NoneType"), (["湖"], "str")])
def test_the_error_for_a_function_that_gives_no_documents_says_what_to_give(made, named):
    """A number, nothing, or bare texts."""
    with pytest.raises(InvalidInputError, match=rf"gave {named}; it gets a list of documents .* \[Document"):
        split([Document("a")], splitter=lambda documents: made)
