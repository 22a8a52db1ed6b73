"""ingest keeps one of the files that have the same text; what was left out comes back when it must."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.cli.main import main
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.readers.api import Reader

pytestmark = pytest.mark.usefixtures("backend")

_NO_VECTORS = ["--embedding-model", "none"]
_SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ra", "si", "to", "vu", "ze"]
_CHARACTERS = "水泵阀门管道压力温度机器工厂检查开关油液体启动停止安装维护部件说明注意操作人员清洁"


def english(words: int = 300, seed: int = 1) -> str:
    """A text without numbers and names."""
    rng = random.Random(seed)
    made = ["".join(rng.choices(_SYLLABLES, k=3)) for _ in range(words)]
    return " ".join(word + "." * (number % 12 == 11) for number, word in enumerate(made)) + "."


def chinese(characters: int = 600, seed: int = 1) -> str:
    """The same in Chinese."""
    rng = random.Random(seed)
    made = rng.choices(_CHARACTERS, k=characters)
    return "".join(c + "。" * (number % 20 == 19) for number, c in enumerate(made)) + "。"


def put(folder: Path, **texts: str) -> Path:
    """Write text files that are an hour old."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        path = folder / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        os.utime(path, (time.time() - 3600,) * 2)
    return folder


def files_of(folder: Path) -> set[str]:
    with DocumentIndex.open(folder) as index:
        assert index.verify().ok
        return {document.metadata["file"] for document in index.get(index.ids())}


