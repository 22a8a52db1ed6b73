"""Correction by hand: chunks exported, corrected, imported; made again when the file is read again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings
from support.forked import exit_codes, needs_fork

import rag_kit.indexing.document_index.writing as writing
from rag_kit.cli.main import main
from rag_kit.documents import explain
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex, IngestOptions, correcting, ingest
from rag_kit.indexing.correcting import Corrected, export_chunks, import_chunks
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.models import chat_model

pytestmark = pytest.mark.usefixtures("backend")

_PARTS = {
    "Start": "The pump starts at 4O degrees. It stops at sixty. Check the oil before the first start.",
    "Stop": "Close the valve first. Then pull the red lever until it clicks, and wait.",
    "启动": "水泵在四十座时启动。第一次启动前要检查机油。液面必须高于红线。",
    "停止": "先关闭阀门。然后拉下红色手柄，等待一分钟。",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    write(folder, _PARTS)
    return folder


@pytest.fixture
def folder(docs: Path, tmp_path: Path) -> Path:
    ingest(docs, tmp_path / "index", embeddings=WordEmbeddings())
    return tmp_path / "index"


def write(docs: Path, parts: dict[str, str]) -> None:
    path = docs / "pump.md"
    path.write_text("\n\n".join(f"## {name}\n\n{text}" for name, text in parts.items()), encoding="utf-8")
    os.utime(path, (time.time() - 3600,) * 2)


def correct(folder: Path, change: Callable[[str], str | None], **options: Any) -> Corrected:
    """Export, change each text, import."""
    path = folder.parent / f"{time.time_ns()}.jsonl"
    with DocumentIndex.open(folder, mode="w", embeddings=options.get("model", WordEmbeddings())) as index:
        export_chunks(index, path)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            line["text"] = change(line["text"] if line["text"] is not None else line["original"])
        path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
        return import_chunks(index, path)


def mend(text: str) -> str:
    return text.replace("4O", "40").replace("座", "度")


def texts(folder: Path) -> list[str]:
    with DocumentIndex.open(folder) as index:
        assert index.verify().ok
        return [one.page_content for one in index.get(index.passage_ids())]


def test_corrected_chunks_are_found_by_their_new_text(folder: Path) -> None:
    """By keyword and by vector, under their old id, marked, without a place; the other chunks stay as they are."""
    with DocumentIndex.open(folder) as index:
        before = {one.id: one for one in index.get(index.ids())}
    assert correct(folder, mend) == Corrected(2, 0, 0, 2)
    with DocumentIndex.open(folder, embeddings=WordEmbeddings()) as index:
        after = {one.id: one for one in index.get(index.ids())}
        assert before.keys() == after.keys()
        for query, wanted in {"40 degrees": "at 40 degrees", "四十度": "四十度时"}.items():
            ((document, _),) = index.search_keyword(query, 1)
            assert wanted in document.page_content and document.metadata["corrected_by_hand"] is True
            assert "start" not in document.metadata and document.metadata["heading"] in ("Start", "启动")
            assert "corrected by hand" in str(explain([document]))
            assert index.search_dense(document.page_content, 1)[0][0] == document
        assert not index.search_keyword("4O")
        changed = {key for key in after if after[key] != before[key]}
        assert len(changed) == 2 and index.verify().ok


def test_corrections_survive_when_the_file_is_read_again(folder: Path, docs: Path) -> None:
    """The unchanged file, cut the same way or less finely; a changed part loses its correction, and only that one."""
    correct(folder, lambda text: None if text.startswith("## Stop") else mend(text))
    kept = texts(folder)
    model = WordEmbeddings()
    report = ingest(docs, folder, embeddings=model, options=IngestOptions(rehash=True))
    assert report.unchanged == 1 and texts(folder) == kept
    report = ingest(docs, folder, embeddings=model, options=IngestOptions(splitter="sentence"))
    assert (report.updated, report.lost) == (1, [])
    assert not any("no place" in note for note in report.notes), "a splitter that rewrites nothing was blamed"
    report = ingest(docs, folder, embeddings=model, options=IngestOptions(splitter="structure"))
    assert report.lost == [] and texts(folder) == kept
    report = ingest(docs, folder, embeddings=model, options=IngestOptions(chunk_size=2000, chunk_overlap=10))
    assert report.lost == []
    whole = " ".join(texts(folder))
    assert "40 degrees" in whole and "四十度" in whole
    assert not any(gone in whole for gone in ("4O", "座", "red lever", "Stop"))
    finely = ingest(docs, folder, embeddings=model, options=IngestOptions(chunk_size=30, chunk_overlap=10))
    assert len(finely.lost) == 3, "no chunk has all of a corrected text: each is named"
    write(docs, {**_PARTS, "Start": "The pump starts by itself.", "Stop": "Close the valve first."})
    report = ingest(docs, folder, embeddings=model, options=IngestOptions(chunk_size=1000, chunk_overlap=100))
    assert sorted(file for file, _, _ in report.lost) == ["pump.md", "pump.md"]
    assert any(old.startswith("## Start") and new and "40 degrees" in new for _, old, new in report.lost)
    assert "四十度" in " ".join(texts(folder)) and "by itself" in " ".join(texts(folder))
    write(docs, _PARTS)  # as it was: nothing was forgotten
    assert ingest(docs, folder, embeddings=model).lost == [] and texts(folder) == kept


def test_corrections_are_taken_back_by_the_original_text(folder: Path) -> None:
    """The export has it; afterwards the chunk is what it was, place and all, whether it was changed or taken out."""
    with DocumentIndex.open(folder) as index:
        before = index.get(index.ids())
    assert correct(folder, lambda text: None if "Stop" in text else mend(text)) == Corrected(2, 1, 0, 1)
    assert correct(folder, lambda text: None if "Stop" in text else mend(text)) == Corrected(0, 0, 0, 4)
    undo = {mend(one.page_content): one.page_content for one in before}
    assert correct(folder, lambda text: undo[text]) == Corrected(0, 0, 3, 1)
    with DocumentIndex.open(folder) as index:
        assert index.get(index.ids()) == before and index.corrections() == [] and index.verify().ok


def test_what_represents_a_corrected_passage_is_made_anew(docs: Path, tmp_path: Path) -> None:
    """The old texts go at once; the next ingest makes them of the corrected text, though the file is unchanged."""
    folder, model = tmp_path / "represented", chat_model("extractive")
    ingest(docs, folder, options=IngestOptions(represent=["summary"], llm=model))

    def summaries() -> str:
        with DocumentIndex.open(folder) as index:
            rows = index.get(index.ids())
            return " ".join(one.page_content for one in rows if one.metadata.get("representation"))

    assert "degrees" in summaries()
    correct(folder, lambda text: text.replace("4O degrees", "a turbine"), model=None)
    assert "degrees" not in summaries() and "a turbine" in " ".join(texts(folder))
    report = ingest(docs, folder, options=IngestOptions(llm=model))
    again = correct(folder, lambda text: None if "Stop" in text else mend(text), model=None)
    assert (again.corrected, again.removed) == (1, 1)
    assert correct(folder, lambda text: text, model=None).restored == 1
    assert "Stop" in " ".join(texts(folder))
    report = ingest(docs, folder, options=IngestOptions(llm=model))
    assert report.lost == [] and "turbine" in summaries() and "a turbine" in " ".join(texts(folder))
    ingest(docs, folder, options=IngestOptions(llm=model, represent=[]))
    assert correct(folder, lambda text: text.replace("turbine", "wheel"), model=None).corrected == 1


WRONG = {
    b'{"id": "nothing", "text": "x"}': "no chunk 'nothing'",
    b'{"id": 7, "text": "x"}': '"id": Input should be a valid string',
    b'{"id": "%s", "text": ["x"]}': "valid string",
    b'{"id": "%s"}': '"text"',
    b'{"id": "%s", "text": " "}': "null to take",
    b'{"id": "%s", "text": "\\ud800"}': "null to take",
    b'["x"]': "object",
    b'{"id": "%s", "text": "x"': "line 3",
    b"\xff\xfe": "line 3",
    b"[" * 100_000: "line 3",
    b'{"id": "FIRST", "text": "x"}': "is on line 1, too",
}


def test_a_wrong_line_changes_nothing(folder: Path) -> None:
    """The message has the line's number, and the right lines before it are not taken over."""
    before, path = texts(folder), folder.parent / "chunks.jsonl"
    with DocumentIndex.open(folder, mode="w", embeddings=WordEmbeddings()) as index:
        first, second = index.ids()[:2]
        for bad, what in WRONG.items():
            line = bad.replace(b"FIRST", first.encode()).replace(b"%s", second.encode())
            path.write_bytes(json.dumps({"id": first, "text": "changed"}).encode() + b"\n\n" + line + b"\n")
            with pytest.raises(InvalidInputError, match="line 3") as error:
                import_chunks(index, path)
            assert what in str(error.value), bad[:80]
    assert texts(folder) == before


