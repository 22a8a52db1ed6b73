"""The check of citations as a middleware of LangChain's agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    OmitFromSchema,
    PrivateStateAttr,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages
from langgraph.types import Command

from rag_kit.concurrency.notes import use_notes
from rag_kit.concurrency.steps import Step, arun, run
from rag_kit.documents.identity import content_hash
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.crag.web import documents_in
from rag_kit.graphs.state import AnswerCitation, AnswerStatus, Update, check_answer, digest_of
from rag_kit.models.replies import finish_of, text_of, without_thinking
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.text import detect_language
from rag_kit.text.complexity import question_kind
from rag_kit.text.evidence.questions import terms

_MAX_PASSAGES = 200  # of one result of a tool
_MAX_CHARS = 12_000  # of one passage
_NOT_INPUT = OmitFromSchema(input=True, output=False)
# in a tool message's metadata: notes on what its tool could not search, and a hash of the content that it gave
_UNSEARCHED, _CONTENT = "rag_kit_unsearched", "rag_kit_content"
_Handler = Callable[[ModelRequest[Any]], Any]  # gives a ModelResponse, or an awaitable of one
#: How two answers compare, and the ranks of those that are sent back.
_BEST_FIRST = ("grounded", "undecided", "declined", "unsourced", "uncited", "flagged")
_SENT_BACK = (4, 5)
_NO_ANSWER = dict.fromkeys(("length", "filter", "error"), "the answer was cut off")
_NO_ANSWER["refusal"] = "the model refused to answer"


class CitationState(AgentState[Any]):
    """Keys that the check adds to an agent's state: the answer's citations, its status, and notes."""

    citations: NotRequired[Annotated[list[AnswerCitation], _NOT_INPUT]]
    uncited: NotRequired[Annotated[list[str], _NOT_INPUT]]
    citation_status: NotRequired[Annotated[AnswerStatus | None, _NOT_INPUT]]
    citation_notes: NotRequired[Annotated[list[str], _NOT_INPUT]]
    # private: what a subagent's check writes, its parent's state gets
    citations_sent_back: NotRequired[Annotated[bool, PrivateStateAttr]]
    citations_of: NotRequired[Annotated[str, PrivateStateAttr]]  # a hash of the answer that was checked


class _Checked(NamedTuple):
    """A response of the model, and the update of the state that its check gave; None if it is no answer.

    ``rank`` is the place of the answer in `_BEST_FIRST`; it does not count whether all could be searched.
    """

    response: Any
    update: Update | None
    rank: int = len(_BEST_FIRST)


class CitationCheck(AgentMiddleware[CitationState, Any, Any]):
    """Numbers the passages that an agent's tools find, and checks the citations of its answer.

    The passages are the ``artifact`` of tool messages: LangChain documents, or what a search gives as JSON; so they are
    with ``create_retriever_tool(..., response_format="content_and_artifact")`` and any retriever, and with `as_tool`.
    Where the content was changed after the tool ran, as by a middleware that redacts, it is the passage instead.
    The model reads them numbered through the whole conversation, with the rules for citing in the system message. Its
    answer is checked as those of this package's graphs are. One with a citation that does not hold, or a statement
    without one, is sent back once, with what is wrong; the better of the two stays. The state then has ``citations``
    (with verbatim quotes), ``uncited``, ``citation_status`` (``unsourced`` where there are no passages, none is cited,
    and the answer does not decline after a search; so is a reply to thanks) and ``citation_notes``. These name what
    the turn's tools could not search, and those that failed; without a passage, and where the answer declines, it is
    ``incomplete`` then. An answer that is changed after its check, as by a middleware that redacts, is checked anew at
    the end. Where tokens are streamed, those of an answer that is sent back were seen.

    Args:
        tools: Names of tools whose results are passages also where they have no artifact: then the text of the result
            is one passage; a note tells a name that no tool has. None: artifacts alone count.
        send_back: Whether an answer that fails is sent back at all.

    Raises:
        InvalidInputError: ``tools`` is a text, or holds something else than names.

    Example:
        >>> from langchain_core.messages import HumanMessage, ToolMessage
        >>> check = CitationCheck()
        >>> text = "The fan starts at 60 degrees."
        >>> found = ToolMessage(text, tool_call_id="1", artifact=[Document(text)])
        >>> [document.page_content for document in check.passages([HumanMessage("When?"), found])]
        ['The fan starts at 60 degrees.']
    """

    state_schema = CitationState

    def __init__(self, tools: Collection[str] | None = None, *, send_back: bool = True) -> None:
        super().__init__()
        if isinstance(tools, str) or not all(isinstance(name, str) for name in tools or ()):
            raise InvalidInputError(f"tools is {tools!r}; give the names of tools, e.g. ['search'], or None.")
        self.named_tools, self.send_back = frozenset(tools or ()), send_back
        self._prompts = {name: load_prompt("agent_citations", language=name) for name in ("en", "zh")}

    def passages(self, messages: Sequence[AnyMessage]) -> list[Document]:
        """Return the distinct passages that a conversation's tools found; citation n means the n-th."""
        by_digest: dict[str, Document] = {}
        for message in messages:
            for document in self._passages_of(message):
                by_digest.setdefault(digest_of(document), document)
        return list(by_digest.values())

    def before_agent(self, state: CitationState, runtime: Any) -> dict[str, Any]:
        """Begin a turn without the state of the one before."""
        emptied: Update = {"citations": [], "uncited": [], "citation_status": None, "citation_notes": []}
        return {**emptied, "citations_sent_back": False, "citations_of": ""}

    def after_agent(self, state: CitationState, runtime: Any) -> dict[str, Any] | None:
        """Check an answer anew that a person, or a middleware that redacts, changed after its check."""
        answers = [message for message in state["messages"] if isinstance(message, AIMessage)]
        if not answers or state.get("citations_of") in (None, "", content_hash(answers[-1].text)):
            return None
        update, _ = self._check_message(answers[-1], state["messages"])
        note = "the answer was changed after its check, and checked anew"
        return {**update, "citation_notes": [*state["citation_notes"], note]}

    def wrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> Any:
        """Show the passages numbered, check the answer, and send it back once if it fails."""
        return run(self._answer(request, handler))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> Any:
        """Do what `wrap_model_call` does, on an event loop."""
        return await arun(self._answer(request, handler))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Keep with a tool's result what it could not search, and a hash of its content."""
        with use_notes() as notes:
            return _mark_messages(handler(request), notes.unsearched)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do what `wrap_tool_call` does, on an event loop."""
        with use_notes() as notes:
            return _mark_messages(await handler(request), notes.unsearched)

    async def _answer(self, request: ModelRequest[Any], handler: _Handler) -> Any:
        """Ask the model and check its answer; if that fails, ask once more. Return the better answer with its check."""

        async def ask(changed: ModelRequest[Any]) -> _Checked:
            # the handler blocks in `wrap_model_call`, and is async in `awrap_model_call`
            response = await Step("model", sync=lambda _: handler(changed), native=lambda _: handler(changed))
            return self._check(request, response)

        numbered = self._with_numbered_passages(request)
        best = first = await ask(numbered)
        if self.send_back and first.rank in _SENT_BACK and not request.state.get("citations_sent_back"):
            second = await ask(self._request_again(numbered, first))
            is_answer = bool(second.update)  # else the model calls a tool, and answers later
            best = first if is_answer and second.rank > first.rank else second  # the higher rank is the worse
            update: Update = best.update or {"citations_sent_back": True}
            note = f"sent back: the first answer was {_BEST_FIRST[first.rank]}"
            notes = [*update.get("citation_notes", ()), note]
            best = best._replace(update={**update, "citation_notes": notes})
        if best.update is None:
            return best.response
        return ExtendedModelResponse(best.response, Command(update=best.update))

    def _passages_of(self, message: AnyMessage) -> Iterator[Document]:
        """Yield what the tool of a message found as passages: as many, and as long, as the model is shown."""
        for document in self._found_by(message)[:_MAX_PASSAGES]:
            if document.page_content.strip():
                text = document.page_content[:_MAX_CHARS]
                yield Document(text, metadata=dict(document.metadata), id=document.id)

    def _found_by(self, message: AnyMessage) -> list[Document]:
        """Return all that the tool of a message found, of any length; nothing of other messages and failed calls."""
        if not isinstance(message, ToolMessage) or message.status == "error":
            return []
        documents = list(_documents_of(message.artifact))
        text_counts = _was_changed(message) if documents else message.name in self.named_tools
        return [Document(message.text, metadata={"title": message.name})] if text_counts else documents

    def _note_unsearched(self, messages: Sequence[AnyMessage]) -> list[str]:
        """Note what the tools of a turn did not search, or the model was not shown; each once."""
        notes: dict[str, None] = {}
        for message in messages:
            notes |= dict.fromkeys(message.response_metadata.get(_UNSEARCHED, ()))
            if isinstance(message, ToolMessage) and message.status == "error":
                notes[f"the tool {message.name} gave an error"] = None
            found = self._found_by(message)
            if len(found) > _MAX_PASSAGES or any(len(item.page_content) > _MAX_CHARS for item in found):
                notes[f"not all that the tool {message.name} found was shown to the model"] = None
        return list(notes)

    def _with_numbered_passages(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Replace the results of tools in a request by numbered passages, and add the rules for citing."""
        documents = self.passages(request.messages)
        if not documents:
            return request
        numbers = {digest_of(document): number for number, document in enumerate(documents, start=1)}
        messages: list[Any] = []
        for message in request.messages:
            texts = []
            for passage in self._passages_of(message):
                # rendered alone it has the number 1; it gets the one that it has in the conversation
                tag = f'<passage id="{numbers[digest_of(passage)]}"'
                texts.append(render_passages([passage]).replace('<passage id="1"', tag, 1))
            messages.append(message.model_copy(update={"content": "\n".join(texts)}) if texts else message)
        rules, _ = self._prompts[_language_of(request.messages)].format_messages(problems="")
        system: Any = request.system_message or SystemMessage("")
        content: Any = system.content
        if isinstance(content, str):
            content = f"{content}\n\n{rules.text}".lstrip()
        else:  # blocks
            content = [*content, {"type": "text", "text": rules.text}]
        system = system.model_copy(update={"content": content})
        return request.override(messages=messages, system_message=system)

    def _check(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> _Checked:
        """Check the citations of the model's last message, unless it calls a tool or gives a structured response."""
        last = next((item for item in reversed(response.result) if isinstance(item, AIMessage)), None)
        if last is None or last.tool_calls or response.structured_response is not None:
            return _Checked(response, None)
        update, rank = self._check_message(last, request.messages)
        notes = [*update["citation_notes"], *self._note_tools(request)]
        return _Checked(response, {**update, "citation_notes": notes}, rank)

    def _check_message(self, answer: AnyMessage, messages: Sequence[AnyMessage]) -> tuple[Update, int]:
        """Check an answer by what the tools of a conversation found; return the update of the state, and its rank."""
        asked_at = max((at for at, item in enumerate(messages) if isinstance(item, HumanMessage)), default=0)
        turn = messages[asked_at:]
        documents, notes = self.passages(messages), self._note_unsearched(turn)
        text, finish = without_thinking(text_of(answer)), finish_of(answer)
        checked = check_answer(text, documents, language=_language_of(messages))
        status = checked.pop("status")
        if not checked["citations"] and self._is_unsourced(text, status, turn, documents):
            status, checked["uncited"] = "unsourced", []
        rank = _BEST_FIRST.index(status)
        if notes and status in ("declined", "unsourced"):  # the answer may be in what was not searched
            status = "incomplete"
        problem = _NO_ANSWER.get(finish, "" if text else "the answer is empty")
        if documents and problem:
            status = "incomplete"
            notes.append(problem)
            if text and finish != "refusal":
                rank = len(_BEST_FIRST)  # worse than all others, and not sent back
        if checked["citations"] and not documents:
            names = {item.name: None for item in turn if isinstance(item, ToolMessage) and item.artifact}
            notes += [
                f"no passage could be read in the artifact of {name}; tools= takes its text" for name in names
            ]
        update = {"citation_status": status, "citation_notes": notes}
        return {**checked, **update, "citations_of": content_hash(answer.text)}, rank

    def _is_unsourced(
        self, answer: str, status: str, turn: Sequence[AnyMessage], documents: Sequence[Document]
    ) -> bool:
        """Tell whether an answer is talk, or there are no passages; but a decline after a search rests on that."""
        results = [message for message in turn if isinstance(message, ToolMessage)]
        if status == "uncited" and not results and _is_talk(answer, turn[0].text, documents):
            return True
        searched = any(item.artifact is not None or item.name in self.named_tools for item in results)
        declines_after_search = status == "declined" and searched
        return not documents and not declines_after_search

    def _note_tools(self, request: ModelRequest[Any]) -> list[str]:
        """Note the names in ``tools`` that no tool and no result has, and the tools whose messages were changed."""
        results = [message for message in request.messages if isinstance(message, ToolMessage)]
        known = {tool.get("name") if isinstance(tool, dict) else tool.name for tool in request.tools}
        known |= {result.name for result in results}
        unknown = ", ".join(sorted(self.named_tools - known))
        notes = [f"no tool is named {unknown}, as tools= of the check says"] if unknown else []
        changed = dict.fromkeys(result.name or "a tool" for result in results if _was_changed(result))
        return notes + [f"the content of a message of {name} was changed; it counts" for name in changed]

    def _request_again(self, request: ModelRequest[Any], failed: _Checked) -> ModelRequest[Any]:
        """Add an answer whose check failed, and what is wrong with it, to the request."""
        update: Any = failed.update
        problems = [
            f"[{citation['number']}] {citation['statement']!r}: {citation['reason']}"
            for citation in update["citations"]
            if citation["status"] in ("unsupported", "missing_passage")
        ]
        problems += [f"no citation: {statement!r}" for statement in update["uncited"]]
        answers = [message for message in failed.response.result if isinstance(message, AIMessage)]
        prompt = self._prompts[_language_of(request.messages)]
        _, complaint = prompt.format_messages(problems="\n".join(problems))
        return request.override(messages=[*request.messages, *answers, HumanMessage(complaint.text)])


def _mark_messages(result: Any, notes: list[str]) -> Any:
    """Copy a tool's result; the metadata of its messages, which no model reads, hold the notes and a content hash."""
    if isinstance(result, Command):
        return replace(result, update=_mark_messages(result.update, notes))
    if isinstance(result, (list, tuple)):  # messages, or a command's pairs of a key and messages
        return type(result)([_mark_messages(item, notes) for item in result])
    if isinstance(result, Mapping) and "messages" in result:
        return {**result, "messages": _mark_messages(result["messages"], notes)}
    is_dict_message = isinstance(result, Mapping) and "tool" in (result.get("role"), result.get("type"))
    if is_dict_message:
        [result] = convert_to_messages([dict(result)])
    if not isinstance(result, ToolMessage):
        return result
    marks: dict[str, Any] = {_UNSEARCHED: notes} if notes else {}
    if any(_documents_of(result.artifact)):
        marks[_CONTENT] = content_hash(result.text)
    return result.model_copy(update={"response_metadata": {**result.response_metadata, **marks}})


def _was_changed(message: ToolMessage) -> bool:
    """Tell whether a message's content is no longer what its tool gave, as after a middleware that redacts."""
    documents = list(_documents_of(message.artifact))
    original_hash = message.response_metadata.get(_CONTENT)
    if documents and original_hash:
        return bool(original_hash != content_hash(message.text))
    text = " ".join(message.text.split())  # without a hash: whether a passage is missing in it
    return not all(" ".join(document.page_content.split()) in text for document in documents)


def _documents_of(artifact: Any) -> Iterator[Document]:
    """Yield the documents that a tool returned beside its text.

    An artifact of `as_tool` is a mapping with citations, whose quotes count; others are or have ``documents``.
    """
    if isinstance(artifact, Mapping) and isinstance(artifact.get("citations"), list):
        for citation in artifact["citations"]:
            if citation.get("quote"):
                source = {name: citation.get(name) for name in ("file", "title", "page", "heading", "source")}
                yield Document(citation["quote"], metadata=source)
        return
    yield from documents_in(getattr(artifact, "documents", artifact))


def _is_talk(answer: str, question: str, documents: Sequence[Document]) -> bool:
    """Tell whether an answer is talk: it replies to a greeting or thanks, and no passage holds a word of it."""
    if question_kind(question).intent != "chat":
        return False
    words = {*terms(answer)}
    return all(words.isdisjoint(terms(document.page_content)) for document in documents)


def _language_of(messages: Sequence[AnyMessage]) -> str:
    questions = [message.text for message in messages if isinstance(message, HumanMessage)]
    return "zh" if questions and detect_language(questions[-1]) == "zh" else "en"
