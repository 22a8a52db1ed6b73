"""`RagGraph`, which all builders of graphs use, and in which users insert, replace and remove nodes."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, get_args, get_type_hints

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from langgraph.typing import StateT
from typing_extensions import TypedDict, is_typeddict

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.running import RETRY, Body, Node, call_within_deadline
from rag_kit.graphs.state import InputChannel, QuestionInput, RagOutput, Update, Usage, add_usage

#: What ``invoke`` gives back: `RagOutput`, or the whole state.
Output = Literal["answer", "full"]

#: What a builder gives: a graph that takes a question.
CompiledRag = CompiledStateGraph[StateT, Any, QuestionInput, Any]

#: What a graph's first node leads to, where it has guards of questions and where it has none.
READY, REFUSED = "ready", "refused"


class GraphOptions(TypedDict, total=False):
    """Keyword arguments that every builder of a graph takes.

    Attributes:
        prompts: Folder whose prompt files replace the packaged ones of the same name.
        max_passage_chars: Characters of passages in a prompt (12,000); later ones are left out, as ``notes`` say.
        guards: Functions that see each question, passage (of the web too), reply and answer; see `Guards`.
        output: ``"answer"``: `invoke` gives back a `RagOutput`; ``"full"``: the whole state.
        checkpointer: Memory of threads, and what a run that waits for a person needs; leave it out for LangGraph
            Studio, which brings its own.
        store: LangGraph's long-term store, passed through.
    """

    prompts: Path | None
    max_passage_chars: int
    guards: Guards | None
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
        steps: int | None = None,
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
        result: Any = state if output == "full" else RagOutput
        super().__init__(state, context_schema=context, input_schema=QuestionInput, output_schema=result)
        self._name, self._steps, self._options = name, steps, options
        self._settings = context
        self._kit_nodes: Mapping[str, Any] | None = None  # the nodes as the builder made them

    def add_step(
        self,
        name: str,
        body: Body,
        to: Mapping[str, str] | str | None = None,
        *,
        fetches: bool = False,
        defer: bool = False,
        **caps: Any,
    ) -> None:
        """Add a node of the kit; `caps` are `first`, `capped` and `on_cap` of `Node`.

        `to` is the one node that follows, or those that its ``Command`` names, each with the label of the edge. A node
        that `fetches` is tried again; one that is to `defer` waits for all branches.
        """
        wrapped = Node(body, self._settings, **caps)
        ends = dict(to) if isinstance(to, Mapping) else None
        self.add_node(name, wrapped, retry_policy=RETRY if fetches else None, defer=defer, destinations=ends)
        if caps.get("first"):
            self.add_edge(START, name)
        if isinstance(to, str):
            self.add_edge(name, to)

    def replace_node(self, name: str, action: Any, **options: Any) -> None:
        """Put a node of yours in the place of another; the edges that lead to it and from it stay.

        Args:
            name: The node that goes.
            action: An ordinary LangGraph node. Where the old one chose the way by ``Command``, yours does too (annotate
                it: ``-> Command[Literal["refine"]]``), or gets an edge by ``add_edge``.
            **options: As for ``add_node``.

        Raises:
            InvalidInputError: There is no node of that name.
        """
        order = list(self.nodes)
        old = self.nodes.pop(self._existing_node(name))
        self.add_node(name, action, **{"defer": old.defer, **options})
        self.nodes = {node: self.nodes[node] for node in order}

    def insert_node(self, name: str, action: Any, *, after: str, **options: Any) -> None:
        """Put a node of yours between a node and what follows it.

        Args:
            name: The new node's name.
            action: An ordinary LangGraph node.
            after: The node that comes before it.
            **options: Those of ``add_node``.

        Raises:
            InvalidInputError: There is no such node, or it chooses the way by ``Command``; or the new name is taken.
        """
        free = [node for node, spec in self.nodes.items() if not spec.ends]
        if name in self.nodes or self._existing_node(after) not in free:
            raise InvalidInputError(
                f"{name!r} cannot stand after {after!r}: give a name that is not taken, and a node that does not say "
                f"itself what follows: {', '.join(free)}. Or replace one: replace_node()."
            )
        self.add_node(name, action, **options)
        following = {end for start, end in self.edges if start == after}
        self.edges -= {(after, end) for end in following}
        self.edges |= {(after, name), *((name, end) for end in following)}
        if after in self.branches:
            self.branches[name] = self.branches.pop(after)

    def remove_node(self, *names: str) -> None:
        """Take nodes away, with their edges.

        Raises:
            InvalidInputError: There is no node of that name.
        """
        for name in names:
            del self.nodes[self._existing_node(name)]
            self.branches.pop(name, None)
            self.edges = {edge for edge in self.edges if name not in edge}

    def compile(
        self, checkpointer: Any = None, *, name: str | None = None, **options: Any
    ) -> CompiledRag[StateT]:
        """Compile, with the graph's name and recursion limit; the arguments are LangGraph's.

        Raises:
            InvalidInputError: A node leads nowhere: one of yours, or one whose successor was removed.
        """
        starts = {start for start, _ in self.edges}.union(*(several for several, _ in self.waiting_edges))
        for node, spec in self.nodes.items():
            if not (spec.ends or node in self.branches or node in starts):
                raise InvalidInputError(
                    f"the node {node!r} leads nowhere: add_edge({node!r}, ...), or annotate what it returns, e.g. "
                    '-> Command[Literal["generate"]].'
                )
        built = self.nodes if self._kit_nodes is None else self._kit_nodes
        for added in [node for node, spec in self.nodes.items() if spec is not built.get(node)]:
            self._apply_caps(added)
        compiled = super().compile(checkpointer, name=name or self._name, **options)
        compiled.channels[START] = InputChannel(self.input_schema)
        return compiled if self._steps is None else compiled.with_config(recursion_limit=self._steps)

    def compile_with_options(self) -> CompiledRag[StateT]:
        """Compile with the checkpointer and the store that the builder was given."""
        return self.compile(self._options.get("checkpointer"), store=self._options.get("store"))

    def _existing_node(self, name: str) -> str:
        """The name of a node, if there is one."""
        if name not in self.nodes:
            meant = did_you_mean(name, self.nodes)
            raise InvalidInputError(f"{name!r} is no node{meant}. Nodes: {', '.join(self.nodes)}.")
        return name

    def _apply_caps(self, name: str) -> None:
        """Wrap a node of the user's, so that the run's deadline and usage hold for it too."""
        spec: Any = self.nodes[name]
        if isinstance(spec.runnable, Pregel):  # a graph of its own; LangGraph must see it to stream from it
            return
        seen = spec.input_schema
        if is_typeddict(seen):
            # also where it names only some keys, it sees what the run has used
            seen = _merge_schemas(seen, _Used)
            self._add_schema(seen)
            if self._options.get("output") == "full":  # the whole state: keys of the user's own too
                self.output_schema = _merge_schemas(self.output_schema, seen)
                self._add_schema(self.output_schema)
        runnable = spec.runnable

        async def body(state: Any, context: RagContext) -> Update:
            calls = partial(runnable.invoke, state), partial(runnable.ainvoke, state)
            update: Update = await call_within_deadline(name, *calls)
            return update

        self.nodes[name] = replace(spec, runnable=Node(body, self._settings), input_schema=seen)


class _Used(TypedDict, total=False):
    usage: Annotated[Usage, add_usage]


def _merge_schemas(*schemas: type[Any]) -> Any:
    """One schema of a state with the keys of all."""
    make: Any = TypedDict
    hints = [get_type_hints(schema, include_extras=True) for schema in schemas]
    return make("NodeState", {key: kind for fields in hints for key, kind in fields.items()})


def uncompiled(graph: CompiledStateGraph[StateT, Any, Any, Any]) -> RagGraph[StateT]:
    """A copy of the graph before it was compiled, to be changed and compiled again.

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
    for name in ("nodes", "edges", "waiting_edges", "schemas", "channels", "managed"):
        setattr(graph_copy, name, copy.copy(getattr(source, name)))
    graph_copy.branches = defaultdict(dict, {start: dict(ways) for start, ways in source.branches.items()})
    graph_copy._kit_nodes = dict(source.nodes)
    return graph_copy
