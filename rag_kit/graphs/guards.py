"""Guards: functions of the user's that see each question, each passage and each answer, on every path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from rag_kit.concurrency.bridge import acall_function, call_function
from rag_kit.concurrency.steps import Step
from rag_kit.documents.plain import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.steps import bounded

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

    They run in the order given, each on what the one before it left, and on every path: the question before
    anything is searched or asked, passages wherever they come from (retriever, web, neighbours), the answer before
    it leaves the graph. With an answer guard the answer is not streamed token by token, for it is not yet allowed.
    A guard that raises ends the run with its exception, and one that hangs ends it at the run's deadline: nothing
    slips past a broken guard.

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
        """A question that gained words from a conversation: what is harmless in parts may not be in one piece.

        Args:
            completed: The question as it stands alone.
            seen: The question that the guards have seen; they are not asked twice about the same text.
        """
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
        if verdict is not None:
            if not isinstance(verdict, str):
                raise InvalidInputError(
                    f"the {what} guard {_name(guard)} gave {type(verdict).__name__}; it must give None (pass), "
                    "a text (taken instead) or a Refusal."
                )
            text = verdict
    return text


def _call(guard: Callable[..., Any], value: Any) -> Step[Any]:
    """Call a guard of either kind in either form; one that may block runs in a thread under ``ainvoke``."""
    return bounded(
        Step(
            _name(guard),
            lambda config: call_function(guard, value, config),
            lambda config: acall_function(guard, value, config),
        )
    )


def _name(guard: Any) -> str:
    return str(getattr(guard, "__name__", type(guard).__name__))


def storable(document: Document) -> Document:
    """The document, or a copy with plain metadata where LangGraph's serializer refuses them.

    Stores give back objects of their own (identifiers, numbers beyond 64 bits); with a checkpointer one of them would
    end the run with an error that does not say where it is.

    Example:
        >>> known = Document("Text.", metadata={"page": 2})
        >>> storable(known) is known
        True
        >>> storable(Document("Text.", metadata={"page": 2, "n": 10**30})).metadata
        {'page': 2, 'n': '1000000000000000000000000000000'}
    """
    try:
        _SERIALIZER.dumps_typed(document.metadata)
    except (TypeError, ValueError, OverflowError, RecursionError):
        plain = _small(to_plain(document.metadata))
        return Document(page_content=document.page_content, metadata=plain, id=document.id)
    return document


def _small(value: Any) -> Any:
    """Plain data without numbers beyond 64 bits, and without halves of characters in keys."""
    if isinstance(value, dict):
        return {key.encode("utf-8", "backslashreplace").decode(): _small(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_small(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value
