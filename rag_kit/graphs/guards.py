"""Guards: functions of the user's that see questions, passages and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from rag_kit.documents.identity import content_hash
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.running import call_user_function
from rag_kit.graphs.state import Update, digest_of

# keys of the states that hold a question or a query, and those that hold passages
_QUESTIONS = ("asked", "standalone", "search_query", "sub_question", "web_query")
_PASSAGES = ("documents", "web_documents")


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

    They run in the order given, each on what the one before it left, and on every path: before the next node they see
    a query or passages that somebody edited, and passages of a node of yours. A refused edit is an error. With a guard
    of answers no answer is streamed token by token, for it is not yet allowed. A guard that raises ends the run with
    its exception, and one that hangs ends it at the run's deadline: nothing slips past a broken guard.

    Attributes:
        question: See each question, each reply of the user to a question of the graph's, and the question again
            where a conversation completed it (a follow-up, or with the reply).
        passages: See passages before any model does; ``config["configurable"]`` tells who asks.
        answer: See each answer.

    Raises:
        InvalidInputError: A guard is not a function.

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
        for name in ("question", "passages", "answer"):
            guards = getattr(self, name)
            if callable(guards) or not isinstance(guards, Sequence) or not all(map(callable, guards)):
                raise InvalidInputError(f"Guards({name}=...) takes a list of functions, e.g. [check].")

    async def check_question(self, question: str) -> str | Refusal:
        """Pass the question through the guards: return what they make of it, or the refusal."""
        return await _run_text_guards(self.question, question)

    async def check_answer(self, answer: str) -> str | Refusal:
        """Pass the answer through the guards: return what they make of it, or the refusal."""
        return await _run_text_guards(self.answer, answer)

    async def check_passages(self, documents: Sequence[Document]) -> Sequence[Document]:
        """Return the passages that the guards leave."""
        for guard in self.passages:
            name = _name_of(guard)
            documents = await call_user_function(name, guard, list(documents), with_config=True)
            is_sequence = isinstance(documents, Sequence)
            if not is_sequence or not all(isinstance(item, Document) for item in documents):
                raise InvalidInputError(
                    f"the guard {name} gave {type(documents).__name__}; it must give a list of Documents."
                )
        return documents

    async def check_edits(self, state: Mapping[str, Any], *, passages: bool) -> Update:
        """Let the guards see the keys that were edited since a node of the kit wrote them; return what they leave.

        Raises:
            InvalidInputError: They refuse it.
        """
        checked, marks = dict[str, Any](), state.get("guarded") or {}
        for key in self._keys(passages):
            value = state.get(key)
            if not value or marks.get(key) == _mark(value):  # seen before
                continue
            check: Any = self.check_passages if key in _PASSAGES else self.check_question
            verdict = checked[key] = await check(value)
            if isinstance(verdict, Refusal):
                raise InvalidInputError(
                    f"a guard refused the edited {key!r} ({verdict.reason or verdict.message}); edit it again, or ask "
                    "another question."
                )
        return checked

    def seen(self, update: Mapping[str, Any], *, passages: bool) -> Update:
        """Return the update with hashes of what a node wrote, by which `check_edits` knows what was edited since."""
        return {"guarded": {key: _mark(update[key]) for key in self._keys(passages) if update.get(key)}}

    def _keys(self, passages: bool) -> list[str]:
        return [*(_QUESTIONS if self.question else ()), *(_PASSAGES if self.passages and passages else ())]


def _mark(value: Any) -> str:
    """Hash a query, or passages with their metadata, for a title is read as well."""
    if isinstance(value, str):
        return content_hash(value)
    return content_hash("".join(f"{digest_of(passage)}{passage.metadata}" for passage in value))


async def _run_text_guards(guards: Sequence[TextGuard], text: str) -> str | Refusal:
    for guard in guards:
        name = _name_of(guard)
        verdict = await call_user_function(name, guard, text, with_config=True)
        if isinstance(verdict, Refusal):
            return verdict
        if verdict is not None and not isinstance(verdict, str):
            raise InvalidInputError(
                f"the guard {name} gave {type(verdict).__name__}; it must give None (pass), a text (taken instead) or "
                "a Refusal."
            )
        text = text if verdict is None else verdict
    return text


def _name_of(guard: Any) -> str:
    return str(getattr(guard, "__name__", type(guard).__name__))
