"""The typed state that all graphs share. ``question`` is what the user asked and is never overwritten."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, cast, get_args, get_origin, get_type_hints

from langchain_core.documents import Document
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Overwrite
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rag_kit.documents.identity import document_key, field_of, to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.text.citations.check import check_citations

#: How many turns of a thread are kept to understand a follow-up question.
MAX_TURNS = 20

_SERIALIZER = JsonPlusSerializer()
_UNSTORABLE_CHARS = re.compile("[\0\ud800-\udfff]")


class Turn(TypedDict):
    """One question of a thread and the answer it got."""

    question: str
    answer: str


class Usage(TypedDict):
    """Usage of a run so far: model calls, tokens in and out, seconds inside nodes."""

    calls: int
    tokens: int
    seconds: float


class AnswerCitation(TypedDict):
    """One ``[n]`` of the answer and the sentence of passage n that supports it.

    ``quote`` is a verbatim span of the passage; it is None when there is no passage n.
    ``status`` is ``supported``, ``unsupported``, ``undecided`` (the check cannot tell, as where its passage is in
    another language) or ``missing_passage``; ``reason`` says why.
    """

    number: int
    statement: str
    quote: str | None
    status: str
    reason: str
    score: float
    file: str | None
    title: str | None
    page: int | str | None
    heading: str | None
    source: str | None
    picture: NotRequired[str]  # of a passage that is about a picture: its file below the folder of the index


#: ``grounded``: each statement has a citation that holds; ``flagged``: one does not hold; ``undecided``: for one the
#: check cannot tell; ``uncited``: one has none; ``declined``: the answer says that the documents do not hold it;
#: ``incomplete``: something was not searched and nothing was found, or the answer was cut off; ``unsourced``: nothing
#: was looked up, nor cited; ``refused``: a guard ended the run; ``clarify``: the graph asks the user back.
AnswerStatus = Literal[
    "grounded", "flagged", "undecided", "uncited", "declined", "incomplete", "unsourced", "refused", "clarify"
]

_EXPECTED: dict[str, str] = {}  # what to give for a key that has a reducer


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def _validate(hint: Any, value: Any, key: str, expected: str) -> Any:
    """Return a value of a key, converted to the type ``hint``; refuse one that does not fit, and say what does."""
    try:
        return _adapter(hint).validate_python(value)
    except (ValidationError, TypeError):  # a Document that lacks its text raises the latter
        raise InvalidInputError(f"the state holds {value!r:.80} as {key}; give {expected}.") from None


def check_types(schema: type[Any], state: Any) -> None:
    """Raise InvalidInputError, which names the key, if a value of the state has a wrong type, as after an edit."""
    for key, hint in get_type_hints(schema).items():
        value = field_of(state, key) or None  # empty: not written yet
        _validate(hint | None, value, repr(key), _EXPECTED.get(key) or f"a {getattr(hint, '__name__', hint)}")


def _reducer(
    hint: Any, keys: Sequence[str], expected: str, merge: Callable[[Any, Any], Any] = lambda old, new: new
) -> Callable[[Any, Any], Any]:
    """Make the reducer of keys, which LangGraph calls with the old and the new value; checks the new one's type."""
    _EXPECTED.update(dict.fromkeys(keys, expected))
    return lambda old, new: merge(old, _validate(hint, new, " or ".join(keys), expected))


#: Appends, and forgets what is older than the last `MAX_TURNS` turns.
keep_last_turns = _reducer(
    list[Turn],
    ["history"],
    "turns, a list of dicts with question and answer (texts)",
    lambda old, new: [*(old or ()), *new][-MAX_TURNS:],  # None after an edit that overwrites it by null
)
#: Appends items, also from nodes side by side; the first node of a run overwrites (`empty_state`).
add_items = _reducer(list[Any], ["trace", "strips"], "a list", lambda old, new: [*(old or ()), *new])
#: Appends the notes that are not there yet, also from nodes that ran side by side.
add_notes = _reducer(
    list[str], ["notes", "unsearched"], "a list", lambda old, new: [*dict.fromkeys([*(old or ()), *new])]
)
#: Merges the nodes' choices of the next node; each node writes under its own name.
merge_choices = _reducer(
    dict[str, str | list[str]],
    ["choices"],
    "a dict: node -> the node (or list of nodes) that follows it",
    lambda old, new: {**(old or {}), **new},
)
#: Overwrites the settings of a turn; nodes that run side by side may write the same.
keep_newest = _reducer(dict[str, Any], ["turn_settings"], "a dict of settings")
#: Takes new passages as Documents, also those that come as plain JSON (from Studio or over HTTP).
as_documents = _reducer(
    list[Document], ["documents", "web_documents"], "Documents, or dicts with page_content and metadata"
)


