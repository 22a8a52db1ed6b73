"""Self-query retrieval: the question as a text to search for and a filter on metadata."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import BeforeValidator, PrivateAttr, model_validator

from rag_kit.concurrency.bridge import run_coroutine
from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.models import astructured_call
from rag_kit.models.model_call import is_extractive
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.query_construction.calling import SelfQueryCall
from rag_kit.query_construction.checking import check_answer
from rag_kit.query_construction.clauses import ConstructedQuery
from rag_kit.query_construction.discovery import FieldSource, as_retriever, discover_schema, source_of
from rag_kit.query_construction.fields import Schema, cut_line, describe_fields
from rag_kit.query_construction.rules.constructor import RuleConstructor
from rag_kit.retrieval import VectorRetriever
from rag_kit.retrieval.asking import LanguagePrompts
from rag_kit.retrieval.base import AskingRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import check_model
from rag_kit.retrieval.inside import own_filter
from rag_kit.retrieval.settings import SelfQuerySettings

_MAX_SCHEMAS = 32


class SelfQueryRetriever(AskingRetriever):
    """Turn a question into a text to search for and a filter on metadata, and search with both.

    "Studies on stroke after 2010, not in children" becomes ``mesh contains Stroke and year > 2010 and not mesh contains
    Child``. The filter comes from a model (``from_llm``) or from rules (``from_rules``; also where the model fails).
    Only fields of the schema get into it, under operators and with values of their type; notes tell what was changed.

    The caller's own filter, static or of the call, is ANDed and never loosened. If nothing passes, conditions of the
    question are dropped one after the other, and the notes say which ("relaxed: ...").

    Args:
        retriever: A LangChain retriever (the class methods also take a vector store, an index or documents).
        llm: A chat model; ``None``, or the extractive model, for rules.
        schema_: A ``Schema``, or a list of dicts or ``AttributeInfo``; ``None``: read from rows that the filter passes.
        documents: Where rows are read from; by default the store, index or documents behind the retriever.
        prompt: A prompt from ``load_prompt``, or one a language, with the variables ``question`` and ``fields``.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the question.
        today: The day that relative dates ("last year") count from; ``None`` for the day of the call.
        document_contents: What the documents are, in a few words for the model.
        enable_limit: Whether a number in the question ("the three latest") holds.
        use_original_query: Search for the question itself rather than for what is left of it.
        relax: When nothing passes, drop the question's last condition, then the one before it.
        k: Most documents to return; a smaller number in the question holds.
        fetch_k: Candidates when they are to be sorted afterwards; ``None`` for ten times ``k``, at least 100.
        filter: The caller's filter; holds always.
        on_error: ``"skip"``: rules take over from a model that fails, and the notes say so; or ``"raise"``.
        timeout: Seconds that one model request, and one search, may take.
        **caps: ``max_calls`` and ``max_tokens``, those of the inner retriever included; ``deadline``, the seconds for
            the whole, of which the model gets three quarters.

    Raises:
        InvalidInputError: On construction: an argument is not allowed, or no schema is given and no row can be listed.
        ModelError, BudgetExceededError: On call, if ``on_error="raise"`` and the model fails or a cap is reached.

    Example:
        >>> docs = [
        ...     Document("Salt raises blood pressure.", metadata={"year": 2008, "topic": "heart"}),
        ...     Document("Less salt, fewer strokes.", metadata={"year": 2016, "topic": "brain"}),
        ... ]
        >>> retriever = SelfQueryRetriever.from_rules(docs)
        >>> [doc.page_content for doc in retriever.invoke("What is known about salt since 2010?")]
        ['Less salt, fewer strokes.']
        >>> retriever.construct_query("brain papers before 2012").filter
        {'$and': [{'topic': {'$eq': 'brain'}}, {'year': {'$lt': 2012}}]}
    """

    task: ClassVar[str] = "self_query"
    takes_search_kwargs: ClassVar[bool] = True
    other_names: ClassVar[Mapping[str, str]] = {
        "vectorstore": "retriever",
        "schema": "schema_",
        "metadata_field_info": "schema_",
        "query_constructor": "from_llm(llm, retriever), with prompt= for words of your own",
        "llm_chain": "from_llm(llm, retriever), with prompt= for words of your own",
        "chain_kwargs": "prompt=, max_calls=, timeout=",
    }

    retriever: Annotated[Runnable[str, list[Document]], BeforeValidator(as_retriever)]
    llm: Annotated[Runnable[Any, Any] | None, BeforeValidator(lambda llm: llm and check_model(llm))] = None
    schema_: Any = None
    documents: Any = None
    prompt: Any = None
    language: Literal["auto", "en", "zh"] = "auto"
    today: date | None = None
    document_contents: str | None = None
    enable_limit: bool = True
    use_original_query: bool = False
    relax: bool = True

    _rules: RuleConstructor = PrivateAttr()
    _prompts: LanguagePrompts | None = PrivateAttr(default=None)
    _schemas: dict[Any, tuple[FieldSource, Schema]] = PrivateAttr(default_factory=dict)  # by rows and filter

    @classmethod
    def from_llm(
        cls,
        llm: Runnable[Any, Any],
        retriever: Any = None,
        document_contents: str | None = None,
        metadata_field_info: Any = None,
        *,
        prompt: Any = None,
        k: int = 4,
        **settings: Unpack[SelfQuerySettings],
    ) -> Self:
        """Make the retriever from a model and a retriever or store; the other arguments are those of the class.

        ``metadata_field_info`` is LangChain's name for ``schema``.
        """
        options: dict[str, Any] = {**settings}
        if metadata_field_info is not None:
            options["metadata_field_info"] = metadata_field_info
        if retriever is not None:
            options["retriever"] = retriever
        return cls(llm=llm, document_contents=document_contents, prompt=prompt, k=k, **options)

    @classmethod
    def from_rules(
        cls, retriever: Any, *, schema: Any = None, k: int = 4, **settings: Unpack[SelfQuerySettings]
    ) -> Self:
        """Make the retriever without a model: values, numbers and dates in the question become the filter."""
        options: dict[str, Any] = {"schema_": schema, **settings}
        return cls(llm=None, retriever=retriever, k=k, **options)

    @model_validator(mode="before")
    @classmethod
    def _wrap_store_with_translator(cls, values: Any) -> Any:
        """Wrap a vector store and LangChain's translator of filters for it, if one is given, into a retriever."""
        translator = values.pop("structured_query_translator", None) if isinstance(values, dict) else None
        if translator is None:
            return values
        store = values.get("retriever")
        if not isinstance(store, VectorStore):
            raise InvalidInputError(
                "structured_query_translator goes with a vector store; for a retriever, give it to that: "
                "VectorRetriever(vectorstore=..., structured_query_translator=...)."
            )
        retriever = VectorRetriever(vectorstore=store, structured_query_translator=translator)
        return {**values, "retriever": retriever}

    @model_validator(mode="after")
    def _prepare(self) -> Self:
        """Read the fields, and make the rules and, with a model, the prompts."""
        self._rules = RuleConstructor(today=self.today)
        if self.schema_ is not None:
            self.schema_ = Schema.of(self.schema_)
        self.refresh()
        if self.llm is not None and not is_extractive(self.llm):
            self._prompts = LanguagePrompts("self_query", self.prompt, ("question", "fields"), self.language)
        # dictionaries are loaded here rather than in an asynchronous call
        self._rules.construct("a 是", Schema())
        return self

    def _rows(self, config: RunnableConfig | None = None) -> FieldSource | None:
        """Return the rows that may be listed: ``documents``, under the filters inside, or those of the retriever."""
        rows = None if self.documents is None else source_of(self.documents, config)
        if rows is None:
            return source_of(self.retriever, config)
        return rows.under(own_filter(self.retriever, config, strict=True, every=True, foreign=True))

    def _schema(self, where: Filter | None, config: RunnableConfig | None = None) -> Schema:
        """Return the fields given, or those of the rows that pass a filter; the results for the last ones are kept."""
        if self.schema_ is not None:
            return cast("Schema", self.schema_)
        if (rows := self._rows(config)) is None:
            return discover_schema(self.retriever, config)  # which says that it cannot
        rows = rows.under(where)
        schemas, key = self._schemas, rows.key
        if key not in schemas:
            # other threads may use the same dictionary: a copy with the last ones is put in its place
            schemas = dict(list(schemas.items())[-_MAX_SCHEMAS:])
            # the rows are kept, too, so that no others get their id, which is in the key
            schemas[key] = rows, discover_schema(rows)
            self._schemas = schemas
        return schemas[key][1]

    @property
    def has_model(self) -> bool:
        """Whether a language model makes the filter; else, and with the extractive model, it is made by rules."""
        return self._prompts is not None

    @property
    def schema_in_use(self) -> Schema:
        """Return the fields given, or those read under the retriever's own filter."""
        return self._schema(self.filter)

    def refresh(self) -> None:
        """Read fields and values again, after the collection has changed."""
        self._schemas = {}
        _ = self.schema_in_use

    async def aconstruct_query(self, question: str, config: RunnableConfig | None = None) -> ConstructedQuery:
        """Turn a question into text and filter without searching: by the model (its ModelError is raised) or rules."""
        schema = self._schema(self.filter, config)
        if self.has_model:
            return await self._ask_model(question, schema, config)
        return self._rules.construct(question, schema)

    def construct_query(self, question: str, config: RunnableConfig | None = None) -> ConstructedQuery:
        """Turn a question into text and filter, as ``aconstruct_query`` does, from blocking code."""
        return run_coroutine(self.aconstruct_query(question, config))

    async def _ask_model(self, question: str, schema: Schema, config: Any) -> ConstructedQuery:
        """Ask the model for text and filter."""
        prompt = cast("LanguagePrompts", self._prompts).choose(question)
        today = self.today or date.today()
        values = _inputs(prompt, question, schema, today, self.document_contents)
        model = cast("Runnable[Any, Any]", self.llm)
        answer = await astructured_call(model, prompt, values, SelfQuery, timeout=self.timeout, config=config)
        return check_answer(answer, question, schema, today)

    async def _search(self, query: str, call: Call) -> list[Document]:
        return await SelfQueryCall(self, call).steps()


def _inputs(prompt: Any, question: str, schema: Schema, today: date, contents: str | None) -> dict[str, Any]:
    """Make the inputs of a prompt: question, fields, today's date; `contents` describes the documents."""
    language = (getattr(prompt, "metadata", None) or {}).get("language", "en")
    fields = describe_fields(schema, RuleConstructor.named_values(schema, question), language)
    if contents:
        line = "正文：{}。可用的字段：\n{}" if language == "zh" else "The text is: {}. The fields:\n{}"
        fields = line.format(cut_line(contents, 300).rstrip(".。"), fields)
    values = {"question": question, "fields": fields, "today": today.isoformat()}
    return {name: value for name, value in values.items() if name in prompt.input_variables}
