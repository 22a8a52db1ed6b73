"""`RagGraph`, which all builders of graphs use, and in which users insert, replace and remove nodes."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Literal, get_args, get_type_hints

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from langgraph.types import Command
from langgraph.typing import StateT
from typing_extensions import TypedDict, is_typeddict

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.context import RagContext, begin_turns, run_context
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.running import RETRY, Body, GraphNode, Node, call_within_deadline, run_graph
from rag_kit.graphs.state import QuestionInput, RagOutput, Update, empty_state, is_refused

#: What ``invoke`` gives back: `RagOutput`, or the whole state.
Output = Literal["answer", "full"]

#: What a builder gives: a graph that takes a question.
CompiledRag = CompiledStateGraph[StateT, Any, QuestionInput, Any]

#: Which node (or nodes) follows, as the state says.
Route = Callable[[Mapping[str, Any]], str | Sequence[str]]

#: Labels of the edges of a first node: to the next one, and to the end where a guard refused.
READY, REFUSED = "ready", "refused"


class GraphOptions(TypedDict, total=False):
    """Keyword arguments that every builder of a graph takes.

    Attributes:
        prompts: Folder whose prompt files replace the packaged ones of the same name.
        max_passage_chars: Characters of passages in a prompt (12,000); later ones are left out, as ``notes`` say.
        guards: Functions that see each question, passage (of the web too), reply and answer; see `Guards`.
        indexes: Function that gives the retriever of the index that a run's context names (``index``), or raises for a
            name that is not allowed; without it a context that names one is refused.
        pictures: Folder of the index whose passages name pictures (``ingest`` with ``pictures=True``): the answer is
            asked for with the pictures of its passages, of a model that sees; at most eight.
        output: ``"answer"``: `invoke` gives back a `RagOutput`; ``"full"``: the whole state.
        checkpointer: Memory of threads, and what a run that waits for a person needs; leave it out for LangGraph
            Studio, which brings its own.
        store: LangGraph's long-term store, passed through.
    """

    prompts: Path | None
    max_passage_chars: int
    guards: Guards | None
    indexes: Callable[[str], Runnable[str, list[Document]]] | None
    pictures: str | PathLike[str] | None
    output: Output
    checkpointer: BaseCheckpointSaver[Any] | None
    store: BaseStore | None


class RagGraph(StateGraph[StateT, Any, QuestionInput, Any], Generic[StateT]):
    """A graph of this kit before it is compiled: LangGraph's own ``StateGraph``, whose nodes can be changed.

    `uncompiled` gives one. ``add_node``, ``add_edge`` and ``add_conditional_edges`` are LangGraph's. A node of yours is
    an ordinary LangGraph node. The run's deadline ends it if it hangs, its time counts, and so do the model calls
    that it makes by ``structured_call`` and ``text_call``.

    Raises:
        InvalidInputError: There is no such option, or ``output`` is something else.
    """

    def __init__(
        self,
        state: type[StateT],
        context: type[RagContext],
        name: str,
        options: GraphOptions,
        max_steps: int | None = None,
    ) -> None:
        allowed = GraphOptions.__annotations__
        for option in set(options) - set(allowed):
            raise InvalidInputError(
                f"{option!r} is no option of this graph{did_you_mean(option, allowed)}; all graphs take: "
                f"{', '.join(allowed)}."
            )
        output = options.get("output", "answer")
        if output not in get_args(Output):
            raise InvalidInputError(f"output is {output!r}; allowed: 'answer', 'full'.")
        schema: Any = state if output == "full" else RagOutput
        super().__init__(state, context_schema=context, input_schema=QuestionInput, output_schema=schema)
        self._name, self._max_steps, self.options = name, max_steps, options
        self._settings = context
        # node of the kit -> the keys that later ones read of it, and whether its text is the answer
        self._kit_nodes: dict[str, tuple[Sequence[str], bool]] = {}

    def add_step(
        self,
        name: str,
        body: Body | GraphNode,
        to: Mapping[str, str] | str,
        *,
        route: Route | str = "",
        gives: Sequence[str] = (),
        first: bool = False,
        fetches: bool = False,
        streams: bool = False,
        refused_by: Literal["question", "answer"] | None = None,
        defer: bool = False,
        **options: Any,
    ) -> None:
        """Add a node of the kit.

        Args:
            name: Its name.
            body: Its body; or the node itself, where that runs another graph.
            to: The node that follows; or the nodes that may follow, each with the label of its edge.
            route: Chooses the node that follows by the state; or the node that follows unless this one wrote another
                into ``choices``. A run that a guard refused goes to the end, where an edge leads there.
            gives: Keys that later nodes read of it; one put in its place must write them.
            first: Whether the graph begins with it.
            fetches: Whether it is tried again after a failure that may pass.
            streams: Whether its text is the answer; tokens are not streamed if a guard must see the answer first.
            refused_by: Which guards it asks; if there are some, an edge leads to the end.
            defer: Whether it waits for all branches.
            **options: ``capped``, ``on_cap`` and ``sees_passages`` of `Node`.
        """
        node: Any = body
        guards = self.options.get("guards") or Guards()
        if not isinstance(body, GraphNode):
            options |= {"streams": streams and not guards.answer, "guards": self.options.get("guards")}
            node = Node(body, self._settings, self.state_schema, **options)
        if refused_by and not isinstance(to, str) and getattr(guards, refused_by):
            to = {**to, END: REFUSED}
        self.add_node(name, node, retry_policy=RETRY if fetches else None, defer=defer)
        self._kit_nodes[name] = gives, getattr(node, "streams", True)
        if first:
            self.add_edge(START, name)
        if isinstance(to, str):
            self.add_edge(name, to)
        else:
            node_of_label: Any = {label: node for node, label in to.items()}
            route = choice_of(name, route) if isinstance(route, str) else route
            self.add_conditional_edges(name, _make_chooser(name, dict(to), route), node_of_label)
            # the route reads the whole state, also after `replace_node` by a user's node that sees some keys alone
            for key, branch in self.branches[name].items():
                self.branches[name][key] = branch._replace(input_schema=self.state_schema)

    def replace_node(self, name: str, action: Any, **options: Any) -> None:
        """Replace a node by one of yours; its edges stay.

        Args:
            name: The node that goes.
            action: An ordinary LangGraph node. It writes the keys that the nodes after it read, such as ``documents``;
                a run in which one is missing ends with an error that names it. If several nodes may follow, it also
                writes which one does: the key that chooses (such as ``action``), or
                ``{"choices": {name: "refine"}}``. An action annotated ``-> Command[Literal["refine"]]`` replaces the
                outgoing edges.
            **options: As for ``add_node``.

        Raises:
            InvalidInputError: There is no node of that name.
        """
        order = list(self.nodes)
        old = self.nodes.pop(self._existing_node(name))
        self.add_node(name, action, **{"defer": old.defer, **options})
        if self.nodes[name].ends:  # its annotation says which nodes follow
            self.edges = {edge for edge in self.edges if edge[0] != name}
            self.branches.pop(name, None)
        self.nodes = {node: self.nodes[node] for node in order}

    def insert_node(
        self, name: str, action: Any, *, after: str | None = None, before: str | None = None, **options: Any
    ) -> None:
        """Insert a node of yours after a node, on all edges from it, or before one, on all edges to it.

        Args:
            name: The new node's name.
            action: An ordinary LangGraph node.
            after: The node that comes before it; give this one or ``before``.
            before: The node that comes after it.
            **options: Those of ``add_node``.

        Raises:
            InvalidInputError: There is no such node, the new name is taken, or not one of both places was given; or the
                node is one of yours that chooses the way by ``Command``.
        """
        if (after is None) == (before is None):
            raise InvalidInputError("give one of after= and before=, the node next to the new one.")
        neighbour = self._existing_node(before or after or "")
        if name in self.nodes:
            raise InvalidInputError(
                f"{name!r} is the name of another node already; give one that is not taken."
            )
        if after is not None and self.nodes[neighbour].ends:  # LangGraph's name for what a Command may go to
            raise InvalidInputError(
                f"{neighbour!r} says itself (by Command) what follows; nothing can stand after it."
            )
        if before is None:
            self.add_node(name, action, **options)
            self.edges = {(name if start == neighbour else start, end) for start, end in self.edges}
            if neighbour in self.branches:
                self.branches[name] = self.branches.pop(neighbour)
            self.edges.add((neighbour, name))
        else:
            # a node before one that waits for all branches has to wait for them, too
            self.add_node(name, action, **{"defer": self.nodes[neighbour].defer, **options})
            self._redirect_edges(neighbour, name)
            self.edges.add((name, neighbour))

    def _redirect_edges(self, old: str, new: str) -> None:
        """Let all edges to the node ``old`` lead to the node ``new``."""
        self.edges = {(start, new if end == old else end) for start, end in self.edges}
        for branches in self.branches.values():
            for key, branch in branches.items():
                if branch.ends:  # label of an edge -> node
                    ends = {label: new if end == old else end for label, end in branch.ends.items()}
                    branches[key] = branch._replace(ends=ends)

    def remove_node(self, *names: str) -> None:
        """Remove nodes with their edges; where one alone is left to choose, its edge is always taken.

        Raises:
            InvalidInputError: There is no node of that name.
        """
        for name in names:
            del self.nodes[self._existing_node(name)]
            self.branches.pop(name, None)
            self.edges = {edge for edge in self.edges if name not in edge}
        for start, branches in list(self.branches.items()):
            for key, branch in list(branches.items()):
                if not branch.ends:
                    continue
                ends = {label: end for label, end in branch.ends.items() if end not in names}
                branches[key] = branch._replace(ends=ends)
                if len(ends) == 1 < len(branch.ends):  # nothing is left to choose
                    del branches[key]
                    self.edges |= {(start, end) for end in ends.values()}
            if not branches:
                del self.branches[start]

    def compile(
        self, checkpointer: Any = None, *, name: str | None = None, **options: Any
    ) -> CompiledRag[StateT]:
        """Compile, with the graph's name and recursion limit; the arguments are LangGraph's.

        Raises:
            InvalidInputError: A node leads nowhere: one of yours, or one whose successor was removed.
        """
        starts = {start for start, _ in self.edges}.union(*(nodes for nodes, _ in self.waiting_edges))
        for node, spec in self.nodes.items():
            if not (spec.ends or node in self.branches or node in starts):
                raise InvalidInputError(
                    f"the node {node!r} leads nowhere: add_edge({node!r}, ...), or annotate what it returns, e.g. "
                    '-> Command[Literal["generate"]].'
                )
        for node, spec in list(self.nodes.items()):
            if not isinstance(spec.runnable, Node | GraphNode):  # of the user's
                self._wrap_user_node(node)
        compiled = super().compile(checkpointer, name=name or self._name, **options)
        begin_turns(compiled, self._settings, partial(empty_state, self.state_schema))
        return compiled if self._max_steps is None else compiled.with_config(recursion_limit=self._max_steps)

    def compile_with_options(self) -> CompiledRag[StateT]:
        """Compile with the checkpointer and the store that the builder was given."""
        return self.compile(self.options.get("checkpointer"), store=self.options.get("store"))

    def _existing_node(self, name: str) -> str:
        if name not in self.nodes:
            meant = did_you_mean(name, self.nodes)
            raise InvalidInputError(f"{name!r} is no node{meant}. Nodes: {', '.join(self.nodes)}.")
        return name

    def _wrap_user_node(self, name: str) -> None:
        """Wrap a user's node, so that the run's deadline ends it, its usage counts, and missing keys are named."""
        spec: Any = self.nodes[name]
        runnable = spec.runnable
        if isinstance(runnable, Pregel):  # a graph of its own; LangGraph must see it to stream from it
            if isinstance(getattr(runnable, "builder", None), RagGraph):
                self.nodes[name] = replace(spec, runnable=GraphNode(runnable, self._run_inner_graph))
            return
        if is_typeddict(spec.input_schema) and self.options.get("output") == "full":
            self._add_to_output(spec.input_schema)

        async def body(state: Any, context: RagContext) -> Update:
            sync, native = partial(runnable.invoke, state), partial(runnable.ainvoke, state)
            update: Update = await call_within_deadline(name, sync, native)
            return update

        gives, streams = self._kit_nodes.get(name, ((), True))
        guards, check = self.options.get("guards"), partial(_check_keys, name, gives)
        node = Node(body, self._settings, streams=streams, guards=guards, check=check)
        self.nodes[name] = replace(spec, runnable=node)

    def _add_to_output(self, schema: Any) -> None:
        """Add the keys of a user's node to the output, which is the whole state."""
        hints = [get_type_hints(each, include_extras=True) for each in (self.output_schema, schema)]
        make_class: Any = TypedDict  # type checkers allow no computed keys
        self.output_schema = make_class("NodeState", hints[0] | hints[1])
        self._add_schema(self.output_schema)

    async def _run_inner_graph(self, state: Any, graph: Any) -> Update:
        """Run a graph of the kit that is a node, with the settings of the turn, which stay those of this graph."""
        result = await run_graph(graph, state, run_context(self._settings))
        return {key: result[key] for key in result.keys() - {"turn_settings", "history", "guarded"}}