def add_usage(old: Mapping[str, Any], new: Mapping[str, Any]) -> Usage:
    """Add what a node used to the usage so far; nodes that ran side by side are added one by one."""
    added = _validate(Usage, new, "usage", "a dict with calls, tokens and seconds (numbers)")
    usage: Any = {"calls": 0, "tokens": 0, "seconds": 0.0, **old}
    return cast("Usage", {name: usage[name] + value for name, value in added.items()})


class QuestionInput(TypedDict):
    """Input of a run: the question."""

    question: Required[str]


class InputChannel(EphemeralValue[Any]):
    """The input of a run. Settings in it are refused, since LangGraph drops unknown keys in silence.

    Without its ``filter`` a run would show a tenant the passages of others. An empty filter and a ``k`` of 0, with
    which a parent's reducers begin, ask for nothing. The input's schema, and so Studio's form, is that of the question.
    """

    def update(self, values: Sequence[Any]) -> bool:
        """Take the input of a run, before its first checkpoint."""
        for name in ("filter", "k"):
            if any(field_of(value, name) for value in values):
                raise InvalidInputError(
                    f"{name} was given in the input of a graph, where it has no effect; it belongs in the context: "
                    f'graph.invoke({{"question": ...}}, context={{"{name}": ...}}). If the graph is a node of another '
                    "graph whose state has that key, call it inside a node, with such a context."
                )
        known = get_type_hints(self.typ)
        for value in values:
            if isinstance(value, Mapping) and value and not known.keys() & value.keys():
                unknown = f"{', '.join(map(repr, value)):.200}"
                raise InvalidInputError(
                    f"the input has no {next(iter(known))!r}; it has {unknown}, which is unknown."
                )
        return super().update([clean_texts(value) for value in values])


class RagState(QuestionInput, total=False):
    """State of every graph: how it searched, what it found, what it answered, what that rests on and cost.

    ``asked`` is the question as the guards left it; that, and not ``question``, goes into prompts and ``history``.
    ``standalone`` is that question in the form that needs no history: it is judged by and answered. ``search_query`` is
    what is searched for: the same, unless somebody edits it.
    ``documents`` are the passages that were retrieved, and in the end those that the answer cites by number.
    ``cut_off`` says why the answer ends too early, if it does.
    ``unsearched`` are the notes about what was to be searched and was not. ``choices`` says which node each node chose
    to follow it, where the other keys do not say so; edges read it. ``turn_settings`` is the context of the call that
    began the turn, with a hash of its question; it holds until the turn ends, whoever resumes it. ``guarded`` has
    hashes of the queries and passages that the guards saw.
    """

    history: Annotated[list[Turn], keep_last_turns]
    asked: str
    standalone: str
    search_query: str
    language: Literal["en", "zh"]
    documents: Annotated[list[Document], as_documents]
    answer: str
    citations: list[AnswerCitation]
    uncited: list[str]
    status: AnswerStatus | None
    cut_off: str
    notes: Annotated[list[str], add_notes]
    unsearched: Annotated[list[str], add_notes]
    choices: Annotated[dict[str, str | list[str]], merge_choices]
    turn_settings: Annotated[dict[str, Any], keep_newest]
    guarded: Annotated[dict[str, Any], merge_choices]
    usage: Annotated[Usage, add_usage]


class RagOutput(TypedDict, total=False):
    """Output of ``invoke``, unless the graph was built with ``output="full"``: no graph's own machinery.

    ``usage`` and ``documents`` are those of `RagState`; a run that waits for a person has ``__interrupt__`` besides.
    """

    question: Required[str]
    answer: str
    status: AnswerStatus
    citations: list[AnswerCitation]
    documents: Annotated[list[Document], as_documents]
    notes: Annotated[list[str], add_notes]
    usage: Annotated[Usage, add_usage]


