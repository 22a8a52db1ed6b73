"""Files of keyword and sparse indexes: whole or refused by name, whatever was damaged, forged or killed."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

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


_KILLED = """
import os, sys
from rag_kit.documents import files
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.index import BM25Index
moment = int(sys.argv[2])
count = 0
def die(event, arguments):
    global count
    if event in ("open", "os.rename", "os.remove") and ".tmp" in str(arguments[0]):
        count += 1
        if count == moment:
            os._exit(9)
index = BM25Index.from_texts([f"new text {n}" for n in range(3000)])
if moment == 3:
    files.os.fsync = lambda number: os._exit(9)
sys.addaudithook(die)
index.save(sys.argv[1])
"""


@pytest.mark.parametrize("moment", [1, 2, 3, 99])
def test_death_while_saving_leaves_old_or_new(saved: Path, moment: int) -> None:
    """A process that dies before opening, before renaming or before flushing leaves a whole index."""
    done = subprocess.run([sys.executable, "-c", _KILLED, str(saved), str(moment)], check=False)
    assert done.returncode == (0 if moment == 99 else 9)
    assert len(BM25Index.load(saved)) == (3000 if moment == 99 else 4)


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


# Files whose checksum is right and whose content is not


FIXED = struct.Struct("<8sIIQ")
Change = Callable[[dict[str, Any], dict[str, bytes]], None]


def forge(path: Path, change: Change) -> None:
    """Take a file apart, change it, and put it together with the checksum that fits."""
    data = path.read_bytes()
    magic, version, head, _ = FIXED.unpack_from(data)
    header = json.loads(data[FIXED.size : FIXED.size + head])
    body = data[FIXED.size + head : -32]
    places = header.pop("sections")
    sections = {name: body[at : at + size] for name, (at, size) in places.items()}
    change(header, sections)
    if "sections" not in header:
        header["sections"], offset = {}, 0
        for name, part in sections.items():
            header["sections"][name] = [offset, len(part)]
            offset += len(part)
    packed, joined = json.dumps(header).encode(), b"".join(sections.values())
    whole = FIXED.pack(magic, version, len(packed), len(joined)) + packed + joined
    path.write_bytes(whole + hashlib.blake2b(whole, digest_size=32).digest())


def setting(name: str, value: Any) -> Change:
    return lambda header, sections: header["settings"].update({name: value})


def head(name: str, value: Any) -> Change:
    return lambda header, sections: header.update({name: value})


def part(name: str, value: Any) -> Change:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lambda header, sections: sections.update({name: data})


COMMON: dict[str, Change] = {
    "row no list": part("documents", b"1\n2\n3"),
    "rows not alike": part("documents", b"[1]\n[2, 3]"),
    "length no number": part("documents", b'["0", "0", "a", {}, "2"]'),
    "documents no json": part("documents", b"{{{"),
    "deep": part("vocabulary", b"[" * 100_000),
    "odd pointers": part("pointers", b"123"),
    "sections missing": head("sections", {}),
    "sections no dict": head("sections", 3),
    "section of strings": head("sections", {"documents": ["0", "5"]}),
}
BM25: dict[str, Change] = {
    "k1 negative": setting("k1", -1),
    "k1 string": setting("k1", "x"),
    "k1 infinite": setting("k1", 1e999),
    "b": setting("b", 3),
    "variant": setting("variant", "plus"),
    "unknown setting": setting("evil", 1),
    "settings": head("settings", [1]),
    "no settings": lambda header, sections: header.pop("settings"),
    "analyzer": head("analyzer", "en"),
    "analyzer kind": head("analyzer", {"kind": "os.system"}),
    "analyzer version": head("analyzer", {"version": 99}),
    "analyzer language": head("analyzer", {"version": 1, "language": "xx", "stem": True, "stop_words": True}),
    "count bytes": head("count_bytes", 3),
    "count bytes list": head("count_bytes", [1]),
}
SPARSE: dict[str, Change] = {
    "encoder": head("encoder", "pickle"),
    "query encoder": head("query_encoder", 3),
}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(pytest.param(BM25Index, change, id=name) for name, change in {**COMMON, **BM25}.items()),
        *(pytest.param(SparseIndex, change, id=name) for name, change in SPARSE.items()),
    ],
)
def test_forged_files_are_refused(tmp_path: Path, kind: Any, change: Change) -> None:
    """The message names the file; taking a file apart and putting it together alone changes nothing."""
    path = tmp_path / "forged.index"
    kind.from_texts(["a b", "a c", "a d d"], ids=["0", "1", "2"]).save(path)
    forge(path, lambda header, sections: None)
    assert len(kind.load(path)) == 3
    forge(path, change)
    with pytest.raises(IndexFormatError, match=r"forged\.index"):
        kind.load(path)