def choice_of(name: str, default: str | Route = "") -> Route:
    """Make the route to the node that ``name`` chose in the state's ``choices``; without a choice, the default."""

    def route(state: Mapping[str, Any]) -> str | Sequence[str]:
        chosen: str | Sequence[str] = (state.get("choices") or {}).get(name, "")
        return chosen or _follow(default, state)

    return route


def if_set(key: str, node: str | Route, otherwise: str | Route) -> Route:
    """Make the route to a node if the state has something under a key, or else to another node."""
    return lambda state: _follow(node if state.get(key) else otherwise, state)


def _follow(target: str | Route, state: Mapping[str, Any]) -> str | Sequence[str]:
    """Return a node, or what a route chooses by the state."""
    return target if isinstance(target, str) else target(state)


def by_key(key: str, nodes: Mapping[str, str | Sequence[str]], otherwise: str = "") -> Route:
    """Make the route to the node, or nodes, for the value of a key; another value is an error without ``otherwise``."""

    def route(state: Mapping[str, Any]) -> str | Sequence[str]:
        value = state.get(key)
        if isinstance(value, str) and value in nodes:
            return nodes[value]
        if otherwise:
            return otherwise
        raise InvalidInputError(f"the state has the {key} {value!r}; allowed: {', '.join(nodes)}.")

    return route


