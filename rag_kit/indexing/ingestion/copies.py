"""Copies of a file among others: the same text, or nearly the same (MinHash)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_kit.documents.identity import to_plain
from rag_kit.text.segment import tagged_words

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.document_index.writing import SourceRecord

#: Share of four-word sequences that two texts must have in common. On long articles most copies with a word in 200
#: changed reach it; no threshold tells texts from one template apart, which is what `fingerprint` adds.
NEAR = 0.95
_SEED, _PERMUTATIONS, _BAND = 1, 128, 8
_SHORTEST = 100  # words; in a shorter text one word can be what it is about
_LONGEST = 5_000_000  # characters; a near copy of a longer text is not looked for, which would take its size many times
_BEGINNING = 40  # characters, mostly a title, that near copies share
_TABLE = 0.3  # a larger share of table rows makes a text a table
_KEY = 16  # bytes
_WORD = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]")
_DASHES = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2212", "------")
_GAP = re.compile(
    "(?<=[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]) | (?=[\u3000-\u303f\u3400-\u9fff\uff00-\uffef])"
)
_CHINESE = re.compile(r"[\u3400-\u9fff]+")
# with its sign, parts and unit: -5, $100, 1.5 mg, 2024-01-31, 三百元, four
_NUMBER = re.compile(
    r"(?:[-+±<>≤≥=$€£¥]?\d+(?:[.,:/-]\d+)*|[零〇一二两三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟半]+)"
    r"\s?(?:[%‰°$€£¥]|[a-zµμ]+|[\u3400-\u9fff]{1,2})?"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|"
    r"nine)ty|hundred|thousand|million|billion|half|dozen)\b",
    re.I,
)
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я][\w-]*")
_NEGATION = re.compile(r"\b(?:no[tr]?|never|none|without|cannot)\b|n['’]t\b|[不没無无非未否勿禁别]")
_HEADING = re.compile(r"^#+ .*", re.M)
_NAME_TAGS = ("nr", "ns", "nt", "nz")
_FILE_FIELDS = frozenset(
    "source file file_path filename file_name file_directory created created_at creationdate creation_date modified "  # noqa: SIM905
    "modified_at last_modified moddate mtime ctime atime".split()
)


def fingerprint(documents: Sequence[Document], file: str, *, anywhere: bool) -> bytes:
    """What is compared of a file: a key of its text, and where it may have near copies, one of what these share.

    Near copies have the same metadata, apart from those of the file itself, and the same numbers and names in the same
    order, so that two letters or invoices from one template never are. Tables and short texts have none.

    Args:
        documents: The file as it was read.
        file: Its path below the folder that is ingested.
        anywhere: Whether files of different folders are copies.

    Returns:
        A key of metadata and text, then either nothing or a key of metadata, numbers and names, and a signature.
    """
    # a search may be limited to a folder, in which a copy of another folder's file would be missed
    folder = "" if anywhere else file.rpartition("/")[0]
    fields = json.dumps([folder, *(_fields(document, file) for document in documents)], sort_keys=True)
    text = "\n".join(document.page_content for document in documents)
    headings = _HEADING.findall(text)
    table = sum(len(line) for line in text.splitlines() if line.startswith("|"))
    records = any({"record", "row_start"} & document.metadata.keys() for document in documents)
    text = " ".join(text.split())
    text = text if text.isascii() else _GAP.sub("", text)
    exact = _hash(fields, text)
    if len(text) > _LONGEST:
        return exact
    text = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_DASHES)
    folded = text.casefold()
    words = _WORD.findall(folded)
    if len(words) < _SHORTEST or table > _TABLE * len(text) or records:
        return exact
    from rensa import RMinHash

    names = _NAME.findall(text)
    for run in _CHINESE.findall(text):
        names += [word for word, tag in tagged_words(run, guess=True) if tag in _NAME_TAGS]
    signature = RMinHash(_PERMUTATIONS, _SEED)
    signature.update([" ".join(four) for four in zip(words, words[1:], words[2:], words[3:], strict=False)])
    values = np.asarray(signature.digest(), "<u4").tobytes()
    facts = [_NUMBER.findall(text), names, _NEGATION.findall(folded), headings, text[:_BEGINNING]]
    return exact + _hash(fields, json.dumps(facts)) + values


def _fields(document: Document, file: str) -> dict[str, Any]:
    """The metadata that copies share: without the file's own fields, its path, and a title that is its name."""
    return {
        key: value
        for key, value in to_plain(document.metadata).items()
        if key not in _FILE_FIELDS
        and value != file
        and not (key == "title" and value == PurePosixPath(file).stem)
    }