@pytest.mark.parametrize("text", [english(600), chinese(900)], ids=["en", "zh"])
def test_copies_are_left_out_and_listed_and_not_read_again(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of three files with the same text stays, and the report and the command name the others."""
    copy = {"a (1)": text.replace("。", "。\n").replace(" ", "\n")}
    docs = put(tmp_path / "docs", **copy, a=text, c=text, d=english(seed=2))
    report = ingest(docs, tmp_path / "index")
    assert (report.added, len(report.duplicates)) == (2, 2) and "2 left out as copies" in report.summary()
    (b, c) = sorted(report.duplicates)
    assert b == ("a (1).txt", "a.txt") and c == ("c.txt", "a.txt")
    assert files_of(tmp_path / "index") == {"a.txt", "d.txt"}

    monkeypatch.setattr(Reader, "read", lambda *given, **more: pytest.fail("an unchanged file was read"))
    again = ingest(docs, tmp_path / "index", prune=True)
    assert (again.unchanged, again.added, again.updated, again.removed) == (4, 0, 0, 0)
    assert sorted(again.duplicates) == [b, c]
    assert main(["ingest", str(docs), "--index", str(tmp_path / "index"), *_NO_VECTORS]) == 0
    assert "left out: c.txt is a copy of a.txt" in capsys.readouterr().err


def vanish(docs: Path) -> None:
    (docs / "a.txt").unlink()


def change(docs: Path) -> None:
    put(docs, a=english(seed=3))


def change_beside_a_new_file(docs: Path) -> None:
    """The new file sorts first, and equals what the original was."""
    put(docs, a=english(seed=3), A=english())


def move(docs: Path) -> None:
    (docs / "a.txt").rename(docs / "z.txt")


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("happens", [vanish, change, change_beside_a_new_file, move])
def test_a_copy_comes_back_when_its_original_goes_or_changes(
    happens: Callable[[Path], None], prune: bool, tmp_path: Path
) -> None:
    """At the next ingest one file with the text is in the index, whatever became of the one that was kept."""
    docs = put(tmp_path / "docs", a=english(), b=english())
    assert len(ingest(docs, tmp_path / "index").duplicates) == 1
    happens(docs)
    ingest(docs, tmp_path / "index", prune=prune)
    current = {path.name for path in docs.iterdir()}
    with DocumentIndex.open(tmp_path / "index") as index:
        found = {
            d.metadata["file"] for d in index.get(index.ids()) if d.page_content.startswith(english()[:50])
        }
    assert len(found & current) == 1
    if prune:
        assert len(files_of(tmp_path / "index")) == (2 if "a.txt" in current else 1)


@pytest.mark.slow
@pytest.mark.folder  # another process would not write to the test's database
def test_a_copy_comes_back_after_a_kill_between_writing_and_pruning(tmp_path: Path) -> None:
    """kill -9 before, and after, the original is removed: the next ingest ends with the text once."""
    for moment in ("before", "after"):
        docs, folder = put(tmp_path / moment, a=english(), b=english()), tmp_path / f"index-{moment}"
        ingest(docs, folder)
        (docs / "a.txt").unlink()
        code = f"""
import os
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
remove = DocumentIndex.delete_sources
def dying(self, sources):
    {"remove(self, sources)" if moment == "after" else "pass"}
    os.kill(os.getpid(), 9)
DocumentIndex.delete_sources = dying
ingest({str(docs)!r}, {str(folder)!r}, prune=True)
"""
        assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
        ingest(docs, folder, prune=True)
        assert files_of(folder) == {"b.txt"}


@pytest.mark.parametrize("seed", [1, None], ids=["long", "short"])
def test_documents_with_other_metadata_are_never_copies(seed: int | None, tmp_path: Path) -> None:
    """A reader of one's own may give fields, such as a tenant, that keep equal files apart."""
    docs = put(tmp_path / "docs", acme="", beta="")
    text = english() if seed else "Call us."

    def tenants(path: Path) -> list[Document]:
        return [Document(text, metadata={"tenant": path.stem})]

    report = ingest(docs, tmp_path / "index", options=IngestOptions(readers={"*.txt": tenants}))
    assert report.duplicates == []
    with DocumentIndex.open(tmp_path / "index") as index:
        assert {d.metadata["tenant"] for d in index.get(index.ids())} == {"acme", "beta"}


def test_endless_white_space_takes_no_time(tmp_path: Path) -> None:
    """Long gaps, long words, numbers and names are looked at once only."""
    docs = put(
        tmp_path / "docs", a="湖" + " " * 500_000 + "b", b="1," * 200_000, c="A" * 500_000 + " aB" * 100_000
    )
    assert ingest(docs, tmp_path / "index").added == 3


def test_keep_duplicates_is_recorded(tmp_path: Path) -> None:
    """It takes copies in, now and in later calls; turned off, they go out again. A dry run only counts them."""
    docs, folder = put(tmp_path / "docs", a=english(), b=english()), tmp_path / "index"
    assert ingest(docs, folder, dry_run=True).duplicates == [("b.txt", "a.txt")]
    assert main(["ingest", str(docs), "--index", str(folder), "--keep-duplicates", *_NO_VECTORS]) == 0
    put(docs, c=english())
    report = ingest(docs, folder)
    assert (report.added, report.unchanged, report.duplicates) == (1, 2, [])
    assert files_of(folder) == {"a.txt", "b.txt", "c.txt"}
    report = ingest(docs, folder, options=IngestOptions(keep_duplicates=False))
    assert "keep_duplicates changed from True to False" in report.notes[0] and len(report.duplicates) == 2
    assert files_of(folder) == {"a.txt"}


def test_copies_in_other_folders_stay_unless_they_are_unwanted(tmp_path: Path) -> None:
    """A search limited to a folder finds what is in it; ``keep_duplicates=False`` keeps one of all."""
    docs, folder = put(tmp_path / "docs", a=english()), tmp_path / "index"
    put(docs / "北京", b=english(), c=english())
    assert ingest(docs, folder).duplicates == [("北京/c.txt", "北京/b.txt")]
    with DocumentIndex.open(folder) as index:
        assert index.search_keyword(english()[:6], filter={"file": {"$startswith": "北京/"}})
    report = ingest(docs, folder, options=IngestOptions(keep_duplicates=False))
    assert [copy[1] for copy in report.duplicates] == ["a.txt", "a.txt"] and files_of(folder) == {"a.txt"}
    assert len(ingest(docs, folder).duplicates) == 2


def test_same_settings_give_the_same_fingerprint(tmp_path: Path) -> None:
    """A changed file that becomes a copy loses its passages; one that stops being one gets them again."""
    docs, folder = put(tmp_path / "docs", a=english(), b=english(seed=2)), tmp_path / "index"
    ingest(docs, folder)
    put(docs, b=english())
    report: Any = ingest(docs, folder)
    assert report.duplicates == [("b.txt", "a.txt")] and files_of(folder) == {"a.txt"}
    put(docs, b=english(seed=4))
    assert ingest(docs, folder).updated == 1 and files_of(folder) == {"a.txt", "b.txt"}


_TABLE = "name,value\n" + "\n".join(english(2, seed).replace(" ", ",") for seed in range(200))


@pytest.mark.parametrize(
    ("texts", "copies"),
    [
        ([english() + end for end in (" Pay 10.", " Pay 100.", " Pay 10.")], [("2.txt", "0.txt")]),
        ([f"{_TABLE}\npump,{colour}" for colour in ("red", "green", "red")], [("2.csv", "0.csv")]),
        (["1 23 apples", "12 3 apples"], []),
        (["水泵在四十度\n时启动", "水泵在四十度时启动"], [("1.txt", "0.txt")]),
    ],
    ids=["a word", "a row", "white space", "a line end in Chinese"],
)
def test_what_differs_in_a_word_is_no_copy(
    texts: list[str], copies: list[tuple[str, str]], tmp_path: Path
) -> None:
    """A sum, a name, a row or a "not" can be what a file is about; a line end within Chinese is nothing."""
    (docs := tmp_path / "docs").mkdir()
    for number, text in enumerate(texts):
        name = f"{number}.csv" if "," in text else f"{number}.txt"
        (docs / name).write_text(text, encoding="utf-8")
    assert ingest(docs, tmp_path / "index").duplicates == copies
