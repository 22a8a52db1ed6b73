"""Two tenants with the same texts, and every retriever of the kit over them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit import retrieval
from rag_kit.documents import PROVENANCE_KEY
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.indexing.raptor.build import build_raptor
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import RagKitRetriever
from rag_kit.retrieval.rerank.model import ListwiseReranker
from rag_kit.retrieval.rerank.scorers import MMRReranker
from support.embedding import WordEmbeddings
from support.representing import reply as represent
from support.rewriters import Scripted

QUESTION = "Which fan is loud at night?"
HISTORY = [("user", "Tell me of fans."), ("assistant", "Fans cool.")]
TEXTS = (
    "The fan is loud at night. The old fan in the hall hums. Nobody sleeps near it.",
    "A fan cools the case. A loud fan can be changed for a larger one that turns slowly.",
    "Night air cools the house. Open the windows at night and switch the fan off.",
)
_REPLIES = {
    "multi_query": {"queries": ["fan noise", "loud fan"]},
    "hyde": {"passages": ["The fan in the hall is loud at night."]},
    "query2doc": {"passages": ["The fan in the hall is loud at night."]},
    "draft_answer": {"passages": ["The fan in the hall is loud at night."]},
    "step_back": {"query": "Why is a fan loud?"},
    "condense": {"query": "Which fan is loud at night?"},
    "decompose": {"queries": ["Which fan is loud?", "What cools at night?"]},
    "rerank_pointwise": {"relevant": True, "score": 0.5, "reason": "on the subject"},
    "rerank_listwise": {"ranking": [2, 1, 3]},
    "compress": {"sentences": [1]},
    "expansion": {"queries": ["noisy", "hums"]},
}


def documents() -> list[Document]:
    """Each text once for each tenant; the second tenant's hold a secret word more."""
    return [
        Document(
            f"{'SECRET' if tenant == 'b' else 'Fine'} fan {number}: {text}",
            id=f"{tenant}{number}",
            metadata={"tenant": tenant, "year": 2000 + number},
        )
        for number, text in enumerate(TEXTS)
        for tenant in ("b", "a")
    ]


def reply(prompt: str) -> str:
    """Return the scripted model's reply to the task that the prompt names."""
    for task, answer in _REPLIES.items():
        if f"<task>{task}</task>" in prompt:
            return json.dumps(answer)
    if "<task>decompose_step</task>" in prompt:
        return json.dumps({"queries": [] if "hums" in prompt else ["Which fan is in the hall?"]})
    return "The old fan hums [1]."


def represented_by(prompt: str) -> str:
    """Return representations of passages that repeat their own words, a tenant's secret too."""
    return represent(
        prompt, lambda task, passage: [f"topic: {passage}" if "tags" in task else f"On: {passage}"]
    )


def summary(prompt: str) -> str:
    """Return a summary of a cluster that repeats its own words, a tenant's secret too."""
    return represent(prompt, lambda task, passage: [f"On the whole: {passage}"])


def model() -> Scripted:
    """A chat model that answers every task of the kit."""
    return Scripted(script=reply)


def words(**settings: Any) -> RagKitRetriever:
    """The leaf of the wrappers: keyword search over both tenants."""
    return retrieval.BM25Retriever.from_documents(documents(), **settings)


def store() -> InMemoryVectorStore:
    """A vector store over both tenants."""
    made = InMemoryVectorStore(WordEmbeddings())
    made.add_documents(documents())
    return made


def index(folder: Any) -> DocumentIndex:
    """An index over both tenants."""
    made = DocumentIndex.create(folder, embeddings=WordEmbeddings())
    made.upsert(documents())
    return made


def text_of(found: list[Document]) -> str:
    """All that a user sees of results: texts, metadata and provenance."""
    return json.dumps([[doc.page_content, doc.metadata] for doc in found], default=str)


def plain(found: list[Document]) -> list[tuple[str, Any]]:
    """Results without their provenance, to compare sync and async."""
    return [
        (doc.page_content, {name: value for name, value in doc.metadata.items() if name != PROVENANCE_KEY})
        for doc in found
    ]


Wrap = Callable[..., RagKitRetriever]


