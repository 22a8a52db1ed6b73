"""Documents with children in a DocumentIndex: one write life cycle, no orphan and no half."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from support.embedding import WordEmbeddings
from support.families import numbered

from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index import writing
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.indexing.splitting.api import spans_of
from rag_kit.indexing.splitting.hierarchy import check_family_sizes, sentence_family, split_family

pytestmark = pytest.mark.usefixtures("backend")


def cut(*documents: Document) -> list[Family]:
    return [sentence_family(document) for document in documents]


def content(index: DocumentIndex) -> Any:
    """All that an index holds: parents, children with their places, vectors, what is found."""
    ids = index.ids()
    with index.families() as view:
        parents = view.parents(
            [key for (key,) in view._connection.execute("SELECT id FROM parents ORDER BY id")]
        )
        places = view.places(ids)
    return (
        parents,
        places,
        index.get(ids),
        index.vectors(ids),
        index.search_keyword("told here", 100),
        index.search_dense("told here", 100) if index.embedding else [],
    )


def _named(index: DocumentIndex, word: str) -> list[Document]:
    """The passages with this word; words of the same digit are found as well."""
    return [doc for doc, _ in index.search_keyword(word, 50) if word in doc.page_content]


@pytest.fixture
def index(tmp_path: Path, model: WordEmbeddings) -> Any:
    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        index.upsert(cut(numbered("ant"), numbered("bee", source="/bee.md")))
        yield index


def test_ids_of_children_are_deterministic(index: DocumentIndex, tmp_path: Path) -> None:
    """The same documents give the same child ids in another index; each has an id of its own."""
    with DocumentIndex.create(tmp_path / "other") as other:
        other.upsert(cut(numbered("bee", source="/bee.md"), numbered("ant")))
        assert sorted(other.ids()) == sorted(index.ids())
        twice = other.upsert(cut(Document("Same here. Same here.", id="twice")))
        assert len(set(twice.added)) == 2


def test_writing_again_changes_nothing(index: DocumentIndex, model: WordEmbeddings) -> None:
    """The same families again: nothing embedded, nothing changed, all reported as unchanged."""
    before, embedded = content(index), len(model.texts)
    generation = index._state().generation
    report = index.upsert(cut(numbered("ant"), numbered("bee", source="/bee.md")))
    assert report.parents.unchanged == ["ant", "bee"] and not report.parents.updated
    assert len(report.unchanged) == 12 and len(model.texts) == embedded
    assert index._state().generation == generation and content(index) == before


def test_an_update_replaces_children(index: DocumentIndex, model: WordEmbeddings) -> None:
    """Children that the new text lacks are gone from every leg; those that it keeps are not embedded again."""
    embedded = len(model.texts)
    text = index.get(["ant"])[0].page_content.replace("Here ant3", "Elsewhere wasp")
    report = index.upsert(cut(Document(text, id="ant")))
    assert report.parents.updated == ["ant"] and len(report.added) == len(report.removed) == 1
    assert len(model.texts) == embedded + 1
    assert _named(index, "ant3") == [] and len(index.search_keyword("wasp")) == 1
    assert all("ant3" not in doc.page_content for doc, _ in index.search_dense("ant3", 50))
    assert index.get(["ant"])[0].page_content == text
    index.flush()
    assert index.verify().ok


def test_a_parent_may_change_with_its_children_or_alone(index: DocumentIndex) -> None:
    """New metadata are its children's, with no text embedded; white space at the end changes none of them."""
    report = index.upsert(cut(numbered("ant", tenant="a")))
    assert report.parents.updated == ["ant"] and len(report.updated) == 6 and report.embedded == 0
    assert len(index.search_keyword("told", 50, {"tenant": "a"})) == 6
    text = index.get(["ant"])[0].page_content + "\n"
    report = index.upsert(cut(Document(text, id="ant", metadata={"tenant": "a"})))
    assert report.parents.updated == ["ant"] and not report.added and not report.removed
    assert index.get(["ant"])[0].page_content == text


