"""The base of the kit's retrievers: per-call ``k`` and ``filter``, the config passed down, own errors."""

from __future__ import annotations

import html
import math
import operator
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from pydantic import BeforeValidator, ConfigDict, ValidationError, ValidationInfo, field_validator

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents import Filter, clean_text, combine_filters, validate_filter
from rag_kit.documents.fields import fields_of_filter
from rag_kit.documents.provenance import compact_provenance, retriever_depth
from rag_kit.errors import InvalidInputError
from rag_kit.models.runnables import callbacks_below, has_listeners, silent_manager
from rag_kit.retrieval.arguments import as_invalid_input, translate_arguments, unknown_arguments
from rag_kit.retrieval.own_filter import are_documents, check_fields, known_already

_COPIED = ("tags", "metadata", "configurable")  # of a config, so that no child writes to the caller's
_OF_ONE_RUN = ("run_name", "run_id")  # of a config, not for a child
ALL = sys.maxsize  # the k of a call for whatever is found
_LANGCHAIN_ARGUMENTS = frozenset({"verbose", "run_id"})


def check_count(name: str, value: Any) -> int:
    """Check a number of documents: a whole number of at least 1."""
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInputError(f"{name}={value!r} was given; it must be a whole number >= 1.")
    return count


def check_number(name: str, value: Any, *, above: float | None = None, maximum: float | None = None) -> float:
    """Check a number: at least 0 (or above ``above``), at most ``maximum``."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    too_low = is_number and (value < 0 if above is None else value <= above)
    if not is_number or too_low or (maximum is not None and value > maximum):
        low = f"above {above:g}" if above is not None else "from 0"
        raise InvalidInputError(
            f"{name}={value!r} was given; it must be a number {low}{'' if maximum is None else f' to {maximum:g}'}."
        )
    return float(value)


def _checked(value: Any, info: ValidationInfo) -> Any:
    return check_count(str(info.field_name), value)


Count = Annotated[int, BeforeValidator(_checked)]
"""A field for a number of documents, at least 1."""
OptionalCount = Annotated[
    int | None, BeforeValidator(lambda v, info: None if v is None else _checked(v, info))
]
"""A ``Count``, or ``None``."""


@dataclass(frozen=True)
class Request:
    """What one call asks for; hand ``child(...)`` of its ``config`` to what you call.

    ``k`` is the most documents to return, or ``ALL`` for whatever is found; ``filter`` is the retriever's own AND the
    call's; ``extra`` holds the arguments that the class names in ``call_arguments``.
    """

    k: int
    filter: Filter | None
    config: RunnableConfig
    run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun
    extra: Mapping[str, Any]

    def fetch(self, minimum: int | None = None) -> int | None:
        """How many documents to ask an inner retriever for; ``None`` (its own number) where all are wanted."""
        return minimum or None if self.k == ALL else max(self.k, minimum or 0)

    def child(self, tag: str | None = None) -> RunnableConfig:
        """The whole config (``configurable``, tags, metadata...) for a child run of this one."""
        # As LangChain's patch_config, for a config that is known to be whole.
        config: dict[str, Any] = {**self.config, "callbacks": callbacks_below(self.run_manager, tag)}
        for key in _OF_ONE_RUN:
            config.pop(key, None)
        for key in _COPIED:
            if config.get(key) is not None:
                config[key] = config[key].copy()
        return cast("RunnableConfig", config)


class RagKitRetriever(BaseRetriever):
    """Base class of retrievers: implement ``_retrieve`` and, where it does I/O, ``_aretrieve``.

    ``invoke(query, config, k=..., filter=...)`` overrides ``k`` and narrows by ``filter``, which is ANDed
    with the retriever's own. The same goes through ``batch``, ``bind`` and the retrievers that wrap others.
    An empty query (white space only) finds nothing and gives ``[]``.

    Args:
        k: Most documents to return, >= 1.
        filter: Metadata filter for every call (``rag_kit.documents``).
        id_key: Metadata key that identifies a document; without it ``Document.id``, else the text.

    Raises:
        InvalidInputError: An argument is not allowed, or a filter names a field that no document has, as far as known.

    Example:
        >>> class First(RagKitRetriever):
        ...     texts: list[str]
        ...     def _retrieve(self, query, request):
        ...         return [Document(text) for text in self.texts]
        >>> [doc.page_content for doc in First(texts=["a", "b", "c"]).invoke("q", k=2)]
        ['a', 'b']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    call_arguments: ClassVar[frozenset[str]] = frozenset()
    # What other libraries call an argument: the name here, which takes its place, or what to do instead.
    other_names: ClassVar[Mapping[str, str]] = {}
    takes_search_kwargs: ClassVar[bool] = False
    k_may_be_none: ClassVar[bool] = False

    k: int = 4
    filter: Mapping[str, Any] | None = None
    id_key: str | None = None

    def __init__(self, *unnamed: Any, **values: Any) -> None:
        if unnamed:
            raise InvalidInputError(f"{type(self).__name__} takes its arguments by name, such as k=4.")
        try:
            super().__init__(**translate_arguments(type(self), values))
        except ValidationError as error:
            raise as_invalid_input(type(self), error) from None

    @field_validator("k", mode="before")
    @classmethod
    def _k_is_allowed(cls, value: Any) -> Any:
        return None if value is None and cls.k_may_be_none else check_count("k", value)

    @field_validator("filter")
    @classmethod
    def _filter_is_allowed(cls, value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        validate_filter(value)
        return value

    @abstractmethod
    def _retrieve(self, query: str, request: Request) -> list[Document]:
        """Find documents, best first; more than ``request.k`` are cut off."""

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        """Async ``_retrieve``; by default runs ``_retrieve`` on a thread of the shared pool."""
        manager = request.run_manager
        if isinstance(manager, AsyncCallbackManagerForRetrieverRun):
            request = replace(request, run_manager=manager.get_sync())
        return await run_in_thread(self._retrieve, query, request)

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Find documents for a query.

        Args:
            input: The query.
            config: LangChain's config; all of it reaches the retrievers and models inside.
            **kwargs: ``k`` and ``filter`` for this call.

        Returns:
            Copies of the documents, best first, with provenance.

        Raises:
            InvalidInputError: The query is not a string, or an argument is not allowed.
        """
        whole = ensure_config(config)
        if self._needs_langchain_run(whole, kwargs):
            return super().invoke(input, config, call_config=whole, **kwargs)
        manager = silent_manager(CallbackManagerForRetrieverRun, whole)
        return self._get_relevant_documents(input, run_manager=manager, call_config=whole, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """As ``invoke``, natively asynchronous."""
        whole = ensure_config(config)
        if self._needs_langchain_run(whole, kwargs):
            return await super().ainvoke(input, config, call_config=whole, **kwargs)
        manager = silent_manager(AsyncCallbackManagerForRetrieverRun, whole)
        return await self._aget_relevant_documents(input, run_manager=manager, call_config=whole, **kwargs)

    def _needs_langchain_run(self, config: RunnableConfig, kwargs: Mapping[str, Any]) -> bool:
        """Whether to go through LangChain's own ``invoke``; without a listener, a run costs more than a short search.

        A subclass that has a search method of LangChain's, and arguments that LangChain reads, need it as well.
        """
        cls = type(self)
        return (
            cls._get_relevant_documents is not RagKitRetriever._get_relevant_documents
            or cls._aget_relevant_documents is not RagKitRetriever._aget_relevant_documents
            or not _LANGCHAIN_ARGUMENTS.isdisjoint(kwargs)
            or has_listeners(config)
        )

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        call_config: RunnableConfig | None = None,
        **extra: Any,
    ) -> list[Document]:
        """Check the call and search; called by `invoke`, or by LangChain where the run has listeners."""
        request = self._make_request(query, run_manager, k, filter, call_config, extra)
        if unseen := self._unseen_fields(request):
            check_fields(self, unseen, request.config)
        depth = retriever_depth.get()
        within = retriever_depth.set(depth + 1)
        try:
            documents = self._retrieve(query, request)[: request.k] if query.strip() else []
        finally:
            retriever_depth.reset(within)
        return documents if depth else compact_provenance(documents)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        call_config: RunnableConfig | None = None,
        **extra: Any,
    ) -> list[Document]:
        request = self._make_request(query, run_manager, k, filter, call_config, extra)
        if unseen := self._unseen_fields(request):
            await run_in_thread(check_fields, self, unseen, request.config)
        depth = retriever_depth.get()
        within = retriever_depth.set(depth + 1)
        try:
            documents = (await self._aretrieve(query, request))[: request.k] if query.strip() else []
        finally:
            retriever_depth.reset(within)
        return documents if depth else compact_provenance(documents)

    def _unseen_fields(self, request: Request) -> set[str]:
        """Fields of the filter that were not seen before; a filter from an outer retriever was checked there."""
        where = self.filter if retriever_depth.get() else request.filter
        fields = fields_of_filter(where) if where else set()
        return set() if not fields or known_already(self, fields, request.config) else fields

    def _make_request(
        self,
        query: Any,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        k: int | None,
        filter: Filter | None,
        config: RunnableConfig | None,
        extra: Mapping[str, Any],
    ) -> Request:
        """The request of one call, from its arguments and the fields; refuses what is not allowed."""
        if not isinstance(query, str):
            raise InvalidInputError(f"A query must be a string, not {type(query).__name__}.")
        unknown = sorted(set(extra) - self.call_arguments - _LANGCHAIN_ARGUMENTS) if extra else None
        if unknown:
            problem = unknown_arguments(unknown, {"k", "filter", *self.call_arguments}, {})
            raise InvalidInputError(f"{self.get_name()} was called with unknown arguments: {problem}.")
        count = self.k if k is None else k
        return Request(
            k=ALL if count is None else check_count("k", count),
            filter=combine_filters(self.filter, filter) if self.filter or filter is not None else None,
            config=ensure_config() if config is None else config,  # invoke has filled it in
            run_manager=run_manager,
            extra={name: extra[name] for name in extra if name in self.call_arguments},
        )

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of everything inside, so that ``configurable`` may set them."""
        return get_unique_config_specs(spec for part in self._parts() for spec in part.config_specs)

    def _parts(self) -> Iterator[Runnable[Any, Any]]:
        """The runnables among the fields, and those that a reranker or source among them holds."""
        for name in type(self).model_fields:
            yield from _runnables_in(getattr(self, name), 2)

    def _repr_html_(self) -> str:
        """For Jupyter: the retriever's name, its plain settings and the names of its parts."""
        settings = {
            name: value
            for name in type(self).model_fields
            if isinstance(value := getattr(self, name), (str, int, float)) and name != "name"
        }
        lines = [f"{name} = {value!r}" for name, value in settings.items()]
        lines += [f"↳ {part.get_name()}" for part in self._parts()]
        items = "".join(f"<li>{html.escape(clean_text(line))}</li>" for line in lines)
        return f"<div><strong>{html.escape(clean_text(self.get_name()))}</strong><ul>{items}</ul></div>"


def _runnables_in(value: Any, depth: int) -> Iterator[Runnable[Any, Any]]:
    """The runnables in a value, in its items, or in the attributes of an object, ``depth`` objects deep."""
    if isinstance(value, Runnable):
        yield value
    elif isinstance(value, (Mapping, list, tuple)) and not are_documents(value):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _runnables_in(part, depth)
    elif depth and hasattr(value, "__dict__"):
        for part in vars(value).values():
            yield from _runnables_in(part, depth - 1)
