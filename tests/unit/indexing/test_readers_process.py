"""The reader process: caps, no network, no leaks."""

from __future__ import annotations

import io
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from pathlib import Path

import psutil
import pytest
from PIL import Image
from support import documents as make

from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.readers.api import Reader, read
from rag_kit.indexing.readers.limits import ReadLimits

pytestmark = [
    pytest.mark.own_reader,
    pytest.mark.skipif(sys.platform == "win32", reason="caps need POSIX"),
]


def gone(pid: int, seconds: float = 15) -> bool:
    """Whether a process ends (or is a zombie without other threads, which can be waited for) within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.1)
    return False


def test_one_process_serves_many_files_and_close_ends_it(tmp_path, monkeypatch):
    """The process is reused, also after a file that could not be read, sees no keys, and is gone after close()."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    with Reader() as reader:
        assert make.process_id(reader) is None
        reader.read(make.put(tmp_path, "a.txt", "one"))
        first = make.process_id(reader)
        assert "sk-canary" not in str(psutil.Process(first).environ())
        with pytest.raises(ReadError):
            reader.read(make.put(tmp_path, "b.json", "{"))
        reader.read(make.put(tmp_path, "c.md", "# two"))
        assert make.process_id(reader) == first
    assert gone(first)
    with pytest.raises(InvalidInputError, match="closed"):
        reader.read(tmp_path / "a.txt")


def test_the_process_is_replaced_after_many_files_and_after_its_death(tmp_path, monkeypatch):
    """Memory that a library leaks stays bounded; a killed process costs one file at most."""
    monkeypatch.setattr("rag_kit.indexing.readers.api._FILES_PER_PROCESS", 2)
    path = make.put(tmp_path, "a.txt", "one")
    with Reader() as reader:
        ids = []
        for _ in range(3):
            reader.read(path)
            ids.append(make.process_id(reader))
        assert ids[0] == ids[1] != ids[2]
        os.kill(ids[2], signal.SIGKILL)
        assert gone(ids[2])
        assert reader.read(path)[0].page_content == "one"


def test_a_file_that_takes_too_long_is_given_up_and_the_process_killed(tmp_path):
    """The time cap holds even while a library computes."""
    rows = "\n".join(json.dumps({"n": n, "text": "x" * 50}) for n in range(150_000))
    path = make.put(tmp_path, "long.jsonl", rows)
    with Reader(limits=ReadLimits(max_seconds=0.2)) as reader:
        start = time.monotonic()
        with pytest.raises(ReadError, match=r"max_seconds=0\.2"):
            reader.read(path)
        assert make.process_id(reader) is None
        assert time.monotonic() - start < 60
        assert reader.read(make.put(tmp_path, "a.txt", "one"), limits=ReadLimits())[0].page_content == "one"


@pytest.mark.slow
def test_a_file_that_takes_too_much_memory_is_given_up(tmp_path):
    """The memory cap is the kernel's, and the next file is read."""
    path = make.put(tmp_path, "wide.json", "[" + ",".join(["[[[]]]"] * 4_000_000) + "]")
    with Reader(limits=ReadLimits(max_memory=400 * 2**20)) as reader:
        with pytest.raises(ReadError, match="max_memory=419430400"):
            reader.read(path)
        assert reader.read(make.put(tmp_path, "a.txt", "one"))[0].page_content == "one"


@pytest.mark.parametrize("false_size", [None, 1000])
@pytest.mark.parametrize("kind", ["docx", "xlsx", "epub", "pptx"])
def test_zip_bombs_are_not_unpacked(tmp_path, kind, false_size):
    """By the size in the directory the file is refused; where that lies, the part is damaged, and left out."""
    name = {"docx": "word/a.xml", "xlsx": "xl/a.xml", "pptx": "ppt/a.xml", "epub": "OEBPS/c0.xhtml"}[kind]
    extra = make.bomb(name, megabytes=40)
    if kind == "epub":
        data = make.epub([("a", "b")], extra={"OEBPS/c0.xhtml": " " * (40 << 20)})
    else:
        data = make.docx(make.paragraph("x"), extra={**extra, "ppt/presentation.xml": "<a/>"})
    if false_size:
        data = make.with_false_size(data, name, false_size)
    path = make.put(tmp_path, f"bomb.{kind}", data)
    with Reader(limits=ReadLimits(max_unpacked=10 * 2**20)) as reader, use_notes() as notes:
        if false_size and kind == "docx":
            assert [document.page_content for document in reader.read(path)] == ["x"]
            assert any("word/a.xml left out" in note for note in notes.texts)
        else:
            with pytest.raises(ReadError, match="left out" if false_size else "max_unpacked=10485760"):
                reader.read(path)


