"""Sentences by a language model that names their numbers, so that no word of a passage can change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.runnables import Runnable

from rag_kit.concurrency.branches import describe_failure
from rag_kit.prompts import render_passages
from rag_kit.prompts.grading import ChosenSentences
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.compression.base import Compressor, Passage, Selection
from rag_kit.retrieval.prompting import LanguagePrompts, check_model, field_of, read_numbers
from rag_kit.retrieval.query_call import QueryCall


class ModelCompressor(Compressor):
    """Have a model choose the numbers of the sentences that matter, all passages at the same time.

    The model never writes text that is used, so what is kept is the passage's own wording, whatever the model
    (or an instruction hidden in a passage) says. A passage whose call failed stays whole, and the notes say so.

    Args:
        llm: A chat model.
        prompt: A prompt with the variables ``question`` and ``passages``, or one a language; ``None`` for the
            kit's own (``compress``) in the language of the query.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the query.
        most_sentences: Sentences shown in one call; a longer passage takes several.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever, CompressionRetriever
        >>> words = BM25Retriever.from_texts(["The fan is loud. Tea is hot."])
        >>> model = FakeListChatModel(responses=['{"sentences": [1]}'])
        >>> CompressionRetriever(retriever=words, compressor=ModelCompressor(model)).invoke("fan")[0].page_content
        'The fan is loud.'
    """

    name = "model"

    def __init__(
        self, llm: Any, *, prompt: Any = None, language: str = "auto", most_sentences: int = 100
    ) -> None:
        self.llm = check_model(llm)
        self.prompts = LanguagePrompts("compress", prompt, ("question", "passages"), language)
        self.most_sentences = check_count("most_sentences", most_sentences)

    async def select(self, query: str, passages: Sequence[Passage], call: QueryCall) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        pieces = [
            (number, start, passage.sentences[start : start + self.most_sentences])
            for number, passage in enumerate(passages)
            for start in range(0, len(passage.sentences), self.most_sentences)
        ]
        values = [
            {"question": query, "passages": render_passages([one.text for one in part]), "count": len(part)}
            for _, _, part in pieces
        ]
        names = [f"sentences of passage {number + 1}" for number, _, _ in pieces]
        outcomes = await call.ask(self.llm, self.prompts.choose(query), values, ChosenSentences, names)
        call.failures(outcomes)
        chosen: dict[int, list[int]] = {number: [] for number in range(len(passages))}
        failed: dict[int, str] = {}
        for (number, start, part), outcome in zip(pieces, outcomes, strict=True):
            if not outcome.ok:
                failed.setdefault(number, describe_failure(outcome.name, outcome.error))
                continue
            given = field_of(outcome.value, "sentences")
            read = read_numbers(given, len(part))
            if given and not read.places:
                failed.setdefault(number, "the model gave no usable number")
            elif read.problems:
                call.note(f"compress:{self.name}: passage {number + 1}: {', '.join(read.problems)} left out")
            chosen[number] += [start + place for place in read.places]
        if failed:
            call.note(
                f"degraded: compress:{self.name}: {len(failed)} of {len(passages)} passages could not be judged and "
                f"are whole ({next(iter(failed.values()))})"
            )
        return [Selection(None if number in failed else sorted(places)) for number, places in chosen.items()]

    def parts(self) -> Iterator[Runnable[Any, Any]]:
        """The model."""
        yield self.llm
