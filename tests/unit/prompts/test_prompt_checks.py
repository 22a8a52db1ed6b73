"""``check``: both languages there, and in agreement."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import library
from rag_kit.prompts.library import PromptLibrary, check_library, packaged_folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the packaged prompts that stands in for them."""
    copy = tmp_path / "package"
    copy.mkdir()
    for path in packaged_folder().glob("*.prompt"):
        (copy / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(library, "packaged_folder", lambda: copy)
    return copy


def edit(path: Path, old: str, new: str) -> Path:
    """Replace a text that must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def found(library: PromptLibrary | None = None, language: str | None = None) -> list[str]:
    """The problems as ``file name:line: message``."""
    problems = check_library(library or PromptLibrary(), language)
    return [f"{Path(problem.file).name}:{problem.line}: {problem.message}" for problem in problems]


def test_the_packaged_prompts_are_right() -> None:
    """Nothing to report on what is shipped."""
    assert check_library(PromptLibrary()) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("answer.zh", 'version: "1"', "version: 2", "answer.zh.prompt:4: version is 2, but 1 in en"),
        (
            "condense.zh",
            "schema: Query",
            "schema: Queries",
            "condense.zh.prompt:10: output.schema differs from",
        ),
        ("condense.zh", "output:\n  schema: Query\n", "", "condense.zh.prompt:1: output.schema differs from"),
        (
            "answer.en",
            "<task>answer</task>\n",
            "",
            "answer.en.prompt:10: there must be a system section with",
        ),
        (
            "answer.en",
            "<task>answer",
            "<task>ansver",
            "answer.en.prompt:10: there must be a system section with",
        ),
        ("answer.en", "{{passages}}", "", "answer.en.prompt:8: the input 'passages' is declared but"),
        ("answer.zh", '{{role "system"}}\n', "", "answer.zh.prompt:10: the body must begin with a role"),
    ],
)
def test_disagreements_are_reported_with_file_and_line(
    package: Path, name: str, old: str, new: str, expected: str
) -> None:
    """Each way in which two languages can drift apart, or the task line can be lost, is found."""
    edit(package / f"{name}.prompt", old, new)
    assert any(line.startswith(expected) for line in found()), found()


def test_a_missing_language_is_reported(package: Path) -> None:
    """A packaged prompt must exist in both languages."""
    (package / "condense.zh.prompt").unlink()
    assert found() == ["condense.zh.prompt:1: the file is missing; 'condense' exists in en"]


def test_a_missing_system_section_is_reported_in_one_language(package: Path) -> None:
    """One language with and one without a system section do not agree."""
    path = package / "answer.zh.prompt"
    text = path.read_text(encoding="utf-8")
    start, end = text.index('{{role "system"}}'), text.index('{{role "user"}}')
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    assert any("only one of en and zh has a system section" in line for line in found())


def test_file_names_that_do_not_fit_are_reported(package: Path) -> None:
    """A prompt file that could never be loaded is named, with the rule."""
    (package / "answer.de.prompt").write_text("x")
    (package / "Answer.en.prompt").write_text("x")
    (package / "notes.txt").write_text("x")
    lines = found()
    assert [line.split(":")[0] for line in lines] == ["Answer.en.prompt", "answer.de.prompt"]
    assert all("NAME.LANGUAGE.prompt" in line for line in lines)


def test_own_prompts_are_checked_too(tmp_path: Path) -> None:
    """An override is held against the packaged prompt; a version of one's own is fine; new ones may stand alone."""
    text = (packaged_folder() / "answer.en.prompt").read_text(encoding="utf-8")
    path = tmp_path / "answer.en.prompt"
    path.write_text(text.replace('version: "1"', "version: mine"), encoding="utf-8")
    new = '---\nname: mine\ndescription: x\nversion: 1\n---\n{{role "user"}}\nHello there.\n'
    (tmp_path / "mine.en.prompt").write_text(new)
    library = PromptLibrary(tmp_path)
    assert found(library) == []
    edit(path, "<task>answer</task>\n", "")
    (tmp_path / "mine.zh.prompt").write_text(new.replace("version: 1", "version: 2"))
    assert [line.split(":")[:2] for line in found(library)] == [
        ["answer.en.prompt", "10"],
        ["mine.zh.prompt", "4"],
    ]


def test_a_file_that_cannot_be_read_is_one_problem_among_others(tmp_path: Path) -> None:
    """Checking goes on after a bad link and a broken file."""
    (tmp_path / "mine.en.prompt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "other.en.prompt").write_bytes(b"\xff")
    assert [line.split(": ")[0] for line in found(PromptLibrary(tmp_path))] == [
        "mine.en.prompt:1",
        "other.en.prompt:1",
    ]


def test_one_language_can_be_asked_for(package: Path) -> None:
    """Problems of the other language are left out."""
    edit(package / "answer.zh.prompt", 'version: "1"', "version: 2")
    edit(package / "condense.en.prompt", 'version: "1"', "version: 0")
    assert [line.split(":")[0] for line in found(language="zh")] == ["answer.zh.prompt"]
    assert [line.split(":")[0] for line in found(language="en")] == ["condense.en.prompt"]
    with pytest.raises(InvalidInputError, match="allowed: en, zh"):
        check_library(PromptLibrary(), "de")