@pytest.mark.folder
def test_documents_that_have_parts_are_refused(tmp_path: Path) -> None:
    """Families and their parts cannot be corrected alone."""
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert([Family(Document("one two", id="p"), [Child("one", 0, 3)])])
        for key in ("p", *index.ids()):
            (tmp_path / "c.jsonl").write_text(json.dumps({"id": key, "text": "x"}))
            with pytest.raises(InvalidInputError, match="line 1"):
                import_chunks(index, tmp_path / "c.jsonl")
        assert index.corrections() == []
        with pytest.raises(InvalidInputError, match="there already"):
            export_chunks(index, tmp_path / "c.jsonl")


def test_an_export_that_fails_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the chunks would look like all of them, and stand in the way of the next export."""
    monkeypatch.setattr(correcting, "_PAGE_SIZE", 1)
    get, path = DocumentIndex.get, folder.parent / "chunks.jsonl"
    with DocumentIndex.open(folder) as index:
        last = index.passage_ids()[-1:]
        monkeypatch.setattr(DocumentIndex, "get", lambda self, ids: 1 / 0 if ids == last else get(self, ids))
        with pytest.raises(ZeroDivisionError):
            export_chunks(index, path)
        assert not path.exists()
        monkeypatch.undo()
        assert export_chunks(index, path) == 4


@needs_fork
@pytest.mark.folder
def test_a_kill_during_import_leaves_all_or_nothing(folder: Path, tmp_path: Path) -> None:
    """kill -9 just before the commit: nothing is changed, and the same import works afterwards."""
    before, path = texts(folder), tmp_path / "chunks.jsonl"
    with DocumentIndex.open(folder) as index:
        lines = [json.dumps({"id": one.id, "text": mend(one.page_content)}) for one in index.get(index.ids())]
    path.write_text("\n".join(lines))

    def dying() -> None:
        writing._write_records = lambda *given: os.kill(os.getpid(), 9)
        with DocumentIndex.open(folder, mode="w", embeddings=WordEmbeddings()) as index:
            import_chunks(index, path)

    assert exit_codes(dying) == [-9]
    assert texts(folder) == before
    with DocumentIndex.open(folder, mode="w", embeddings=WordEmbeddings()) as index:
        assert import_chunks(index, path).corrected == 2


def test_the_command_line_corrects(docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """export, import, and ingest that names a correction without a place."""
    folder, path = str(tmp_path / "plain"), tmp_path / "chunks.jsonl"
    no_vectors = ["--embedding-model", "none"]
    assert main(["ingest", str(docs), "--index", folder, *no_vectors]) == 0
    assert main(["chunks", "export", str(path), "--index", folder]) == 0
    assert main(["chunks", "export", str(path), "--index", folder]) == 2
    path.write_text(path.read_text(encoding="utf-8").replace("4O", "40"), encoding="utf-8")
    capsys.readouterr()
    assert main(["chunks", "import", str(path), "--index", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "corrected": 1,
        "removed": 0,
        "restored": 0,
        "unchanged": 3,
    }
    assert main(["retrieve", "40 degrees", "--index", folder, "--json"]) == 0
    assert "at 40 degrees" in capsys.readouterr().out
    write(docs, {"Start": "Something else."})
    assert main(["ingest", str(docs), "--index", folder, *no_vectors]) == 0
    assert "a correction has no place any more: pump.md: ## Start The pump" in capsys.readouterr().err