def leaves(folder: Any) -> dict[str, Wrap]:
    """Every retriever that searches by itself: name -> how it is made, given ``k`` and ``filter``."""
    parents = {"index": None, "embeddings": WordEmbeddings(), "child_size": 30}
    windows = {"index": None, "embeddings": WordEmbeddings(), "window": 1}
    shared = index(folder)
    tree = index(folder.with_name("tree"))
    build_raptor(tree, Scripted(script=summary))
    parted = index(folder.with_name("parted"))
    build_raptor(parted, Scripted(script=summary), partition=["tenant"])
    represented = {
        "represent": ["summary", "questions", "tags", "children:30"],
        "llm": Scripted(script=represent),
    }
    return {
        "bm25": words,
        "vector": lambda **more: retrieval.VectorRetriever(vectorstore=store(), **more),
        "exact": lambda **more: retrieval.ExactVectorRetriever.from_documents(
            documents(), WordEmbeddings(), **more
        ),
        "sparse": lambda **more: retrieval.SparseRetriever.from_documents(documents(), **more),
        "trigram": lambda **more: retrieval.TrigramRetriever.from_documents(documents(), **more),
        "index bm25": lambda **more: retrieval.index_retriever(shared, "bm25", **more),
        "index dense": lambda **more: retrieval.index_retriever(shared, "dense", **more),
        "index hybrid": lambda **more: retrieval.index_retriever(shared, "hybrid", **more),
        "parent": lambda **more: retrieval.ParentDocumentRetriever.from_documents(
            documents(), **parents, **more
        ),
        "representations": lambda **more: retrieval.MultiRepresentationRetriever.from_documents(
            documents(), embeddings=WordEmbeddings(), **represented, **more
        ),
        "representations, summaries and questions alone": lambda **more: (
            retrieval.MultiRepresentationRetriever.from_documents(
                documents(),
                embeddings=WordEmbeddings(),
                kinds=["summary", "questions"],
                **represented,
                **more,
            )
        ),
        "raptor": lambda **more: retrieval.RaptorRetriever(index=tree, **more),
        "raptor, parted": lambda **more: retrieval.RaptorRetriever(index=parted, **more),
        "sentence window": lambda **more: retrieval.SentenceWindowRetriever.from_documents(
            documents(), **windows, **more
        ),
        "expansion, index": lambda **more: retrieval.ExpansionRetriever.from_thesaurus(
            {"loud": ["noisy", "hums"]}, retrieval.index_retriever(shared, "bm25"), **more
        ),
        "self query": lambda **more: SelfQueryRetriever.from_rules(documents(), **more),
        "hyde, vectors": lambda **more: retrieval.HyDERetriever.from_llm(
            model(), store(), mode="vector", **more
        ),
    }


def wrappers() -> dict[str, Wrap]:
    """Every retriever around another: name -> how it is made, given the inner one, ``k`` and ``filter``."""
    by_model = {
        "multi query": retrieval.MultiQueryRetriever,
        "hyde": retrieval.HyDERetriever,
        "step back": retrieval.StepBackRetriever,
        "query2doc": retrieval.Query2DocRetriever,
        "decomposition": retrieval.DecompositionRetriever,
        "conversational": retrieval.ConversationalRetriever,
        "expansion": retrieval.ExpansionRetriever,
        "compression": retrieval.CompressionRetriever,
    }
    made: dict[str, Wrap] = {
        name: (lambda inner, _cls=cls, **more: _cls.from_llm(model(), inner, **more))
        for name, cls in by_model.items()
    }
    made |= {
        "decomposition, serial": lambda inner, **more: retrieval.DecompositionRetriever.from_llm(
            model(), inner, mode="serial", **more
        ),
        "conversational, answer": lambda inner, **more: retrieval.ConversationalRetriever.from_llm(
            model(), inner, mode="answer", **more
        ),
        "ensemble": lambda inner, **more: retrieval.EnsembleRetriever(retrievers=[inner, inner], **more),
        "expansion, thesaurus": lambda inner, **more: retrieval.ExpansionRetriever.from_thesaurus(
            {"loud": ["noisy", "hums"]}, inner, **more
        ),
        "compression, lexical": lambda inner, **more: retrieval.CompressionRetriever(retriever=inner, **more),
        "self query": lambda inner, **more: SelfQueryRetriever.from_rules(
            inner, documents=documents(), **more
        ),
        "routing": lambda inner, **more: retrieval.RoutingRetriever(
            sources={"one": (inner, "Fans and noise at night"), "two": (inner, "Fans and air at night")},
            **more,
        ),
        "graph": lambda inner, **more: retrieval.GraphRetriever(
            index=BM25Index.from_documents(documents()), retriever=inner, **more
        ),
        "rerank": lambda inner, **more: retrieval.RerankRetriever(
            retriever=inner,
            reranker=retrieval.PointwiseReranker(llm=model()),
            **more,
        ),
        "rerank, listwise": lambda inner, **more: retrieval.RerankRetriever(
            retriever=inner, reranker=ListwiseReranker(llm=model()), **more
        ),
        "rerank, mmr": lambda inner, **more: retrieval.RerankRetriever(
            retriever=inner, reranker=MMRReranker(embeddings=WordEmbeddings()), **more
        ),
    }
    return made
