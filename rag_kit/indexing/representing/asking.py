"""Ask a model for representations of passages: several passages a call, replies are cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from langchain_core.documents import Document

from rag_kit.concurrency import fan_out
from rag_kit.errors import ModelOutputError
from rag_kit.indexing.representing.kinds import RepresentationKind
from rag_kit.models import JsonCache, structured_call
from rag_kit.models.json_cache import call_key
from rag_kit.models.model_call import is_extractive
from rag_kit.models.replies import estimate_tokens, text_of
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.format import LANGUAGES
from rag_kit.prompts.grading import PassageTexts
from rag_kit.prompts.rendering import prompt_batches
from rag_kit.text import detect_language

_MAX_PASSAGES = 8  # of a call
_MAX_CHARACTERS = 8_000  # of the passages of a call
_SUBJECT_FIELDS = ("title", "heading")  # the subject of a passage is often only in these
_MAX_REPLIES = 5_000_000  # of the cache of replies
OnProgress: TypeAlias = Callable[[int, int], None] | None  # called with calls done, and calls in all


class PassageRequest(NamedTuple):
    """A request for the texts of one kind for one passage."""

    key: str  # the same for the same passage, kind, model and prompt
    kind: RepresentationKind
    language: str
    passage: Document  # with title and heading
    group: str  # only one group's passages share a call: a hostile one may bend what is written for others
    around: str = ""  # what stands before and after the passage, for prompts that ask where it stands


@dataclass
class ModelCost:
    """The cost of a model's replies; in a dry run, the expected one."""

    calls: int = 0
    tokens: int = 0  # about how many the calls send
    reused: int = 0  # replies that an earlier call had given


class Asker:
    """Asks a model for representations; ``cache`` keeps its replies: a path, a `JsonCache` or the like, or ``None``."""

    def __init__(
        self, kinds: Sequence[RepresentationKind], llm: Any, cache: Any, max_concurrency: int
    ) -> None:
        self._llm = llm
        self._prompts = {
            (kind.spec, language): load_prompt(f"represent_{kind.name}", language=language)
            for kind in kinds
            for language in LANGUAGES
        }
        self._by_rule = is_extractive(llm)
        self._max_concurrency = max_concurrency
        self._cache: Any = None
        if kinds and not self._by_rule:  # the embedded model is as fast as a look-up in a file
            is_file = isinstance(cache, str | os.PathLike)
            self._cache = JsonCache(cache, max_entries=_MAX_REPLIES) if is_file else cache

    @property
    def prompts(self) -> str:
        """A hash of all prompts, which changes with each of them."""
        hashes = sorted(str((prompt.metadata or {}).get("hash")) for prompt in self._prompts.values())
        return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]

    def request(
        self, kind: RepresentationKind, document: Document, group: str, around: str = ""
    ) -> PassageRequest:
        """Make a request for one kind of text on a document; its key, for the cache, is that of a call for it alone."""
        language = detect_language(document.page_content)
        metadata = {name: document.metadata[name] for name in _SUBJECT_FIELDS if name in document.metadata}
        passage = Document(document.page_content, metadata=metadata)
        request = PassageRequest("", kind, language, passage, group, around)  # its key is made of its prompt
        prompt, values = self._prompt_and_values([request])
        key = call_key(self._llm, prompt, values, PassageTexts)
        return request._replace(key=key or f"{kind.spec}\0{values}")  # there is no key for an unknown model

    def answer(
        self,
        requests: Sequence[PassageRequest],
        cost: ModelCost,
        progress: OnProgress = None,
        *,
        dry: bool = False,
    ) -> dict[str, list[str]]:
        """Return texts by request key, from the cache and, unless ``dry``, from the model; add to ``cost``.

        A passage that a reply leaves out is asked for again by itself. If the model fails, replies that came are kept.
        """
        by_key = {request.key: request for request in requests}
        stored = self._cache.get(list(by_key)) if self._cache is not None else {}
        # a reply out of the cache's file is checked again
        texts = {key: by_key[key].kind.texts(reply) for key, reply in stored.items()}
        calls = _batches([request for key, request in by_key.items() if key not in texts])
        cost.reused += len(texts)
        if not self._by_rule:
            cost.calls += len(calls)
            cost.tokens += sum(map(self._count_tokens, calls))
        if not dry:
            self._send(calls, texts, progress)  # adds to `texts`; passages still lacking then go one by one
            self._send([[request] for key, request in by_key.items() if key not in texts], texts, progress)
        return texts

    def _send(
        self,
        calls: Sequence[list[PassageRequest]],
        replies: dict[str, list[str]],
        progress: OnProgress,
    ) -> None:
        """Make calls in parallel, and add their texts to ``replies`` and the cache; skip unusable replies."""
        done = 0

        def send(batch: list[PassageRequest]) -> None:
            nonlocal done
            texts = self._ask(batch)
            if self._cache is not None:
                self._cache.put(texts)
            replies.update(texts)
            done += 1
            if progress is not None:
                progress(done, len(calls))

        result = fan_out(
            [partial(send, batch) for batch in calls], on_error="skip", max_concurrency=self._max_concurrency
        )
        for outcome in result.outcomes:
            if outcome.error is not None and not isinstance(outcome.error, ModelOutputError):
                raise outcome.error

    def _count_tokens(self, batch: Sequence[PassageRequest]) -> int:
        prompt, values = self._prompt_and_values(batch)
        messages = prompt.format_prompt(**values).to_messages()
        return sum(estimate_tokens(text_of(message)) for message in messages)

    def _ask(self, batch: Sequence[PassageRequest]) -> dict[str, list[str]]:
        """Make one call for a batch; return its texts by the keys of the requests."""
        prompt, values = self._prompt_and_values(batch)
        reply = structured_call(self._llm, prompt, values, PassageTexts)
        request_of = {str(number): request for number, request in enumerate(batch, start=1)}
        texts: dict[str, list[str]] = {}
        for answer in reply.passages:  # such as {"id": 1, "texts": ["..."]}
            if isinstance(answer, dict) and isinstance(answer.get("texts"), list):
                request = request_of.get(str(answer.get("id")))
                if request is not None:
                    texts.setdefault(request.key, request.kind.texts(answer["texts"]))
        return texts

    def _prompt_and_values(self, batch: Sequence[PassageRequest]) -> tuple[Any, dict[str, Any]]:
        kind, language = batch[0].kind, batch[0].language
        prompt = self._prompts[kind.spec, language]
        values = {
            "passages": render_passages([request.passage for request in batch]),
            "surroundings": render_passages([request.around for request in batch]),
            **kind.values(language),
        }
        return prompt, {name: value for name, value in values.items() if name in prompt.input_variables}


def _batches(requests: Sequence[PassageRequest]) -> list[list[PassageRequest]]:
    """Divide requests into lists, one a call: of one kind, language and group, with few passages of limited length."""
    groups: dict[tuple[str, ...], list[PassageRequest]] = {}
    for request in requests:
        groups.setdefault((request.kind.spec, request.language, request.group), []).append(request)
    batches: list[list[PassageRequest]] = []
    for group in groups.values():
        lengths = [len(request.passage.page_content) + len(request.around) for request in group]
        batches += prompt_batches(group, lengths, max_count=_MAX_PASSAGES, max_size=_MAX_CHARACTERS)
    return batches
