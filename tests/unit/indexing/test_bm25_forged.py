"""Index files whose checksum is right and whose content is not: refused by name, never searched."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


# One function reads both kinds of file.
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
