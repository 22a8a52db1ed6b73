"""Index files whose checksum is right and whose content is not: refused by name, never searched."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from rag_kit.errors import IndexFormatError
from rag_kit.indexing import BM25Index
from rag_kit.indexing.sparse.index import SparseIndex

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


def array(name: str, kind: str, edit: Callable[[Any], Any]) -> Change:
    def change(header: dict[str, Any], sections: dict[str, bytes]) -> None:
        values = np.frombuffer(sections[name], kind).copy()
        changed = edit(values)
        sections[name] = (values if changed is None else np.asarray(changed, kind)).tobytes()

    return change


def row(place: int, value: Any) -> Change:
    def change(header: dict[str, Any], sections: dict[str, bytes]) -> None:
        rows = [json.loads(line) for line in sections["documents"].split(b"\n")]
        rows[1][place] = value
        sections["documents"] = b"\n".join(json.dumps(one).encode() for one in rows)

    return change


def put(at: int, value: int) -> Callable[[Any], None]:
    def edit(values: Any) -> None:
        values[at] = value

    return edit


# One function reads both kinds of file.
COMMON: dict[str, Change] = {
    "id no string": row(0, 7),
    "id empty": row(0, ""),
    "id twice": row(0, "0"),
    "document id": row(1, 5),
    "text": row(2, None),
    "metadata": row(3, ["a"]),
    "length no number": row(4, "2"),
    "length negative": row(4, -1),
    "length wrong": row(4, 9),
    "row no list": part("documents", b"1\n2\n3"),
    "row short": part("documents", b"[1]\n[2]\n[3]"),
    "documents missing": head("documents", 2),
    "documents no number": head("documents", "3"),
    "documents no json": part("documents", b"{{{"),
    "deep": part("vocabulary", b"[" * 100_000),
    "vocabulary no list": part("vocabulary", {"a": 1}),
    "vocabulary of numbers": part("vocabulary", [1, 2, 3, 4]),
    "vocabulary twice": part("vocabulary", ["a", "a", "b", "c"]),
    "vocabulary short": part("vocabulary", ["a"]),
    "no pointers": part("pointers", b""),
    "odd pointers": part("pointers", b"123"),
    "pointers fall": array("pointers", "<i8", put(1, 1000)),
    "pointers negative": array("pointers", "<i8", put(1, -5)),
    "pointers start": array("pointers", "<i8", put(0, 1)),
    "document beyond": array("postings", "<i4", put(0, 99)),
    "document negative": array("postings", "<i4", put(0, -1)),
    "postings short": array("postings", "<i4", lambda values: values[:-1]),
    "sections missing": head("sections", {}),
    "sections no dict": head("sections", 3),
    "section beyond": head("sections", {"documents": [0, 10**9]}),
    "section negative": head("sections", {"documents": [-5, 5]}),
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
    "counts zero": array("counts", "<u1", put(0, 0)),
    "counts other": array("counts", "<u1", put(0, 200)),
    "counts short": array("counts", "<u1", lambda values: values[:-1]),
}
SPARSE: dict[str, Change] = {
    "weight nan": array("weights", "<f4", put(0, float("nan"))),  # type: ignore[arg-type]
    "weight infinite": array("weights", "<f4", put(0, float("inf"))),  # type: ignore[arg-type]
    "weight negative": array("weights", "<f4", put(0, -1)),
    "weight zero": array("weights", "<f4", put(0, 0)),
    "weights short": array("weights", "<f4", lambda values: values[:-1]),
    "encoder": head("encoder", "pickle"),
    "query encoder": head("query_encoder", 3),
    "encoder no dict": part("encoder", [1]),
    "encoder idf": part("encoder", {"analyzer": None, "sublinear_tf": True}),
}  # fmt: skip


@pytest.mark.parametrize("change", [*COMMON.values(), *BM25.values()], ids=[*COMMON, *BM25])
def test_bm25(tmp_path: Path, change: Change) -> None:
    """A forged BM25 index is refused, and the message names the file."""
    path = tmp_path / "forged.bm25"
    BM25Index.from_texts(["a b", "a c", "a d d"], ids=["0", "1", "2"]).save(path)
    forge(path, lambda header, sections: None)
    assert len(BM25Index.load(path)) == 3  # taking apart and putting together alone changes nothing
    forge(path, change)
    with pytest.raises(IndexFormatError, match=r"forged\.bm25"):
        BM25Index.load(path)


@pytest.mark.parametrize("change", SPARSE.values(), ids=SPARSE.keys())
def test_sparse(tmp_path: Path, change: Change) -> None:
    """A forged sparse index is refused, and the message names the file."""
    path = tmp_path / "forged.sparse"
    SparseIndex.from_texts(["a b", "a c", "a d d"], ids=["0", "1", "2"]).save(path)
    forge(path, lambda header, sections: None)
    assert len(SparseIndex.load(path)) == 3
    forge(path, change)
    with pytest.raises(IndexFormatError, match=r"forged\.sparse"):
        SparseIndex.load(path)


def test_an_index_after_updates_in_place_is_not_refused(tmp_path: Path) -> None:
    """After updates the documents of a term need not rise; such a file is right."""
    index = BM25Index.from_texts([f"x t{n}" for n in range(6)], ids=[str(n) for n in range(6)])
    index.prepare()
    index.update([Document("x new", id="1"), Document("x old", id="0")])
    index.delete(["3"])
    index.save(tmp_path / "index")
    assert BM25Index.load(tmp_path / "index").search("x", 9) == index.search("x", 9)
