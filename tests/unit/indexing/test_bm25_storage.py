"""Files of keyword and sparse indexes: whole or refused by name, whatever was damaged, forged or killed."""

from __future__ import annotations

import datetime
import hashlib
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from support.forked import exit_codes, needs_fork

from rag_kit.documents import files
from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.text import Analyzer

TEXTS = [
    "Cats sleep.",
    "Dogs bark at night.",
    "猫在北京大学睡觉。",
    "",
    "odd \ud800 surrogate\nline\u2028end",
]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved index of five texts, some deleted from."""
    metadatas = [{"n": n, "tags": ["a", None], "deep": {"x": 1.5}} for n in range(5)]
    index = BM25Index.from_texts(TEXTS, metadatas, k1=1.1, b=0.3, analyzer=Analyzer(stem=True))
    index.delete([index.ids[3]])
    path = tmp_path / "index.bm25"
    index.save(path)
    return path


def test_empty_index_round_trip(tmp_path: Path) -> None:
    """An index without documents can be saved and loaded."""
    BM25Index().save(tmp_path / "i")
    assert len(BM25Index.load(tmp_path / "i")) == 0


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_round_trip(tmp_path: Path, variant: str) -> None:
    """A loaded index has the same documents, ids, settings and exact scores, and goes on growing."""
    index = BM25Index(variant=variant, k1=1.7, b=0.2, analyzer=Analyzer(stop_words=False))  # type: ignore[arg-type]
    index.add([Document(text, metadata={"n": n}) for n, text in enumerate(TEXTS)])
    index.add([Document("the cats", id="d1")], ids=["own"])
    index.save(tmp_path / "i")
    loaded = BM25Index.load(tmp_path / "i")
    assert (loaded.k1, loaded.b, loaded.variant) == (1.7, 0.2, variant)
    assert loaded.analyzer == index.analyzer
    for one in (loaded, index):
        one.add([Document("more cats")], ids=["more"])
        one.delete([one.ids[1]])
    assert loaded.ids == index.ids
    for query in ("the cats", "猫", "surrogate", "night"):
        assert loaded.scores(query).tolist() == index.scores(query).tolist()
        assert loaded.search(query) == index.search(query)


def test_unsaveable_metadata_is_refused_and_the_old_file_stays(saved: Path) -> None:
    """A date in the metadata is named, and nothing is written."""
    before = saved.read_bytes()
    index = BM25Index.from_texts(["a"], [{"when": datetime.date(2026, 1, 2)}], ids=["doc-9"])
    with pytest.raises(InvalidInputError, match="doc-9"):
        index.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["index.bm25"]


def test_numpy_scalars_in_metadata_are_saved_plain(tmp_path: Path) -> None:
    """numpy numbers become Python numbers."""
    BM25Index.from_texts(["cat"], [{"n": np.int64(3)}]).save(tmp_path / "i")
    assert BM25Index.load(tmp_path / "i").search("cat")[0][0].metadata == {"n": 3}


def test_own_analyzer_must_be_given_again(tmp_path: Path) -> None:
    """A function cannot be stored: load asks for it; another analyzer than the stored one is refused."""
    BM25Index.from_texts(["a b"], analyzer=str.split).save(tmp_path / "own")
    with pytest.raises(InvalidInputError, match="analyzer"):
        BM25Index.load(tmp_path / "own")
    assert len(BM25Index.load(tmp_path / "own", analyzer=str.split).search("a")) == 1
    BM25Index.from_texts(["a b"]).save(tmp_path / "default")
    with pytest.raises(InvalidInputError, match="built with"):
        BM25Index.load(tmp_path / "default", analyzer=Analyzer(stem=False))


def test_failing_write_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or an error when renaming, leaves the old file and no other."""
    before = saved.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(files.os, name, fail)
            with pytest.raises(OSError, match="No space"):
                BM25Index.from_texts(["new"]).save(saved)
        assert saved.read_bytes() == before
        assert [path.name for path in saved.parent.iterdir()] == ["index.bm25"]


