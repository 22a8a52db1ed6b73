"""The state of the CRAG graph: what every graph keeps, and each step of the correction."""

from __future__ import annotations

from typing import Annotated, Literal

from langchain_core.documents import Document
from typing_extensions import TypedDict

from rag_kit.graphs.state import RagState, add_items, as_documents


class PassageGrading(TypedDict):
    """The evaluator's verdict on one retrieved passage.

    ``score`` is its confidence, from -1 (surely of no use) to 1 (surely of use); ``file`` and ``page`` say which.
    """

    score: float
    reason: str
    file: str | None
    page: int | str | None


class Strip(TypedDict):
    """A few sentences of one passage, judged by themselves.

    ``text`` is the span ``[start:end]`` of passage number ``passage`` (from 0) of ``retrieved`` or, where
    ``origin`` is ``web``, of ``web_documents``. ``kept`` says whether the answer may use it.
    """

    origin: Literal["retrieved", "web"]
    passage: int
    start: int
    end: int
    text: str
    score: float
    reason: str
    kept: bool


class CragState(RagState, total=False):
    """State of the CRAG graph after and between its nodes.

    ``documents`` are the passages that the answer was made from, numbered as it cites them; ``retrieved`` are those
    of the retriever, ``internal`` and ``external`` what selection left of the index and of the web.
    """

    retrieved: Annotated[list[Document], as_documents]
    gradings: list[PassageGrading]
    action: Literal["correct", "incorrect", "ambiguous"] | None
    web_query: str
    web_documents: Annotated[list[Document], as_documents]
    internal: Annotated[list[Document], as_documents]
    external: Annotated[list[Document], as_documents]
    strips: Annotated[list[Strip], add_items]