def as_storable(document: Document) -> Document:
    """Replace metadata that LangGraph's serializer refuses by texts, in a copy; return the document if there is none.

    An entry whose key is refused is left out. Stores give back objects of their own (identifiers, numbers beyond 64
    bits); with a checkpointer one of them would end the run with an error that does not say where it is.
    """
    metadata = document.metadata
    if _is_serializable(metadata):
        return document
    plain = {
        key: value if _is_serializable(value) else str(to_plain(value))
        for key, value in metadata.items()
        if _is_serializable(key)
    }
    return Document(page_content=document.page_content, metadata=plain, id=document.id)


def digest_of(document: Document) -> str:
    """Hash a passage, to know it again in the state, and whether its text is still the same."""
    identity = f"{document_key(document)}\0{document.page_content}"
    return hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _is_serializable(value: Any) -> bool:
    try:
        _SERIALIZER.dumps_typed(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


def clean_texts(value: Any, depth: int = 6) -> Any:
    """Replace NUL and halves of surrogate pairs in the texts of a value by U+FFFD: PostgreSQL cannot store them.

    It looks into commands and documents, and into ``depth`` levels of dicts, lists and tuples.
    """
    if isinstance(value, str):
        return _UNSTORABLE_CHARS.sub("\ufffd", value)
    if isinstance(value, Overwrite):
        return Overwrite(clean_texts(value.value, depth))
    if isinstance(value, Command):
        return replace(value, update=clean_texts(value.update, depth))
    if isinstance(value, Document):
        return value.model_copy(update=clean_texts(dict(value), depth))
    if type(value) is dict and depth:
        return {clean_texts(key): clean_texts(item, depth - 1) for key, item in value.items()}
    if type(value) in (list, tuple) and depth:
        return type(value)(clean_texts(item, depth - 1) for item in value)
    return value


#: A node's return value: some keys of the state.
Update = dict[str, Any]


def check_answer(
    answer: str,
    documents: Sequence[Document],
    *,
    language: str | None = None,
    judged: Mapping[str, Literal["supported", "unsupported"]] | None = None,
) -> Update:
    """Check an answer's citations against documents numbered from 1; ``judged``: statement -> a model's verdict."""
    report = check_citations(answer, documents, language=language, judged=judged)
    citations: list[dict[str, Any]] = []
    for item in report.citations:
        metadata = documents[item.number - 1].metadata if 1 <= item.number <= len(documents) else {}
        names = ("number", "statement", "quote", "status", "reason", "score")
        citation = {name: getattr(item, name) for name in names}
        citation |= {name: metadata.get(name) for name in ("file", "title", "heading", "source")}
        citation["page"] = page_of(metadata)
        if "picture" in metadata:
            citation["picture"] = metadata["picture"]
        citations.append(citation)
    return {"citations": citations, "uncited": list(report.uncited), "status": report.status}


def page_of(metadata: Mapping[str, Any]) -> Any:
    """Return the page, slide or sheet of a passage."""
    return metadata.get("page", metadata.get("slide", metadata.get("sheet")))


def source_of(document: Document) -> str | None:
    """Return the file or the address of a passage."""
    source = document.metadata.get("file") or document.metadata.get("source")
    return None if source is None else str(source)


def question_of(state: Mapping[str, Any]) -> str:
    """Return the question that is answered, in the form that needs no history."""
    # a node in the place of the kit's may write a query alone
    return cast("str", state.get("standalone") or state["search_query"])


def is_refused(state: Mapping[str, Any]) -> bool:
    """Tell whether a guard ended the run."""
    return state.get("status") == "refused"


#: Keys that last from turn to turn, or are set in each.
LASTING = ("question", "history", "summary", "language", "turn_settings", "mode", "scoring")


def empty_state(state: type[Any]) -> Update:
    """Return an empty value for each key but `LASTING` of a state, so that nothing of an earlier turn is left."""
    hints = get_type_hints(state, include_extras=True)
    return {key: _empty_value(hint) for key, hint in hints.items() if key not in LASTING}


def _empty_value(hint: Any) -> Any:
    """Return the value that empties a key of a type; an ``Overwrite`` where the key's reducer would append."""
    if get_origin(hint) is not Annotated:
        make = get_origin(hint) or hint  # list of list[str]
        return make() if make in (str, list, int, bool) else None
    value_type, reducer = get_args(hint)
    if reducer is add_usage:
        return Overwrite(Usage(calls=0, tokens=0, seconds=0.0))
    empty = (get_origin(value_type) or value_type)()
    return empty if reducer is as_documents else Overwrite(empty)  # `as_documents` replaces by itself