def _make_chooser(name: str, labels: Mapping[str, str], route: Route) -> Callable[[Any], list[str]]:
    """Make the function that chooses a node's edges by the state; ``labels``: node -> label of the edge to it."""

    def choose_edges(state: Any) -> list[str]:
        values = state if isinstance(state, Mapping) else vars(state)
        chosen = END if END in labels and is_refused(values) else route(values)
        nodes = [chosen] if isinstance(chosen, str) else list(chosen)
        if not nodes or not {*nodes} <= labels.keys():
            key = f'{{"choices": {{{name!r}: ...}}}}'
            raise InvalidInputError(
                f"the state does not say which node follows {name!r} (found: {chosen!r}); allowed: "
                f"{', '.join(map(repr, labels))}. A node in its place, or whoever edits the state, writes it as {key}."
            )
        return [labels[node] for node in nodes]

    return choose_edges


def _check_keys(name: str, keys: Sequence[str], update: Any) -> None:
    """Check that a replacement of one of the kit's nodes wrote what later nodes read."""
    written = update.update if isinstance(update, Command) else update
    if not isinstance(written, Mapping | None):
        return  # a list of updates, or an object of a state: LangGraph reads them
    for key in keys:
        # the last node may go back to another try by a command instead of ending the run with a status
        goes_back = key == "status" and isinstance(update, Command) and update.goto
        if key not in (written or {}) and not goes_back:
            raise InvalidInputError(
                f"the node {name!r} gave no {key!r}, which is read after it; it gave "
                f"{', '.join(map(repr, written or {})) or 'nothing'}."
            )


