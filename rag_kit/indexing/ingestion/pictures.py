"""Pictures of documents: kept beside the index, described by a chat model that sees."""

from __future__ import annotations

import base64
import contextlib
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import RunnableLambda

from rag_kit.concurrency.notes import write_note
from rag_kit.errors import ModelError
from rag_kit.indexing.readers.parts import LEFT_OUT
from rag_kit.models import JsonCache
from rag_kit.models.calls import text_call
from rag_kit.models.identity import call_key
from rag_kit.prompts import load_prompt
from rag_kit.text import detect_language

_MAX_DESCRIPTION = 3_000  # characters


class Describer:
    """Adds a description of its picture to a document; each picture is described once by a model and prompt.

    ``model`` is a chat model that takes pictures; ``replies`` is the file of descriptions that were made before.
    """

    def __init__(self, model: Any, replies: Path, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._cache = JsonCache(replies, max_entries=5_000_000)

    def close(self) -> None:
        """Close the file of descriptions."""
        self._cache.close()

    def describe(self, document: Document) -> bool:
        """Add the description to the text of a document; where the model fails, write a note and return ``False``."""
        title, name = str(document.metadata.get("title") or ""), str(document.metadata["picture"])
        text = document.page_content
        prompt = load_prompt("describe_picture", language=detect_language(f"{text} {title}"))
        values = {"title": title, "text": text}
        key = f"{call_key(self._model, prompt, values, str) or type(self._model).__name__}\0{name}"
        description = self._cache.get([key]).get(key)
        if not isinstance(description, str):
            shown = prompt | RunnableLambda(partial(_with_picture, self._folder / name))
            try:
                description = text_call(self._model, shown, values)[:_MAX_DESCRIPTION]
            except ModelError as error:
                write_note(f"description of {name}{LEFT_OUT}{error}")
                return False
            self._cache.put({key: description})
        document.page_content = "\n\n".join(filter(None, [text, description]))
        return True


def _with_picture(path: Path, value: PromptValue) -> PromptValue:
    """The messages of a prompt, the picture in the last of them."""
    messages: list[BaseMessage] = value.to_messages()
    mime = "image/png" if path.suffix == ".png" else "image/jpeg"
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    picture: dict[str, Any] = {"type": "image", "base64": data, "mime_type": mime}
    content: list[Any] = [{"type": "text", "text": messages[-1].text}, picture]
    return ChatPromptValue(messages=[*messages[:-1], HumanMessage(content)])


def described(documents: list[Document], describer: Describer | None) -> tuple[list[Document], bool]:
    """Documents, those of pictures with a description where there is a model, and whether all of them have theirs.

    A picture about which nothing is known is left out with a note.
    """
    kept, whole = [], True
    for document in documents:
        if "picture" in document.metadata:
            if describer is not None:
                whole = describer.describe(document) and whole
            if not document.page_content.strip():
                name = document.metadata["picture"]
                write_note(f"{name}{LEFT_OUT}it has no caption and no text, and no model described it")
                continue
        kept.append(document)
    return kept, whole


@contextlib.contextmanager
def open_describer(model: Any, index: Any, *, dry_run: bool) -> Any:
    """What describes pictures; ``None`` where no model is named, or nothing is written."""
    if model is None or dry_run:
        yield None
        return
    with contextlib.closing(Describer(model, index.replies, index.folder)) as describer:
        yield describer
