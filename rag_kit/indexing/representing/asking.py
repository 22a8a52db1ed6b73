"""Ask a model for representations of passages: several passages a call, replies are cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from langchain_core.documents import Document

from rag_kit.concurrency import fan_out
from rag_kit.errors import ModelOutputError
from rag_kit.indexing.representing.kinds import Kind
from rag_kit.models import JsonCache, structured_call
from rag_kit.models.chat import is_extractive
from rag_kit.models.identity import call_key
from rag_kit.models.replies import estimate_tokens, text_of
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.format import LANGUAGES
from rag_kit.prompts.grading import PassageTexts
from rag_kit.text import detect_language

_PASSAGES = 8
_CHARACTERS = 8_000
_HEADINGS = ("title", "heading")  # what a passage is about often stands above it alone
_ENTRIES = 5_000_000
_KEYS = 500


@dataclass(frozen=True)
class Wanted:
    """A request for the texts of one kind for one passage.

    Attributes:
        key: The same for the same passage, kind, model and prompt.
        kind: What to make.
        language: That of the passage.
        passage: The passage, with title and heading.
        group: Only passages of one group share a call: a hostile passage may bend what is written for others.
        around: What stands before and after the passage, for prompts that ask where it stands.
    """

    key: str
    kind: Kind
    language: str
    passage: Document
    group: str
    around: str = ""


class Asker:
    """Asks a model for representations, and caches its replies.

    Args:
        kinds: What may be asked for.
        llm: The model.
        cache: File of the replies, or an object with its methods; ``None`` for none.
        max_concurrency: Most calls at a time.
    """

    def __init__(self, kinds: Sequence[Kind], llm: Any, cache: Any, max_concurrency: int) -> None:
        self._llm = llm
        self._prompts = {
            (kind.spec, language): load_prompt(f"represent_{kind.name}", language=language)
            for kind in kinds
            for language in LANGUAGES
        }
        # the embedded model is as fast as a look-up in a file
        needless = cache is None or not kinds or is_extractive(llm)
        file = isinstance(cache, str | os.PathLike)
        self._cache: Any = None if needless else JsonCache(cache, max_entries=_ENTRIES) if file else cache
        self._max_concurrency = max_concurrency

    def close(self) -> None:
        """Close the file of replies."""
        if self._cache is not None:
            self._cache.close()

    @property
    def prompts(self) -> str:
        """A hash of all prompts."""
        hashes = sorted(str((prompt.metadata or {}).get("hash")) for prompt in self._prompts.values())
        return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]

    def wanted(self, kind: Kind, document: Document, group: str, around: str = "") -> Wanted:
        """The request for one kind of text on a document; its key is that of a call with this passage alone."""
        language = detect_language(document.page_content)
        metadata = {name: document.metadata[name] for name in _HEADINGS if name in document.metadata}
        passage = Document(document.page_content, metadata=metadata)
        wanted = Wanted("", kind, language, passage, group, around)
        prompt, values = self._call([wanted])
        key = call_key(self._llm, prompt, values, PassageTexts)
        return replace(wanted, key=key or f"{kind.spec}\0{values}")

    def kept(self, wanted: Sequence[Wanted]) -> dict[str, list[str]]:
        """Cached replies, by key."""
        found: dict[str, list[str]] = {}
        keys = iter(dict.fromkeys(one.key for one in wanted))
        while self._cache is not None and (group := list(islice(keys, _KEYS))):
            found.update(self._cache.get(group))
        return found

    def ask(
        self, wanted: Sequence[Wanted], progress: Callable[[int, int], None] | None = None
    ) -> dict[str, list[str]]:
        """Send all requests; a passage that a reply leaves out is asked for again by itself.

        Returns:
            Texts by key; without those that the model gave no usable reply for.

        Raises:
            ModelError: The model cannot be reached, or refuses. What came before is kept.
        """
        found: dict[str, list[str]] = {}
        for calls in (batches(wanted), None):
            again = [[one] for one in wanted if one.key not in found] if calls is None else calls
            done = 0

            def one_call(batch: list[Wanted], total: int = len(again)) -> None:
                nonlocal done
                texts = self._ask(batch)
                if self._cache is not None:
                    self._cache.put(texts)
                found.update(texts)
                done += 1
                if progress is not None:
                    progress(done, total)

            result = fan_out(
                [partial(one_call, batch) for batch in again],
                on_error="skip",
                max_concurrency=self._max_concurrency,
            )
            for outcome in result.outcomes:
                if outcome.error is not None and not isinstance(outcome.error, ModelOutputError):
                    raise outcome.error
        return found

    def tokens(self, batch: Sequence[Wanted]) -> int:
        """About how many tokens a call sends."""
        prompt, values = self._call(batch)
        return sum(estimate_tokens(text_of(each)) for each in prompt.format_prompt(**values).to_messages())

    def _ask(self, batch: Sequence[Wanted]) -> dict[str, list[str]]:
        kind = batch[0].kind
        prompt, values = self._call(batch)
        reply = structured_call(self._llm, prompt, values, PassageTexts)
        found: dict[str, list[str]] = {}
        for entry in reply.passages:
            number = str(entry.get("id")) if isinstance(entry, dict) else ""
            if not number.isdecimal() or not isinstance(entry.get("texts"), list):
                continue
            if 1 <= int(number) <= len(batch):
                found.setdefault(batch[int(number) - 1].key, kind.texts(entry["texts"]))
        return found

    def _call(self, batch: Sequence[Wanted]) -> tuple[Any, dict[str, Any]]:
        """The prompt for a batch, and its values."""
        kind, language = batch[0].kind, batch[0].language
        prompt = self._prompts[kind.spec, language]
        given = {
            "passages": render_passages([one.passage for one in batch]),
            "surroundings": render_passages([one.around for one in batch]),
            **kind.values(language),
        }
        return prompt, {name: value for name, value in given.items() if name in prompt.input_variables}


def batches(wanted: Sequence[Wanted]) -> list[list[Wanted]]:
    """Requests in batches of one call: one kind, language and group, a few passages; each key once."""
    groups: dict[tuple[str, ...], list[Wanted]] = {}
    for one in {one.key: one for one in wanted}.values():
        groups.setdefault((one.kind.spec, one.language, one.group), []).append(one)
    return [batch for group in groups.values() for batch in _cut(group)]


def _cut(group: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    """Cut requests into batches by the number of passages and of characters."""
    batch: list[Wanted] = []
    size = 0
    for one in group:
        length = len(one.passage.page_content) + len(one.around)
        if batch and (len(batch) == _PASSAGES or size + length > _CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += length
    if batch:
        yield batch
