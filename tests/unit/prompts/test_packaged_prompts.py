"""The prompts that come with the kit, as texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.format import LANGUAGES
from rag_kit.prompts.library import PromptLibrary, packaged_folder, prompt_from_text
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.schemas import Query

ALL = [(name, language) for name in PromptLibrary().names() for language in LANGUAGES]


def text_of(name: str, language: str, **values: str) -> str:
    """All messages of a filled-in prompt as one text."""
    return "\n".join(str(m.content) for m in load_prompt(name, language=language).format_messages(**values))


def test_every_packaged_prompt_loads() -> None:
    """Each file says how long a reply may be, and puts all values into tagged blocks, after any worked examples."""
    for name, language in ALL:
        assert "max_tokens" in PromptLibrary().read(name, language).lines, (name, language)
        variables = load_prompt(name, language=language).input_variables
        values = {variable: f"VALUE-{variable}" for variable in variables}
        text = text_of(name, language, **values)
        for variable, value in values.items():
            block = text.split(f"<{variable}>")[-1].split(f"</{variable}>")[0]
            assert block.strip() == value, (name, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_values_are_in_the_user_section_alone(language: str) -> None:
    """No packaged prompt puts a value into the system message, where it would carry weight."""
    for name in PromptLibrary().names():
        for section in PromptLibrary().read(name, language).sections:
            if section.role == "system":
                assert "{{" not in section.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_answer_prompt_holds_the_declared_decline_sentence(language: str) -> None:
    """The code recognises the words that the model must use when the passages lack the answer."""
    from rag_kit.text.citations.decline import DECLINED

    assert DECLINED[language] in text_of("answer", language, question="Q", passages="P")


@pytest.mark.parametrize("language", LANGUAGES)
def test_rendered_blocks_fit_their_prompts(language: str) -> None:
    """Passages and history go in with their tags intact."""
    passages, history = render_passages(["one"]), render_history([("user", "hi")])
    assert passages in text_of("answer", language, question="Q", passages=passages)
    assert history in text_of("condense", language, question="Q", history=history)


@pytest.mark.parametrize("language", LANGUAGES)
def test_json_prompts_say_json(language: str) -> None:
    """JSON mode of OpenAI-compatible servers refuses a request that does not mention JSON."""
    schema = json.dumps(Query.model_json_schema())
    assert "JSON" in text_of("structured_output", language, schema=schema)
    repair = text_of("repair_json", language, schema=schema, reply="{", error="cut off")
    assert "JSON" in repair
    assert schema in repair


def test_no_windows_line_ends_or_blank_tails() -> None:
    """Files are kept tidy, so that hashes do not change by accident."""
    for path in packaged_folder().glob("*.prompt"):
        data = path.read_bytes()
        assert b"\r" not in data
        assert data.endswith(b"\n") and not data.endswith(b"\n\n")


GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"


def blocks(language: str, kind: str) -> list[str]:
    """The fenced blocks of one kind."""
    text = (GUIDE / language / "prompts.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


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