@pytest.mark.parametrize(
    ("name", "data", "limits", "cap"),
    [
        ("a.pdf", make.pdf([[(50, 700, 12, "x")]] * 4), {"max_pages": 3}, "max_pages=3"),
        ("a.pptx", make.pptx([("a", "b")] * 4), {"max_pages": 3}, "max_pages=3"),
        ("a.epub", make.epub([("a", "b")] * 4), {"max_pages": 3}, "max_pages=3"),
        ("a.txt", "x" * 2000, {"max_characters": 1000}, "max_characters=1000"),
        ("a.md", "x" * 2000, {"max_bytes": 1000}, "max_bytes=1000"),
    ],
    # the bytes of archives hold the time they were made at; an id made of them would differ between workers
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_each_cap_refuses_with_its_name(tmp_path, reader, name, data, limits, cap):
    """Nothing is cut short in silence: the message names the cap to raise."""
    with pytest.raises(ReadError, match=cap) as caught:
        reader.read(make.put(tmp_path, name, data), limits=ReadLimits(**limits))
    assert f"ReadLimits({next(iter(limits))}=" in str(caught.value)


def test_wrong_limits_are_refused():
    """A cap is a number above 0; the memory cap must let Python start."""
    with pytest.raises(InvalidInputError, match="max_pages"):
        ReadLimits(max_pages=0)
    with pytest.raises(InvalidInputError, match="256 MiB"):
        ReadLimits(max_memory=1000)


def test_entities_of_office_files_are_refused(tmp_path, reader):
    """XML external entities and billion laughs never reach a parser, in whatever encoding."""
    for encoding in ("utf-8", "utf-16"):
        evil = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'.encode(encoding)
        with pytest.raises(ReadError, match="entities"):
            reader.read(
                make.put(tmp_path, "a.docx", make.docx(make.paragraph("x"), extra={"word/e.xml": evil}))
            )


def test_no_file_makes_the_reader_open_a_connection(tmp_path, reader):
    """Images, links, style sheets, entities and relationships that point to a server are never followed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        relation = (
            f'<Relationship Id="r9" Type="{make.R}/image" Target="{url}.png" TargetMode="External"/>'
            f'<Relationship Id="r8" Type="{make.R}/attachedTemplate" Target="{url}.dotx" TargetMode="External"/>'
        )
        picture = (
            '<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="p" descr="a duck"/><a:graphic><a:graphicData '
            'uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic><pic:blipFill>'
            '<a:blip r:link="r9"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
            "</w:p>"
        )
        page = (
            f'<html><head><link rel="stylesheet" href="{url}"><base href="{url}"></head><body><img src="{url}">'
            f'<iframe src="{url}"></iframe><object data="{url}"></object><p>text</p></body></html>'
        )
        book = make.epub([("a", f'<img src="{url}"/> text')])
        svg = f'<!DOCTYPE html [<!ENTITY x SYSTEM "{url}">]><p>text &x;</p>'
        for name, data in {
            "a.html": page,
            "b.html": svg,
            "a.md": f"![x]({url}) text",
            "a.docx": make.docx(make.paragraph("text") + picture, relations=relation),
            "a.epub": book,
            "a.ipynb": make.notebook([("markdown", f"![x]({url}) text")]),
        }.items():
            assert "text" in reader.read(make.put(tmp_path, name, data))[0].page_content
        with pytest.raises(TimeoutError):
            server.accept()


def test_the_reader_process_may_open_no_socket_and_start_no_program(tmp_path):
    """Even a converter that wants to is stopped, and it sees none of the keys in the environment."""
    code = """
        import os, socket, subprocess, sys
        from rag_kit.indexing.readers.limits import forbid_network
        forbid_network()
        for attempt in (
            lambda: socket.create_connection(("127.0.0.1", 9)),
            lambda: socket.getaddrinfo("localhost", 80),
            lambda: subprocess.run(["true"]),
            lambda: os.system("true"),
        ):
            try:
                attempt()
            except PermissionError as error:
                print("refused", error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.count("refused") == 4, done.stdout + done.stderr


def test_a_python_file_beside_the_documents_is_not_imported(tmp_path, monkeypatch):
    """The current folder is not on the reader process's import path."""
    make.put(tmp_path, "json.py", "raise SystemExit('imported')")
    make.put(tmp_path, "lxml.py", "raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    with Reader() as reader:
        assert reader.read(make.put(tmp_path, "a.html", "<p>text</p>"))[0].page_content == "text"


def test_threads_share_a_reader(tmp_path):
    """Calls from several threads come out whole."""
    paths = [make.put(tmp_path, f"{n}.txt", f"text {n}") for n in range(12)]
    found: dict[int, str] = {}
    with Reader() as reader:

        def work(number: int) -> None:
            found[number] = reader.read(paths[number])[0].page_content

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {n: f"text {n}" for n in range(12)}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exit", "kill", "kill in OCR"])
def test_no_reader_process_outlives_its_parent(tmp_path, how):
    """At a normal end and after kill -9 of the parent the child goes too, even in the middle of a file."""
    rows = "\n".join(json.dumps({"n": n, "text": "x" * 50}) for n in range(200_000))
    make.put(tmp_path, "long.jsonl", rows)
    make.put(tmp_path, "a.txt", "one")
    if how == "kill in OCR":
        pytest.importorskip("rapidocr")
        noise = random.Random(1).randbytes(7000 * 7000)
        Image.frombytes("L", (7000, 7000), noise).save(tmp_path / "long.png", compress_level=1)
    code = f"""
        import sys, threading
        from pathlib import Path
        from rag_kit.indexing.readers.api import Reader, read
        from rag_kit.indexing.readers import api
        read(Path({str(tmp_path)!r}) / "a.txt")
        print(api.shared_reader()._process._process.pid, flush=True)
        if {how!r} == "kill":
            read(Path({str(tmp_path)!r}) / "long.jsonl")
        elif {how!r} == "kill in OCR":
            read(Path({str(tmp_path)!r}) / "long.png", ocr=True)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    if how != "exit":
        time.sleep(0.3 if how == "kill" else 3.0)
        parent.kill()
    parent.wait(60)
    parent.stdout.close()
    assert gone(child)


def test_ctrl_c_during_a_file_kills_the_process(tmp_path, monkeypatch):
    """An interrupted wait leaves no process behind that goes on working."""
    with Reader() as reader:
        reader.read(make.put(tmp_path, "a.txt", "one"))
        child = make.process_id(reader)

        def interrupted(*arguments: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("rag_kit.indexing.readers.process.json.loads", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reader.read(tmp_path / "a.txt")
        monkeypatch.undo()
        assert gone(child)
        assert reader.read(tmp_path / "a.txt")[0].page_content == "one"


def repeated(kind: str, times: int) -> bytes:
    """A book or deck of one chapter or slide that its list of contents names many times."""
    text = "It is long. " * 20_000
    data = make.epub([("One", text)]) if kind == "epub" else make.pptx([("One", text)])
    name = "OEBPS/book.opf" if kind == "epub" else "ppt/presentation.xml"
    entry = rb"<itemref [^>]*/>" if kind == "epub" else rb"<p:sldId [^>]*/>"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {each: archive.read(each) for each in archive.namelist()}
    entries[name] = re.sub(entry, lambda match: match.group() * times, entries[name])
    return make.zipped(entries)


@pytest.mark.parametrize("kind", ["epub", "pptx"])
def test_what_is_repeated_is_read_once(tmp_path: Path, kind: str) -> None:
    """A file that names one chapter or slide two thousand times costs what it costs once."""
    path = tmp_path / f"a.{kind}"
    path.write_bytes(repeated(kind, 2000))
    found = read(path, limits=ReadLimits(max_characters=1_000_000, max_seconds=60))
    assert len(found) == 1 and "It is long." in found[0].page_content


@pytest.mark.parametrize("mark", ["mergeCell", "hyperlink"])
@pytest.mark.parametrize("area", ["A1:XFD1048576", "$A$3:$A$1048576"])
def test_what_a_range_claims_costs_nothing(tmp_path: Path, reader: Reader, mark: str, area: str) -> None:
    """A merged range or a link over a whole sheet or column costs what its cells in the file cost."""
    ranges = f'</sheetData><{mark}s><{mark} ref="{area}"/></{mark}s>'.encode()
    sheet = make.xlsx({"S": [["Name", "Price"], ["Apple", 3], ["Pear", 4]]})
    data = make.edited(sheet, lambda name, part: part.replace(b"</sheetData>", ranges))
    (found,) = reader.read(make.put(tmp_path, "a.xlsx", data), limits=ReadLimits(max_seconds=10))
    assert found.page_content == "# S\n\n" + make.table(("Name", "Price"), ("Apple", "3"), ("Pear", "4"))
