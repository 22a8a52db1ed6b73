"""The guide's page on prompts: its examples run, its table of prompts is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_kit.prompts.format import LANGUAGES
from rag_kit.prompts.library import PromptLibrary, prompt_from_text

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"


def blocks(language: str, kind: str) -> list[str]:
    """The fenced blocks of one kind."""
    text = (GUIDE / language / "prompts.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_python_examples_run(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example runs and prints the message that it builds."""
    examples = blocks(language, "python")
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, f"{language}/prompts.md", "exec"), {})
    out = capsys.readouterr().out
    assert '<passage id="1">' in out
    assert "</text>" in out


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_example_file_loads(language: str) -> None:
    """The prompt file shown in the format reference is right."""
    (example,) = blocks(language, "prompt")
    prompt = prompt_from_text(example, name="title", language=language)
    assert prompt.input_variables == ["text"]
    assert isinstance(prompt.output_schema, dict)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_names_every_prompt(language: str) -> None:
    """A prompt that is added is added to the guide too, with its inputs."""
    text = (GUIDE / language / "prompts.md").read_text(encoding="utf-8")
    library = PromptLibrary()
    for name in library.names():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        for variable in library.read(name, language).inputs:
            assert f"`{variable}`" in row
