"""Finding prompts: the user's folder over the packaged one, fresh after each edit, nothing outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import library, load_prompt
from rag_kit.prompts.library import PromptLibrary, check_library, packaged_folder

OWN = """---
name: NAME
description: My own.
version: 1
input:
  topic: What about.
output:
  schema:
    type: object
    properties:
      title: {type: string, description: A title.}
    required: [title]
---
{{role "user"}}
Title for {{topic}}?
"""


def own(folder: Path, name: str = "mine", language: str = "en", text: str = OWN) -> Path:
    """Write a prompt of one's own."""
    path = folder / f"{name}.{language}.prompt"
    path.write_text(text.replace("NAME", name), encoding="utf-8")
    return path


def packaged_text(name: str, language: str = "en") -> str:
    """The text of a packaged prompt."""
    return (packaged_folder() / f"{name}.{language}.prompt").read_text(encoding="utf-8")


def test_an_own_file_wins_by_name_and_language(tmp_path: Path) -> None:
    """Only the prompt and language that the folder holds is replaced."""
    own(tmp_path, "answer", "en", packaged_text("answer").replace("Rules", "House rules"))
    assert "House rules" in load_prompt("answer", folder=tmp_path).messages[0].prompt.template  # type: ignore[union-attr]
    for name, language in (("answer", "zh"), ("condense", "en")):
        packaged = load_prompt(name, language=language).file
        assert load_prompt(name, language=language, folder=tmp_path).file == packaged


