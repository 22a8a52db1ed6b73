"""The prompts of a graph: loaded once, in both languages, with instructions that a run may replace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rag_kit.prompts import PromptTemplate, load_prompt

LANGUAGES = ("en", "zh")


class GraphPrompts:
    """The prompts that a graph's nodes use; files are read here, so that no node blocks on one.

    Args:
        names: Prompt files by name.
        folder: Folder whose files of these names replace the packaged ones.

    Raises:
        PromptError: A file is wrong.

    Example:
        >>> GraphPrompts(["answer"]).pick("answer", "zh").title
        'answer.zh'
    """

    def __init__(self, names: Iterable[str], folder: Path | None = None) -> None:
        self.folder = folder
        self._prompts: dict[tuple[str, str], PromptTemplate] = {
            (name, language): load_prompt(name, language=language, folder=folder)
            for name in names
            for language in LANGUAGES
        }

    def pick(self, name: str, language: str, instructions: str | None = None) -> PromptTemplate:
        """The prompt in a language, with the run's own instructions if it has any."""
        prompt = self._prompts[name, language if language in LANGUAGES else "en"]
        return prompt.with_instructions(instructions) if instructions and instructions.strip() else prompt