def test_left_over_of_a_crash_is_removed_later(saved: Path) -> None:
    """A temporary file of an old crash goes with the next save; a fresh one, perhaps in use, stays."""
    old, fresh = saved.parent / ".index.bm25.1-a.tmp", saved.parent / ".index.bm25.2-b.tmp"
    old.write_bytes(b"x")
    fresh.write_bytes(b"x")
    os.utime(old, (1, 1))
    BM25Index.from_texts(["new"]).save(saved)
    assert not old.exists()
    assert fresh.exists()


@needs_fork
def test_death_while_saving_leaves_old_or_new(saved: Path) -> None:
    """A process that dies before opening, before renaming or before flushing leaves a whole index."""
    index = BM25Index.from_texts([f"new text {n}" for n in range(3000)])

    def save(moment: int) -> None:
        count = 0

        def die(event: str, arguments: Any) -> None:
            nonlocal count
            if event in ("open", "os.rename", "os.remove") and ".tmp" in str(arguments[0]):
                count += 1
                if count == moment:
                    os._exit(9)

        if moment == 3:
            files.os.fsync = lambda number: os._exit(9)  # type: ignore[assignment]
        sys.addaudithook(die)
        index.save(saved)

    for moment, code, held in ((1, 9, 4), (2, 9, 4), (3, 9, 4), (99, 0, 3000)):
        assert exit_codes(partial(save, moment)) == [code]
        assert len(BM25Index.load(saved)) == held, moment


@pytest.mark.parametrize("kind", [BM25Index, SparseIndex])
def test_paths(kind: Any, tmp_path: Path) -> None:
    """A folder and a pipe are no files, a folder that is not there is named; nothing is written."""
    index = kind.from_texts(["a cat"])
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InvalidInputError, match="no ordinary file"):
            index.save(place)
    with pytest.raises(OSError, match="nowhere"):
        index.save(tmp_path / "nowhere" / "index")
    with pytest.raises(IndexMissingError, match="nowhere"):
        kind.load(tmp_path / "nowhere" / "index")
    assert [path.is_fifo() for path in tmp_path.iterdir()] == [True]


@pytest.mark.parametrize("kind", [BM25Index, SparseIndex])
def test_damaged_files_are_refused(kind: Any, tmp_path: Path) -> None:
    """A flipped bit, a cut, a byte more, another kind of file: refused by name, nothing executed."""
    path = tmp_path / "a.index"
    kind.from_texts(["a b", "猫 c", ""]).save(path)
    data = path.read_bytes()
    changed = [data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :] for at in range(0, len(data), 5)]
    other = b"RAGKSPRS" if kind is BM25Index else b"RAGKBM25"
    for content in (*changed, *(data[:at] for at in range(0, len(data), 11)), data + b"x", other + data[8:]):
        path.write_bytes(content)
        with pytest.raises(IndexFormatError, match=r"a\.index"):
            kind.load(path)


@pytest.mark.parametrize("kind", [BM25Index, SparseIndex])
@pytest.mark.parametrize(
    ("step", "message"), [(1, "a newer rag_kit"), (-1, "an older rag_kit, which made other")]
)
def test_another_format_is_refused_by_version(kind: Any, tmp_path: Path, step: int, message: str) -> None:
    """A file of a later or earlier version says so, and what to do."""
    path, version = tmp_path / "a.index", storage.FORMAT_VERSION + step
    kind.from_texts(["a b"]).save(path)
    data = path.read_bytes()
    path.write_bytes(data[:8] + version.to_bytes(4, "little") + data[12:])
    with pytest.raises(IndexFormatError, match=f"{message}.*version {version}.*Build the index again"):
        kind.load(path)


def test_terms_of_another_version_are_refused(tmp_path: Path) -> None:
    """An analyzer that made other terms is told by the name of the file, though its format is the same."""
    path = tmp_path / "words.index"
    BM25Index.from_texts(["a b"]).save(path)
    data = path.read_bytes()[:-32].replace(b'"version":2', b'"version":9')
    path.write_bytes(data + hashlib.blake2b(data, digest_size=32).digest())
    with pytest.raises(IndexFormatError, match=r"words\.index: analyzer settings"):
        BM25Index.load(path)
