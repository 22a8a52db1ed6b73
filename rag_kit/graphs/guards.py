"""Guards, functions of the user's that see questions, passages and answers; and the check of an answer's citations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from rag_kit.concurrency.bridge import acall_function, call_function
from rag_kit.concurrency.steps import Step
from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.running import ask, bounded
from rag_kit.graphs.state import Update
from rag_kit.prompts import PromptTemplate, render_passages
from rag_kit.text.citations.check import check_citations

_SERIALIZER = JsonPlusSerializer()


@dataclass(frozen=True)
class Refusal:
    """A guard's verdict that ends the run.

    Attributes:
        message: The answer that the user gets.
        reason: Why, for the run's notes.
    """

    message: str
    reason: str = ""


#: Of a question or an answer: None lets it pass, a text takes its place (masking), a `Refusal` ends the run.
TextGuard = Callable[[str, RunnableConfig], "str | Refusal | Awaitable[str | Refusal | None] | None"]
#: Of passages: gives back those that this user may see.
PassagesGuard = Callable[
    [list[Document], RunnableConfig], "Sequence[Document] | Awaitable[Sequence[Document]]"
]


@dataclass(frozen=True)
class Guards:
    """Content policy and access rights, plugged into a graph; each may be a function or a coroutine function.

    They run in the order given, each on what the one before it left, and on every path. With an answer guard the
    answer is not streamed token by token, for it is not yet allowed. A guard that raises ends the run with its
    exception, and one that hangs ends it at the run's deadline: nothing slips past a broken guard.

    Attributes:
        question: See each question, each reply of the user to a question of the graph's, and the question again
            where a conversation completed it (a follow-up, or with the reply).
        passages: See passages before any model does; ``config["configurable"]`` tells who asks.
        answer: See each answer.

    Raises:
        InvalidInputError: A guard is no function.

    Example:
        >>> def no_secrets(question, config):
        ...     if "password" in question:
        ...         return Refusal("I do not talk about passwords.", reason="policy")
        >>> guards = Guards(question=[no_secrets])
        >>> from rag_kit.concurrency.steps import run
        >>> run(guards.check_question("What is the password?"), {}).message
        'I do not talk about passwords.'
    """

    question: Sequence[TextGuard] = ()
    passages: Sequence[PassagesGuard] = ()
    answer: Sequence[TextGuard] = ()

    def __post_init__(self) -> None:
        for kind in ("question", "passages", "answer"):
            given = getattr(self, kind)
            if callable(given) or not isinstance(given, Sequence) or not all(map(callable, given)):
                raise InvalidInputError(f"Guards({kind}=...) takes a list of functions, e.g. [check].")

    async def check_question(self, question: str) -> str | Refusal:
        """The question as the guards leave it, or the refusal."""
        return await _checked(self.question, question, "question")

    async def check_completed(self, completed: str, seen: str) -> str | Refusal:
        """As `check_question`, where a conversation added words to the one `seen`: together they may be harmful."""
        return completed if completed == seen else (await self.check_question(completed))

    async def check_answer(self, answer: str) -> str | Refusal:
        """The answer as the guards leave it, or the refusal."""
        return await _checked(self.answer, answer, "answer")

    async def allowed(self, documents: Sequence[Document]) -> list[Document]:
        """The passages that the guards leave, as a checkpointer takes them."""
        kept = list(documents)
        for guard in self.passages:
            given = await _call(guard, kept)
            if not isinstance(given, Sequence) or not all(isinstance(item, Document) for item in given):
                raise InvalidInputError(
                    f"the passages guard {_name(guard)} gave {type(given).__name__}; it must give a list of Documents."
                )
            kept = list(given)
        return [storable(document) for document in kept]


async def _checked(guards: Sequence[TextGuard], text: str, what: str) -> str | Refusal:
    for guard in guards:
        verdict = await _call(guard, text)
        if isinstance(verdict, Refusal):
            return verdict
        if verdict is not None and not isinstance(verdict, str):
            raise InvalidInputError(
                f"the {what} guard {_name(guard)} gave {type(verdict).__name__}; it must give None (pass), "
                "a text (taken instead) or a Refusal."
            )
        text = text if verdict is None else verdict
    return text


def _call(guard: Callable[..., Any], value: Any) -> Step[Any]:
    """Call a guard of either kind in either form; one that may block runs in a thread under ``ainvoke``."""
    return bounded(
        _name(guard),
        lambda config: call_function(guard, value, config),
        lambda config: acall_function(guard, value, config),
    )


def _name(guard: Any) -> str:
    return str(getattr(guard, "__name__", type(guard).__name__))


def storable(document: Document) -> Document:
    """The document, or a copy with texts in place of the metadata that LangGraph's serializer refuses.

    Stores give back objects of their own (identifiers, numbers beyond 64 bits); with a checkpointer one of them would
    end the run with an error that does not say where it is.
    """
    if _fits(document.metadata):
        return document
    plain = {
        key: value if _fits({key: value}) else str(to_plain(value))
        for key, value in document.metadata.items()
        if _fits(key)
    }
    return Document(page_content=document.page_content, metadata=plain, id=document.id)


def _fits(value: Any) -> bool:
    try:
        _SERIALIZER.dumps_typed(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


MAX_STATEMENTS = 100
"""Statements that a language model is asked about; those beyond are checked by words."""

Judged = Mapping[str, Literal["supported", "unsupported"]]


def cited(
    answer: str, documents: Sequence[Document], *, language: str | None = None, judged: Judged | None = None
) -> Update:
    """Check the answer's citations against the documents, numbered from 1 in the order given."""
    report = check_citations(answer, [d.page_content for d in documents], language=language, judged=judged)
    citations: list[Any] = []
    for item in report.citations:
        known = 1 <= item.number <= len(documents)
        metadata = documents[item.number - 1].metadata if known else {}
        check = {
            key: getattr(item, key) for key in ("number", "statement", "quote", "status", "reason", "score")
        }
        place = {key: metadata.get(key) for key in ("file", "title", "heading", "source")}
        citations.append({**check, **place, "page": page_of(metadata)})
    return {"citations": citations, "uncited": list(report.uncited), "status": report.status}


