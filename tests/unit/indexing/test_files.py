"""Listing files under folders."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.indexing.files import iter_files


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(folder: Path, **settings: object) -> list[str]:
    return [source.file for source in iter_files([folder], **settings)[0]]  # type: ignore[arg-type]


def reasons(folder: Path) -> dict[str, str]:
    return {problem.file: problem.reason for problem in iter_files([folder])[1]}


def test_files_come_in_a_fixed_order_with_root_and_relative_name(tmp_path):
    """The order of the names, not of the disk."""
    for name in ("b.md", "a/z.md", "a/b/c.txt", "B.md"):
        put(tmp_path / name)
    files, _ = iter_files([tmp_path])
    assert [source.file for source in files] == ["B.md", "a/b/c.txt", "a/z.md", "b.md"]
    assert all(source.root == tmp_path and source.path == tmp_path / source.file for source in files)


def test_hidden_version_control_and_excluded_folders_are_passed_over(tmp_path):
    """.git, dot files, caches and the index's own folder are no documents."""
    for name in (
        "a.md",
        ".git/config",
        ".secret.md",
        "__pycache__/x.md",
        "node_modules/y.md",
        "index/rows.json",
    ):
        put(tmp_path / name)
    assert names(tmp_path, exclude=[tmp_path / "index"]) == ["a.md"]
    assert names(tmp_path / "index", exclude=[tmp_path / "index"]) == []


def test_links_that_leave_the_folder_are_problems(tmp_path):
    """To files and to folders alike, and by way of another link."""
    root = tmp_path / "root"
    put(root / "a.md")
    put(tmp_path / "other" / "secret.md")
    (root / "file.md").symlink_to(tmp_path / "other" / "secret.md")
    (root / "folder").symlink_to(tmp_path / "other")
    (root / "twice.md").symlink_to(root / "file.md")
    assert names(root) == ["a.md"]
    found = reasons(root)
    assert set(found) == {"file.md", "folder", "twice.md"}
    assert all("leaves the folder" in reason for reason in found.values())


def test_links_inside_the_folder_add_nothing_twice_and_circles_end(tmp_path):
    """A link to what is listed is passed over; to what is hidden it counts; circles and dead ends are handled."""
    put(tmp_path / "a.md")
    put(tmp_path / ".store" / "b.md")
    (tmp_path / "same.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "b.md").symlink_to(tmp_path / ".store" / "b.md")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "dead.md").symlink_to(tmp_path / "none")
    (tmp_path / "x").symlink_to(tmp_path / "y")
    (tmp_path / "y").symlink_to(tmp_path / "x")
    assert names(tmp_path) == ["a.md", "b.md"]
    found = reasons(tmp_path)
    assert all("leads nowhere" in found[name] for name in ("dead.md", "x", "y"))


def test_pipes_and_sockets_are_problems_and_never_opened(tmp_path):
    """Listing a folder with a pipe in it ends at once."""
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            server.bind("s.md")
        finally:
            os.chdir(here)
        assert names(tmp_path) == []
        assert set(reasons(tmp_path)) == {"pipe.md", "s.md"}


def test_a_folder_or_file_that_may_not_be_read_is_a_problem(tmp_path, monkeypatch):
    """It is named, and the rest is listed; the system is asked, also where the test runs as root."""
    put(tmp_path / "a.md")
    put(tmp_path / "shut" / "b.md")
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("rag_kit.indexing.files.os.scandir", refusing)
    assert names(tmp_path) == ["a.md"]
    assert reasons(tmp_path) == {"shut": "the folder cannot be read (Permission denied)"}
    monkeypatch.setattr("rag_kit.indexing.files.os.access", lambda path, mode: False)
    assert names(tmp_path) == [] and "not permitted" in reasons(tmp_path)["a.md"]


def test_strange_names_are_listed_and_problems_can_be_printed(tmp_path):
    """Line breaks, right-to-left marks and bytes that are no UTF-8."""
    for name in ("a\nb.md", "\u202egnp.md", "caf\udce9.md"):
        put(tmp_path / name)
    (tmp_path / "dead\udce9.md").symlink_to("nowhere")
    files, problems = iter_files([tmp_path])
    assert len(files) == 3
    assert problems[0].file == "dead\\xe9.md" and problems[0].path.name == "dead\udce9.md"


def test_named_files_overlap_with_folders_without_doubles(tmp_path):
    """A file that is named and also lies in a named folder is listed once, under the folder."""
    path = put(tmp_path / "a" / "b.md")
    files, _ = iter_files([path, tmp_path, tmp_path / "a"])
    assert [(source.root, source.file) for source in files] == [(tmp_path, "a/b.md")]
    assert iter_files([path])[0][0].file == "b.md"


def test_missing_paths_and_too_many_files_are_refused(tmp_path, monkeypatch):
    """Wrong input is an error with the path, not an empty listing."""
    with pytest.raises(InvalidInputError, match="none"):
        iter_files([tmp_path / "none"])
    for number in range(5):
        put(tmp_path / f"{number}.md")
    monkeypatch.setattr("rag_kit.indexing.files._MAX_FILES", 3)
    with pytest.raises(InvalidInputError, match="more than 3 files"):
        iter_files([tmp_path])


def test_names_that_print_alike_are_two_files(tmp_path):
    """A name with a byte that is no UTF-8, and one that spells the escape of that byte, have each their identity."""
    folder = tmp_path / "docs"
    folder.mkdir()
    strange = os.fsencode(folder) + b"/caf\xe9.txt"
    try:
        with open(strange, "w") as file:
            file.write("The first text.")
    except OSError:
        pytest.skip("this file system takes valid UTF-8 names only")
    (folder / "caf\\xe9.txt").write_text("The second text.")
    (folder / "back\\slash.txt").write_text("The third text.")
    assert ingest(folder, tmp_path / "index").added == 3
    with DocumentIndex.open(tmp_path / "index") as index:
        files = {document.metadata["file"]: document.page_content for document in index.get(index.ids())}
    assert files == {
        "caf\\xe9.txt": "The first text.",
        "caf\\\\xe9.txt": "The second text.",
        "back\\slash.txt": "The third text.",
    }
