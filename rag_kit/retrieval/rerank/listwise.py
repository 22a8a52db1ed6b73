"""Reranking by a language model that orders whole lists, in a window that slides from the back to the front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import render_passages
from rag_kit.prompts.grading import RankedPassages
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.prompting import LanguagePrompts, check_model, field_of, read_numbers
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker

_MAX_CHARS = 2_000


class ListwiseReranker(Reranker):
    """Have a model order the passages of a window, the window sliding from the last passage to the first.

    Each window starts ``step`` passages before the one after it, so the best passages of one take part in the
    next and can climb to the top. Whatever numbers the model gives, each passage stays exactly once: numbers that are
    out of range, repeated or none are left out, passages it forgot follow in their order, and the notes say so.

    Paper: Sun et al., Is ChatGPT Good at Search?, arXiv 2304.09542 (window 20, step 10).

    Args:
        llm: A chat model.
        window: Passages in one window, at least 2.
        step: How far the window moves, 1 to ``window``.
        prompt: A prompt with the variables ``question`` and ``passages`` (and ``count``, if it likes), or one a
            language; ``None`` for the kit's own (``rerank_listwise``) in the language of the query.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the query.
        max_chars: Longest part of each passage that is shown to the model, in characters.
        depth: See ``Reranker``; it caps the windows, which run one after the other.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> model = FakeListChatModel(responses=['{"ranking": [2, 9, 2]}'])
        >>> words = BM25Retriever.from_texts(["fan fan", "fan and more"])
        >>> ranked = RerankRetriever(retriever=words, reranker=ListwiseReranker(model))
        >>> [doc.page_content for doc in ranked.invoke("fan")]
        ['fan and more', 'fan fan']
    """

    name = "listwise"
    scored: ClassVar[bool] = False

    def __init__(
        self,
        llm: Any,
        *,
        window: int = 20,
        step: int = 10,
        prompt: Any = None,
        language: str = "auto",
        max_chars: int = _MAX_CHARS,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        self.llm = check_model(llm)
        self.window, self.step = check_count("window", window), check_count("step", step)
        if self.window < 2 or self.step > self.window:
            raise InvalidInputError(
                f"window={window} and step={step} were given; the window must be at least 2, and the step at most the "
                "window, or passages between two windows would never be looked at."
            )
        self.max_chars = check_count("max_chars", max_chars)
        self.prompts = LanguagePrompts("rerank_listwise", prompt, ("question", "passages"), language)

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        prompt = self.prompts.choose(query)
        order = list(range(len(documents)))
        notes: list[str] = []
        done = 0
        places = windows(len(documents), self.window, self.step)
        for start, end in places:
            inside = order[start:end]
            shown = [documents[place] for place in inside]
            values = {
                "question": query,
                "passages": render_passages([_cut(doc, self.max_chars) for doc in shown]),
                "count": len(shown),
            }
            label = f"rerank:{self.name}" + (f", passages {start + 1} to {end}" if len(places) > 1 else "")
            asked = self._ask(prompt, values, label, call)
            answer = await call.attempt(label, asked, "the order of these stays")
            if answer is None:
                continue
            chosen = read_numbers(field_of(answer, "ranking"), len(inside))
            missing = [place for place in range(len(inside)) if place not in set(chosen.places)]
            problems = [*chosen.problems, *([f"{len(missing)} missing"] if missing else [])]
            if not chosen.places:
                notes.append(f"degraded: {label}: the model gave no usable number, the order stays")
                continue
            done += 1
            if problems:
                notes.append(f"{label}: of the model's numbers {', '.join(problems)}; no passage was lost")
            order[start:end] = [inside[place] for place in (*chosen.places, *missing)]
        if places and not done:  # a single passage has no order
            # Each window's failure is in the notes already.
            notes.append(f"degraded: rerank:{self.name}: original order")
        return Ranking(order, [None] * len(documents), notes=notes)

    async def _ask(self, prompt: Any, values: dict[str, Any], label: str, call: QueryCall) -> Any:
        (outcome,) = await call.ask(self.llm, prompt, [values], RankedPassages, [label])
        return call.value(outcome)

    def parts(self) -> Iterator[Runnable[Any, Any]]:
        """The model."""
        yield self.llm


def windows(count: int, window: int, step: int) -> list[tuple[int, int]]:
    """Where the windows lie, as (start, end), from the back; the last one starts at 0.

    Example:
        >>> windows(25, 20, 10), windows(1, 20, 10)
        ([(5, 25), (0, 15)], [])
    """
    if count < 2:
        return []
    # the last one begins at 0, wherever the step leads
    starts = [*range(count - window, 0, -step), 0]
    ends = range(count, 0, -step)
    return list(zip(starts, ends, strict=False))


def _cut(doc: Document, limit: int) -> Document:
    text = doc.page_content
    return doc if len(text) <= limit else doc.model_copy(update={"page_content": text[: limit - 1] + "…"})
