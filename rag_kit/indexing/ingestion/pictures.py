"""Pictures of documents: kept beside the index, described by a chat model that sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.concurrency.notes import write_note
from rag_kit.errors import ModelError
from rag_kit.indexing.document_index.folder import is_picture, keep_picture, picture_name
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.readers.parts import LEFT_OUT
from rag_kit.models import JsonCache, chat_model
from rag_kit.models.calls import text_call
from rag_kit.models.json_cache import call_key
from rag_kit.prompts import load_prompt
from rag_kit.prompts.template import PicturePrompt
from rag_kit.text import detect_language

_MAX_DESCRIPTION = 3_000  # characters
_MAX_REPLIES = 5_000_000  # of the cache of replies


class Pictures:
    """Keeps the pictures of an index, and has a model describe each once; in a dry run it does neither."""

    def __init__(self, index: DocumentIndex, vision: Any, *, dry_run: bool) -> None:
        self._folder, self._dry_run = Path(str(index.folder)), dry_run
        self._model = chat_model(vision) if isinstance(vision, str) and vision else vision
        is_used = self._model and not dry_run
        self._cache = JsonCache(index.replies, max_entries=_MAX_REPLIES) if is_used else None

    def keep(self, data: bytes) -> str:
        """Write a picture, unless in a dry run; return its name below the folder of the index."""
        return picture_name(data) if self._dry_run else keep_picture(self._folder, data)

    def describe(self, documents: list[Document]) -> bool:
        """Describe the pictures in a list of documents, remove those without text; tell whether all calls succeeded."""
        succeeded = True
        pictures = [document for document in documents if is_picture(document.metadata.get("picture"))]
        for document in pictures:
            name = str(document.metadata["picture"])
            try:
                description = self._description(document, name) if self._cache is not None else ""
                document.page_content = "\n\n".join(filter(None, [document.page_content, description]))
            except ModelError as error:
                succeeded = False
                write_note(f"description of {name}{LEFT_OUT}{error}")
            if not document.page_content.strip():
                documents.remove(document)
                write_note(f"{name}{LEFT_OUT}it has no caption and no text, and no model described it")
        return succeeded

    def _description(self, document: Document, name: str) -> str:
        """Return the model's description of a picture, cached or by a call; ``name``, its file, is made of its hash."""
        title, text = str(document.metadata.get("title") or ""), document.page_content
        prompt = load_prompt("describe_picture", language=detect_language(f"{text} {title}"))
        values = {"title": title, "text": text}
        # by the picture alone, for a logo may stand in many documents
        call = call_key(self._model, prompt, dict.fromkeys(values, ""), str)
        key = f"{call or type(self._model).__name__} {name}"
        assert self._cache is not None
        description = self._cache.get([key]).get(key)
        if not isinstance(description, str):
            with_picture = PicturePrompt(prompt, [("", self._folder / name)])  # without a label
            description = text_call(self._model, with_picture, values)[:_MAX_DESCRIPTION]
            self._cache.put({key: description})
        return description
