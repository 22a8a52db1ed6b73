"""Facts about a user in LangGraph's long-term store: who may be read, what may be kept, how it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.config import get_config
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.errors import InvalidInputError
from rag_kit.text import content_words, fold

MAX_FACT_CHARS = 200
KEY = "facts"
_USER_ID = re.compile(r"[\w@+:=.-]{1,128}")
# Control characters, line breaks, and what turns the direction of text or has no width.
_INVISIBLE_CHARS = re.compile(r"[\x00-\x20\x7f-\xa0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def check_user_id(user_id: Any) -> str:
    """Return a user's id; refuse all but 1 to 128 letters, digits and a few signs."""
    if not isinstance(user_id, str) or not _USER_ID.fullmatch(user_id):
        raise InvalidInputError(
            f"user_id={user_id!r:.60} is no user id; allowed: 1 to 128 letters, digits and @ + : = . _ -"
        )
    return user_id


def namespace(user_id: str) -> tuple[str, str, str]:
    """Return the store's namespace of a user. Dots, which stores use to join names, become ``%2E``."""
    return ("rag_kit", check_user_id(user_id).replace(".", "%2E"), "facts")


def check_signed_in(user_id: str) -> None:
    """Refuse another user's id if the server, which knows who asks, put that into the configuration."""
    signed_in = get_config()["configurable"].get("langgraph_auth_user_id")
    if signed_in and signed_in != user_id:  # "" where nobody has to sign in
        raise InvalidInputError(
            "context.user_id is not the user who is signed in; leave it out, or give that user's own id."
        )


async def read(store: BaseStore, user_id: str) -> list[str]:
    """Read the facts about a user; what else is stored there is left out."""
    # by its exact name: a search by prefix would also match the names of other users that begin alike
    item: Item | None = await _store_step(store, GetOp(namespace(user_id), KEY))
    stored = item.value.get("facts") if item is not None else None
    texts = [text for text in stored if isinstance(text, str)] if isinstance(stored, list) else []
    return list(filter(None, map(clean_fact, texts)))


def write(store: BaseStore, user_id: str, facts: Sequence[str] | None) -> Step[Any]:
    """Make the step that replaces the facts about a user; None deletes them."""
    if not isinstance(store, BaseStore):
        raise InvalidInputError(
            f"store is a {type(store).__name__}; give the LangGraph store that the graph was built with."
        )
    value = None if facts is None else {"facts": list(facts)}
    return _store_step(store, PutOp(namespace(user_id), KEY, value, index=False))


def forget_facts(store: BaseStore, user_id: str) -> None:
    """Delete all that is remembered about a user.

    Raises:
        InvalidInputError: The store is not one, or the text is not a user id.

    Example:
        >>> from langgraph.store.memory import InMemoryStore
        >>> forget_facts(InMemoryStore(), "ann")
    """
    write(store, user_id, None).sync(None)  # no config: this runs outside of a graph


async def aforget_facts(store: BaseStore, user_id: str) -> None:
    """Delete all that is remembered about a user, without blocking the event loop."""
    await write(store, user_id, None).native(None)


def merge_facts(stored_facts: Sequence[str], new: Iterable[str], message: str, max_facts: int) -> list[str]:
    """Merge new facts into known ones: cleaned, without repeats, the newest if there are too many.

    A fact must share a word with what the user wrote, so that nothing is kept that came from somewhere else.
    """
    facts = list(filter(None, map(clean_fact, stored_facts)))
    words = set(content_words(message))
    for fact in map(clean_fact, new):
        if fact and words & set(content_words(fact)) and _comparable(fact) not in map(_comparable, facts):
            facts.append(fact)
    return facts[-max_facts:]


def clean_fact(fact: str) -> str:
    """Clean a fact: one line, bounded, without invisible characters; "" if nothing is left."""
    line = _INVISIBLE_CHARS.sub(" ", fact[: 4 * MAX_FACT_CHARS]).strip()  # more is not looked at
    return line if len(line) <= MAX_FACT_CHARS else line[: MAX_FACT_CHARS - 1].rstrip() + "…"


def render_facts(facts: Sequence[str]) -> str:
    """Write the facts for a prompt, one a line, as plain text, so that tags in it are escaped."""
    return "\n".join(f"- {fact}" for fact in facts)


def _comparable(fact: str) -> str:
    return fold(fact).rstrip(" .。!！")


def _store_step(store: BaseStore, operation: Any) -> Step[Any]:
    async def native(config: Any) -> Any:
        try:
            return (await store.abatch([operation]))[0]
        except NotImplementedError:  # a store that only blocks, as SqliteStore
            return (await run_in_thread(store.batch, [operation]))[0]

    return Step("store", sync=lambda config: store.batch([operation])[0], native=native)