def uncompiled(graph: CompiledStateGraph[StateT, Any, Any, Any]) -> RagGraph[StateT]:
    """Copy the graph as it was before it was compiled, to be changed and compiled again.

    Args:
        graph: What a builder of this kit gave. Its checkpointer and store are given to ``compile`` again.

    Raises:
        InvalidInputError: It is another graph.

    Example:
        >>> from rag_kit.graphs import build_plain_rag
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> retriever = BM25Retriever.from_texts(["The fan starts at 60 degrees.", "Bananas are yellow."])
        >>> graph = uncompiled(build_plain_rag(retriever, chat_model("extractive")))
        >>> graph.insert_node("best_only", lambda state: {"documents": state["documents"][:1]}, after="retrieve")
        >>> len(graph.compile().invoke({"question": "When does the fan start?"})["documents"])
        1
    """
    source = getattr(graph, "builder", None)
    if not isinstance(source, RagGraph):
        raise InvalidInputError(
            f"graph is a {type(graph).__name__}; give what a builder of this kit, e.g. build_crag(...), or compile() "
            "gave."
        )
    graph_copy = copy.copy(source)
    graph_copy.compiled = False
    for name in ("nodes", "edges", "waiting_edges", "schemas", "channels", "managed", "_kit_nodes"):
        setattr(graph_copy, name, copy.copy(getattr(source, name)))
    graph_copy.branches = defaultdict(dict, {start: dict(ways) for start, ways in source.branches.items()})
    return graph_copy
