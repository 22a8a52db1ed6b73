"""What ``rag-kit evaluate`` puts together: the pipeline that is asked, and the judge."""

from __future__ import annotations

import argparse
import hashlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rag_kit.cli.opening import is_own, open_retriever
from rag_kit.cli.options import DEFAULT_K, GRAPHS, chat_settings
from rag_kit.cli.output import hint
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.metric import Metric
    from rag_kit.indexing import DocumentIndex


def pipeline_of(arguments: argparse.Namespace, stack: ExitStack) -> tuple[Any, str, str | None]:
    """The pipeline, its name, and what tells it from others where its settings do not.

    Args:
        arguments: Of the command line.
        stack: Closes the index in the end.

    Raises:
        InvalidInputError: If an option is wrong, or does not go with another one.
    """
    if arguments.index is None:
        for option in ("--graph", "-k", "--filter", "--model", "--base-url"):
            if getattr(arguments, option.lstrip("-").replace("-", "_")) is not None:
                raise InvalidInputError(f"{option} needs --index DIR")
        if not is_own(arguments.pipeline):
            raise InvalidInputError(
                f"--pipeline {arguments.pipeline} needs --index DIR; without one give module:object of your own"
            )
        return arguments.pipeline, arguments.pipeline, None
    index, retriever = stack.enter_context(open_retriever(arguments))
    parts = [arguments.pipeline, f"k={arguments.k or DEFAULT_K}", f"index={_content(index)}"]
    if arguments.filter:
        parts.append(f"filter={arguments.filter}")
    if arguments.graph is None:
        return retriever, arguments.pipeline, ", ".join(parts)
    from rag_kit import graphs
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

    llm = chat_model(arguments.model, **chat_settings(arguments))
    hint(describe_model(llm))
    graph = getattr(graphs, GRAPHS[arguments.graph])(retriever, llm, output="full")
    parts += [f"graph={arguments.graph}", f"model={describe_model(llm)}"]
    return graph, f"{arguments.graph} {arguments.pipeline}", ", ".join(parts)


def _content(index: DocumentIndex) -> str:
    """A hash of what an index holds: with another content the pipeline is another one."""
    known = hashlib.sha256()
    ids = sorted(index.ids())
    for start in range(0, len(ids), 1000):
        for document in index.get(ids[start : start + 1000]):
            known.update(f"{document.id}\0{document.page_content}\0".encode("utf-8", "surrogatepass"))
    return known.hexdigest()[:12]


def judge_of(arguments: argparse.Namespace, metrics: tuple[Metric, ...]) -> Judge | None:
    """The judge; ``None`` where no metric needs one, or no model is there: then a line says what is needed.

    Raises:
        ConfigurationError: If the model that ``--judge`` names is no judge, or cannot be made.
    """
    judged = [metric.name for metric in metrics if metric.needs_judge]
    if not judged and not any(metric.needs_embeddings for metric in metrics):
        return None
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model, is_extractive

    llm = arguments.judge if judged else "none"
    if judged and llm is None and is_extractive(chat_model()):
        hint(
            f"{', '.join(judged)}: a judge needs a language model; give --judge NAME, or set RAG_KIT_CHAT_MODEL"
        )
        llm = "none"
    judge = Judge(
        llm,
        arguments.judge_embeddings,
        cache=arguments.judge_cache,
        max_concurrency=arguments.judge_concurrency,
    )
    if llm != "none":
        hint(f"judge: {describe_model(judge.llm)}")
    return judge