def test_own_prompts_need_no_code(tmp_path: Path) -> None:
    """A new name in the folder is a prompt, with its inline JSON schema as output schema."""
    own(tmp_path)
    library = PromptLibrary(tmp_path)
    assert "mine" in library.names()
    assert "mine" not in PromptLibrary().names()
    schema = library.load("mine").output_schema
    assert isinstance(schema, dict)
    assert schema["title"] == "Mine"
    with pytest.raises(InvalidInputError, match=r"'mine' does not exist in 'zh'; it exists in: en"):
        library.load("mine", "zh")


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAG_KIT_PROMPTS is used when no folder is given, and an argument wins over it."""
    own(tmp_path)
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(tmp_path))
    assert load_prompt("mine").description == "My own."
    with pytest.raises(InvalidInputError, match="no prompt 'mine'"):
        load_prompt("mine", folder=tmp_path / "other")
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(tmp_path / "absent"))
    with pytest.raises(InvalidInputError, match=r"RAG_KIT_PROMPTS is '.*absent', which is no folder"):
        load_prompt("answer")


def test_an_edit_shows_at_once(tmp_path: Path) -> None:
    """The same library serves new content after an edit, even with equal size and time stamp."""
    path = own(tmp_path)
    library = PromptLibrary(tmp_path)
    first = library.load("mine")
    before = path.stat()
    path.write_text(path.read_text().replace("My own.", "My 0wn."))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = library.load("mine")
    assert (first.description, second.description) == ("My own.", "My 0wn.")
    assert first.metadata["hash"] != second.metadata["hash"]  # type: ignore[index]
    path.unlink()
    with pytest.raises(InvalidInputError, match="no prompt 'mine'"):
        library.load("mine")


def test_loads_do_not_share_state() -> None:
    """Changing a loaded template does not change the next one."""
    first = load_prompt("answer")
    first.metadata["name"] = "spoiled"  # type: ignore[index]
    first.inputs.clear()
    first.messages.clear()
    again = load_prompt("answer")
    assert again.metadata["name"] == "answer"  # type: ignore[index]
    assert len(again.messages) == 2
    assert again.inputs


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("  question: The question, in the user's words.\n", "", 6, "the inputs are passages, but"),
        ("{{question}}", "{{question}} {{mood}}", 6, "the inputs are mood, passages, question"),
        ("---\n{{role", "output:\n  schema: Query\n---\n{{role", 10, "output.schema differs from"),
    ],
)
def test_an_override_that_code_cannot_fill_is_refused(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    """Other inputs or another output schema than the packaged prompt are named with file and line."""
    text = packaged_text("answer").replace(old, new, 1)
    if not new:
        text = text.replace("{{question}}", "it")
    if "mood" in new:
        text = text.replace("input:\n", "input:\n  mood: x\n")
    path = own(tmp_path, "answer", "en", text)
    with pytest.raises(InvalidInputError) as caught:
        load_prompt("answer", folder=tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert "packaged prompt 'answer'" in message


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("anwser.en.prompt", "name is 'answer', but the file name says 'anwser'"),
        ("answer.fr.prompt", "LANGUAGE one of en, zh"),
        ("answer.prompt", "NAME.LANGUAGE.prompt"),
        ("answer.en.txt", "a prompt file ends in .prompt"),
        ("answer.zh.md", "a prompt file ends in .prompt"),
    ],
)
def test_a_file_with_a_wrong_name_is_not_passed_over(tmp_path: Path, file: str, said: str) -> None:
    """A broken replacement of a packaged prompt stops every load, and is a problem of the check."""
    path = tmp_path / file
    path.write_text(packaged_text("answer"), encoding="utf-8")
    for name in ("answer", "condense"):
        with pytest.raises(InvalidInputError) as caught:
            load_prompt(name, language="zh", folder=tmp_path)
        assert str(caught.value).startswith(f"{path}:") and said in str(caught.value)
    assert [problem.file for problem in check_library(PromptLibrary(tmp_path))] == [str(path)]


def test_files_of_another_kind_may_lie_in_the_folder(tmp_path: Path) -> None:
    """A README, a note, a backup of an editor and a new prompt stop nothing."""
    own(tmp_path)
    backups = ["answer.en.prompt~", "answer.en.prompt.bak", ".answer.en.txt"]
    for file in ("README.md", "README", "notes.txt", *backups):
        (tmp_path / file).write_text("x")
    assert load_prompt("answer", folder=tmp_path).file == load_prompt("answer").file


@pytest.mark.parametrize(
    "name",
    ["../answer", "/etc/passwd", "answer.en", "a/../answer", "", "Answer", "answer\x00", "..", "a" * 65],
)
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    """Only plain names are looked up."""
    with pytest.raises(InvalidInputError, match="no prompt name"):
        load_prompt(name, folder=tmp_path)


@pytest.mark.parametrize("language", ["de", "EN", "", "../en", "auto"])
def test_a_wrong_language_names_the_right_ones(language: str) -> None:
    """en and zh are allowed; 'auto' is resolved before."""
    with pytest.raises(InvalidInputError, match="allowed: en, zh"):
        load_prompt("answer", language=language)


def test_an_unknown_name_suggests_a_known_one() -> None:
    """A typo is met with the closest name and the list."""
    with pytest.raises(
        InvalidInputError, match=r"no prompt 'awnser' \(did you mean 'answer'\?\)\. There are: .*\banswer, "
    ):
        load_prompt("awnser")


def test_a_link_is_followed(tmp_path: Path) -> None:
    """The target of a symbolic link is judged by the link's own name; a dangling one is named."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine.en.prompt").symlink_to(own(folder, "real").rename(folder / "shared.txt"))
    with pytest.raises(InvalidInputError, match="name is 'real'"):  # read, and judged by its own name
        load_prompt("mine", folder=folder)
    (folder / "mine.en.prompt").unlink()
    (folder / "mine.en.prompt").symlink_to(folder / "nowhere")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        load_prompt("mine", folder=folder)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder or a pipe with the name of a prompt is named at once; a pipe would wait for ever."""
    (tmp_path / "mine.en.prompt").mkdir()
    os.mkfifo(tmp_path / "pipe.en.prompt")
    for name in ("mine", "pipe"):
        with pytest.raises(InvalidInputError, match="not a regular file"):
            load_prompt(name, folder=tmp_path)


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


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("answer.zh", 'version: "1"', "version: 2", "answer.zh.prompt:4: version is 2, but 1 in en"),
        ("condense.zh", "schema: Query", "schema: Queries", "condense.zh.prompt:10: output.schema differs from"),
        ("condense.zh", "output:\n  schema: Query\n", "", "condense.zh.prompt:1: output.schema differs from"),
        ("answer.en", "<task>answer</task>\n", "", "answer.en.prompt:10: there must be a system section with"),
        ("answer.en", "<task>answer", "<task>ansver", "answer.en.prompt:10: there must be a system section with"),
        ("answer.en", "{{passages}}", "", "answer.en.prompt:8: the input 'passages' is declared but"),
        ("answer.zh", '{{role "system"}}\n', "", "answer.zh.prompt:10: the body must begin with a role"),
    ],
)  # fmt: skip
def test_disagreements_are_reported_with_file_and_line(
    package: Path, name: str, old: str, new: str, expected: str
) -> None:
    """Each way in which two languages can drift apart, or the task line can be lost, is found."""
    edit(package / f"{name}.prompt", old, new)
    assert any(line.startswith(expected) for line in found()), found()


def test_a_missing_section_is_reported(package: Path) -> None:
    """Both languages of a prompt have a system section, or none has."""
    text = packaged_text("answer", "zh")
    start, end = text.index('{{role "system"}}'), text.index('{{role "user"}}')
    (package / "answer.zh.prompt").write_text(text[:start] + text[end:], encoding="utf-8")
    assert any("only one of en and zh has a system section" in line for line in found())


def test_own_prompts_are_checked_too(tmp_path: Path) -> None:
    """An override is held against the packaged prompt; a version of one's own is fine; new ones may stand alone."""
    path = own(tmp_path, "answer", text=packaged_text("answer").replace('version: "1"', "version: mine"))
    new = '---\nname: mine\ndescription: x\nversion: 1\n---\n{{role "user"}}\nHello there.\n'
    (tmp_path / "mine.en.prompt").write_text(new)
    library = PromptLibrary(tmp_path)
    assert found(library) == []
    edit(path, "<task>answer</task>\n", "")
    (tmp_path / "mine.zh.prompt").write_text(new.replace("version: 1", "version: 2"))
    assert [line[:20] for line in found(library)] == ["answer.en.prompt:10:", "mine.zh.prompt:4: ve"]


def test_a_file_that_cannot_be_read_is_one_problem_among_others(tmp_path: Path) -> None:
    """Checking goes on after a bad link and a broken file."""
    (tmp_path / "mine.en.prompt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "other.en.prompt").write_bytes(b"\xff")
    files = [line.split(": ")[0] for line in found(PromptLibrary(tmp_path))]
    assert files == ["mine.en.prompt:1", "other.en.prompt:1"]


def test_one_language_can_be_asked_for(package: Path) -> None:
    """Problems of the other language are left out."""
    edit(package / "answer.zh.prompt", 'version: "1"', "version: 2")
    edit(package / "condense.en.prompt", 'version: "1"', "version: 0")
    assert [line.split(":")[0] for line in found(language="zh")] == ["answer.zh.prompt"]
    assert [line.split(":")[0] for line in found(language="en")] == ["condense.en.prompt"]
    with pytest.raises(InvalidInputError, match="allowed: en, zh"):
        check_library(PromptLibrary(), "de")
