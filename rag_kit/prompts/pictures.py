"""A prompt with pictures after its text, for models that see."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import Runnable, RunnableConfig

if TYPE_CHECKING:
    from rag_kit.prompts.template import PromptTemplate


class PicturePrompt(Runnable[dict[str, Any], PromptValue]):
    """A prompt whose last message ends with pictures, each as a block of content that LangChain's models take.

    Args:
        prompt: The prompt of the text; its name, language and bound on the reply stay.
        pictures: PNG or JPEG files, each with the text that stands before it; it may be empty.
    """

    def __init__(self, prompt: PromptTemplate, pictures: Sequence[tuple[str, Path]]) -> None:
        self._prompt, self._pictures = prompt, pictures
        self.metadata, self.max_tokens, self.title = prompt.metadata, prompt.max_tokens, prompt.title

    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> PromptValue:
        """Fill in the prompt and read the pictures."""
        *before, last = self._prompt.invoke(input, config).to_messages()
        content: list[Any] = [{"type": "text", "text": last.text}]
        for label, path in self._pictures:
            content += [{"type": "text", "text": label}] if label else []
            content.append(_block(path))
        return ChatPromptValue(messages=[*before, HumanMessage(content)])


def _block(path: Path) -> dict[str, Any]:
    mime = "image/png" if path.suffix == ".png" else "image/jpeg"
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return {"type": "image", "base64": data, "mime_type": mime}