def test_deleting_takes_the_whole_family(index: DocumentIndex) -> None:
    """A deleted parent goes with its children, from all legs; the other family stays."""
    assert index.delete(["ant", "unknown"]) == 1 and index.delete(["ant"]) == 0
    assert index.get(["ant"]) == [] and _named(index, "ant1") == []
    assert len(index.ids()) == 6 and index.stats()["parents"] == 1
    assert all("ant" not in doc.page_content for doc, _ in index.search_dense("ant1", 50))
    assert index.delete_sources(["/bee.md"]) == 6 and index.stats()["parents"] == 0
    index.flush()
    assert index.verify().ok


def test_sync_removes_what_a_source_no_longer_has(index: DocumentIndex) -> None:
    """All documents of a source are those given; plain documents of a source replace its families, too."""
    report = index.sync(cut(numbered("fly", source="/bee.md")))
    assert (report.parents.added, report.parents.removed) == (["fly"], ["bee"])
    assert _named(index, "bee1") == [] and index.get(["bee"]) == []
    index.sync([Document("plain", metadata={"source": "/bee.md"})])
    assert index.get(["fly"]) == [] and len(index.ids("/bee.md")) == 1
    with pytest.raises(InvalidInputError, match="source"):
        index.sync(cut(numbered("x")))


def test_children_are_no_documents_of_their_own(index: DocumentIndex) -> None:
    """A child is not deleted or overwritten alone; ids of parents and plain documents do not clash."""
    child = index.search_keyword("ant1", 1)[0][0].id
    for attempt in (
        lambda: index.delete([child]),
        lambda: index.upsert([Document("mine", id=child)]),
        lambda: index.upsert([Document("mine", id="ant")]),
    ):
        with pytest.raises(InvalidInputError, match=r"'ant'.*(document|children)"):
            attempt()
    index.upsert([Document("mine", id="plain")])
    with pytest.raises(InvalidInputError, match="'plain'"):
        index.upsert(cut(numbered("plain")))
    assert len(index.search_keyword("ant", 50)) == 6