def _hash(*texts: str) -> bytes:
    """The first `_KEY` bytes of the SHA-256 of some texts."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()[:_KEY]


class Originals:
    """Files that are kept, found by the fingerprints (``mark``) of their copies."""

    def __init__(self) -> None:
        self._exact: dict[bytes, str] = {}
        self._bands: dict[bytes, list[tuple[str, bytes]]] = {}

    def add(self, source: str, mark: bytes) -> None:
        """Add a file, if it has a fingerprint."""
        if not mark:
            return
        self._exact.setdefault(mark[:_KEY], source)
        for band in _bands(mark):
            self._bands.setdefault(band, []).append((source, mark[2 * _KEY :]))

    def find(self, mark: bytes) -> tuple[str, float] | None:
        """The file that the one with this fingerprint is a copy of, and their likeness, 1 for the same text."""
        if (source := self._exact.get(mark[:_KEY])) is not None:
            return source, 1.0
        near = {source: signature for band in _bands(mark) for source, signature in self._bands.get(band, ())}
        if not near:
            return None
        signature = mark[2 * _KEY :]
        likeness, source = max((_likeness(signature, other), source) for source, other in near.items())
        # texts with the same sequences of four words can still differ in their order
        return (source, min(likeness, 0.99)) if likeness >= NEAR else None


def _bands(mark: bytes) -> list[bytes]:
    """Keys of which near copies share at least one."""
    guard, signature = mark[_KEY : 2 * _KEY], mark[2 * _KEY :]
    step = 4 * _BAND
    return [guard + bytes([at // step]) + signature[at : at + step] for at in range(0, len(signature), step)]


def _likeness(one: bytes, other: bytes) -> float:
    """The share of equal values of two MinHash signatures, which estimates the Jaccard index."""
    equal = sum(one[at : at + 4] == other[at : at + 4] for at in range(0, len(one), 4))
    return equal / _PERMUTATIONS


class Copies:
    """Which files are copies of files that an index keeps.

    Args:
        records: What is remembered about files.
        files: Sources that this ingest looks at; a file that it does not look at is kept as long as it is there.
    """

    def __init__(self, records: Mapping[str, SourceRecord], files: Container[str]) -> None:
        self._kept: dict[str, str] = {}
        self._texts: set[bytes] = set()
        self._originals = Originals()
        self._waiting: list[SourceRecord] = []
        for record in records.values():
            if record.source not in files and not record.original and os.path.exists(record.source):
                self.keep(record)

    def keep(self, record: SourceRecord) -> None:
        """Take a file for one that others may be copies of: it is in the index as it is on the disk."""
        self._kept[record.source] = record.sha256
        self._texts.add(record.fingerprint[:_KEY])
        self._waiting.append(record)

    def has_equal(self, record: SourceRecord) -> bool:
        """Whether a file with the same text is kept already."""
        return bool(record.fingerprint) and record.fingerprint[:_KEY] in self._texts

    def original(self, record: SourceRecord) -> tuple[str, float] | None:
        """The file that this one was recorded as a copy of, and their likeness, if that one is kept as it was."""
        if not record.original:
            return None
        try:
            source, sha256, likeness = json.loads(record.original)
            return (str(source), float(likeness)) if self._kept.get(source) == sha256 else None
        except (ValueError, TypeError, RecursionError):
            return None

    def judged(self, record: SourceRecord) -> SourceRecord:
        """The record of a file that was read, with the file that it is a copy of, if it is one."""
        for kept in self._waiting:
            self._originals.add(kept.source, kept.fingerprint)
        self._waiting.clear()
        found = self._originals.find(record.fingerprint) if record.fingerprint else None
        if found is None:
            self.keep(record)
            return record
        original = json.dumps([found[0], self._kept[found[0]], found[1]])
        return replace(record, original=original, fingerprint=b"")