def page_of(metadata: Mapping[str, Any]) -> Any:
    """The page, slide or sheet of a passage."""
    return metadata.get("page", metadata.get("slide", metadata.get("sheet")))


async def cited_by_model(
    llm: Any, prompt: PromptTemplate, question: str, answer: str, documents: Sequence[Document], language: str
) -> Update:
    """What `cited` gives, by the verdicts of a language model: one call for all statements.

    Where it has none, the words decide, and ``notes`` say so. A statement said in part is not supported.
    """
    by_words = cited(answer, documents, language=language)
    numbers: dict[str, list[int]] = {}
    for one in by_words["citations"]:
        if one["status"] != "missing_passage":
            numbers.setdefault(one["statement"], []).append(one["number"])
    asked = list(numbers)[:MAX_STATEMENTS]
    if not asked:
        return by_words
    cites = [f"{statement} [{', '.join(map(str, numbers[statement]))}]" for statement in asked]
    values = {
        "question": question,
        "passages": render_passages(documents),
        "statements": render_passages([Document(text) for text in cites]),
        "count": len(asked),
    }
    found = await ask(llm, prompt, values, fallback=lambda error: error)
    if isinstance(found, Exception):
        note = f"cite: no verdict of the model ({type(found).__name__}); the words decided"
        return {**by_words, "notes": [note]}
    judged: dict[str, Literal["supported", "unsupported"]] = {
        asked[label.id - 1]: "supported" if label.support == "full" else "unsupported"
        for label in found.labels
        if 1 <= label.id <= len(asked)
    }
    missing = len(numbers) - len(judged)
    notes = [f"cite: no verdict of the model on {missing} statements; the words decided"] if missing else []
    return {**cited(answer, documents, language=language, judged=judged), "notes": notes}