def test_bad_families_are_refused(index: DocumentIndex) -> None:
    """Families that cannot be true or stored are named, and nothing is written."""
    before = content(index)
    for families, told in (
        ([Family(Document("abc", id="a"), [Child("b", 0, 1)])], "not what stands at 0:1"),
        ([Family(Document("abc", id="a"), [Child("c", -1, 3)])], "not what stands"),
        ([Family(Document("\ud800", id="a"), [])], "surrogate"),
        ([Family(Document("a", id="a"), [Child("\ud800")])], "surrogate"),
        ([*cut(Document("One.", id="a")), *cut(Document("Two.", id="a"))], "two different documents"),
        (cut(Document("One.", id="")), "not empty"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            index.upsert([*cut(numbered("new")), *families])
    assert content(index) == before


def test_empty_and_blank_documents(index: DocumentIndex) -> None:
    """A blank document is kept and has no children; none at all is no error."""
    assert index.upsert([]).parents.added == []
    assert index.upsert(cut(Document(" \n", id="blank"))).parents.added == ["blank"]
    assert index.get(["blank"])[0].page_content == " \n"
    index.flush()
    assert index.verify().ok


@pytest.mark.parametrize("name", ["_write_rows", "_delete_chunks", "_write_vectors", "_write_records"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_failure_at_any_step_leaves_the_old_state(
    index: DocumentIndex, monkeypatch: pytest.MonkeyPatch, name: str, late: bool
) -> None:
    """An exception before or after each step of a write: everything is as it was, and verify agrees."""
    index.flush()
    before = content(index)
    step: Callable[..., Any] = getattr(writing, name)

    def failing(*args: Any) -> Any:
        if late:
            step(*args)
        raise OSError("the disk is gone")

    changed = cut(Document("Here ant0 is told of by ant. New.", id="ant"), numbered("cat"))
    with monkeypatch.context() as patch:
        patch.setattr(writing, name, failing)
        with pytest.raises(OSError, match="the disk is gone"):
            index.upsert(changed)
        with pytest.raises(OSError, match="the disk is gone"):
            index.delete(["ant"])
    assert content(index) == before and index.verify().ok
    assert index.upsert(changed).parents.added == ["cat"]


@pytest.mark.folder
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE parents SET text = text || 'x' WHERE id = 'ant'",
        "UPDATE parents SET metadata = '[' WHERE id = 'ant'",
    ],
)
def test_verify_finds_damage_and_writing_again_mends(tmp_path: Path, statement: str) -> None:
    """Damage to a family is named; after a repair, writing the documents again makes everything right."""
    documents = [numbered("ant"), numbered("bee")]
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert(cut(*documents))
    with closing(sqlite3.connect(tmp_path / "index" / "store.sqlite3")) as connection, connection:
        assert connection.execute(statement).rowcount == 1
    with DocumentIndex.open(tmp_path / "index", mode="w", check=False) as index:
        report = index.verify()
        assert not report.ok and "not what was written" in str(report)
        index.repair()
        index.upsert(cut(*documents))
        index.flush()
        assert index.verify().ok, str(index.verify())
        assert len(index.ids()) == 12


# Cutting


TEXTS = st.lists(
    st.sampled_from(
        ["One is here. ", "第二句在这里。", "# Head\n\n", "\n\n", "a" * 45, "x, ", "- item\n", "é́ "]
    ),
    max_size=30,
).map("".join)


@settings(max_examples=30, deadline=None)
@given(text=TEXTS, window=st.booleans())
def test_children_stand_in_their_spans(text: str, window: bool) -> None:
    """Each child is what stands at its place, inside its parent's span; all visible text is covered."""
    document = Document(text)
    family = sentence_family(document) if window else split_family(document, 30, 60)
    covered = [False] * len(text)
    for child in family.children:
        assert child.start is not None and child.end is not None
        assert text[child.start : child.end] == child.text and child.text.strip()
        assert child.span is None or child.span.start <= child.start <= child.end <= child.span.end
        covered[child.start : child.end] = [True] * (child.end - child.start)
    assert all(done or character.isspace() for done, character in zip(covered, text, strict=True))


def test_sizes_must_fall() -> None:
    """A child as large as its parent is refused, as are sizes that are none."""
    for sizes in [(400, 400), (100, 200), (10, 5), (None, 5)]:
        with pytest.raises(InvalidInputError):
            check_family_sizes(*sizes)


def test_splitters_of_other_makers() -> None:
    """A LangChain splitter's chunks get their places; a text that stands nowhere has none."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=10)
    document = numbered("ant")
    family = split_family(document, splitter)
    for child in family.children:
        assert child.start is not None and document.page_content[child.start : child.end] == child.text
    starts = [child.start for child in family.children]
    assert starts == sorted(starts) and len(starts) > 5  # type: ignore[type-var]
    [part] = spans_of(document, lambda docs: [Document("made up", metadata={"page": 3})])
    assert part.start is None and part.metadata == {"page": 3}
    for wrong in ("no splitter", lambda docs: ["text"]):
        with pytest.raises(InvalidInputError, match="splitter"):
            spans_of(document, wrong)


def test_parents_without_a_place_are_not_lost_in_silence() -> None:
    """A parent that a splitter rewrites is left out; a document of which all parents are rewritten is refused."""

    def shout(documents: Sequence[Document]) -> list[Document]:
        return [Document(part.upper()) for document in documents for part in document.page_content.split("|")]

    family = split_family(Document("Loud words.|FOUND WORDS."), 20, shout)
    assert [child.text for child in family.children] == ["FOUND WORDS."]
    with pytest.raises(InvalidInputError, match="no parent is found"):
        split_family(Document("Loud words."), 20, shout)
    assert not split_family(Document(" "), 20, 60).children


def test_offsets_are_those_of_the_source(tmp_path: Path) -> None:
    """Children of a chunk that tells its own place have their place in the source."""
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert(cut(Document("One. Two.", id="c", metadata={"start": 100, "end": 109})))
        [(hit, _)] = index.search_keyword("two")
        assert (hit.metadata["start"], hit.metadata["end"]) == (105, 109)
