from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from support.rewriters import both, both_raise, ids, pause

from rag_kit.concurrency.notes import use_notes
from rag_kit.documents import get_provenance
from rag_kit.errors import (
    BranchError,
    BranchTimeoutError,
    BudgetExceededError,
    FilterError,
    InvalidInputError,
)
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, RagKitRetriever, VectorRetriever, explain
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.inner import acall_retriever, call_retriever


class Fixed(RagKitRetriever):
    """One of the kit's own retrievers: fixed results, native async, remembers requests."""

    docs: list[Document]
    seen: Any = []
    delay: float = 0

    async def _search(self, query: str, call: Call) -> list[Document]:
        self.seen.append(call)
        await pause(self.delay)
        return self.docs


class Plain(BaseRetriever):
    """A LangChain retriever that knows neither k nor filter."""

    docs: list[Document]
    error: str = ""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self.error:
            raise ConnectionError(self.error)
        return self.docs


def docs(*names: str, **metadata: Any) -> list[Document]:
    return [Document(f"text {name}", id=name, metadata=dict(metadata)) for name in names]


async def test_fuses_by_rank_with_weights() -> None:
    """Scores are weight / (60 + rank) summed; ties go to what was seen first."""
    one, two = Plain(docs=docs("a", "b", "c")), Plain(docs=docs("c", "d"))
    found = await both(EnsembleRetriever(retrievers=[one, two]), "q")
    assert ids(found) == ["c", "a", "b", "d"]
    assert get_provenance(found[0])["score"] == pytest.approx(1 / 63 + 1 / 61)
    assert ids(await both(EnsembleRetriever(retrievers=[one, two], weights=[1, 10], k=2), "q")) == ["c", "d"]


async def test_row_3_provenance_tells_every_branch() -> None:
    """Each result names the branches that found it, with rank, score, weight and query, in plain JSON."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(docs("a", "b"))
    dense = VectorRetriever(vectorstore=store, name="dense")
    plain = Plain(docs=docs("b"), name="words")
    found = await both(EnsembleRetriever(retrievers=[dense, plain], weights=[2, 0.5]), "text b")
    record = get_provenance(found[0])
    assert found[0].id == "b" and record["rank"] == 1
    dense_stage, plain_stage, fusion = record["stages"]
    assert (dense_stage["retriever"], dense_stage["rank"], dense_stage["weight"]) == ("dense", 1, 2.0)
    assert dense_stage["score"] == pytest.approx(1.0)
    assert (plain_stage["retriever"], plain_stage["score"], plain_stage["weight"]) == ("words", None, 0.5)
    assert fusion["stage"] == "fusion:rrf" and fusion["query"] == "text b"
    assert fusion["score"] == pytest.approx(2 / 61 + 0.5 / 61) == record["score"]
    json.dumps(record, allow_nan=False)
    assert "words" in str(explain(found))


async def test_row_20_identity() -> None:
    """id_key, then Document.id, then the text decide what is one document."""
    one = Plain(docs=[Document("same", metadata={"isbn": 1})])
    two = Plain(docs=[Document("same", id="7", metadata={"isbn": 2})])
    merged = await both(EnsembleRetriever(retrievers=[one, two]), "q")
    assert ids(merged) == ["7"]
    assert len(await both(EnsembleRetriever(retrievers=[one, two], id_key="isbn"), "q")) == 2
    with pytest.raises(InvalidInputError, match="id_key='nope'"):
        EnsembleRetriever(retrievers=[one, two], id_key="nope").invoke("q")


async def test_results_are_copies() -> None:
    """Editing a result changes neither the sources nor the next result."""
    source = docs("a", tags=[1])
    retriever = EnsembleRetriever(retrievers=[Plain(docs=source), Plain(docs=source)])
    found = await both(retriever, "q")
    found[0].metadata["tags"].append(2)
    assert source[0].metadata == {"tags": [1]}
    assert retriever.invoke("q")[0].metadata["tags"] == [1]


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"weights": [1, -1]}, "-1"),
        ({"weights": [1]}, "for 2 lists"),
        ({"weights": [0, 0]}, "All weights are 0"),
        ({"weights": "ab"}, "^weights='ab' was given"),
        ({"weights": 5}, "^weights=5 was given"),
        ({"weights": {1: 2}}, "^weights={1: 2} was given"),
        ({"weights": [1, "x"]}, "^The weight 'x' was given"),
        ({"weights": [None, 1]}, "^The weight None was given"),
        ({"fusion": "borda"}, "'rrf'"),
        ({"rrf_k": -1}, "rrf_k=-1"),
        ({"retrievers": []}, "at least 1 item"),
        ({"retrievers": [1]}, "retrievers.0: Input should be an instance of Runnable"),
    ],
)
def test_wrong_arguments(kwargs: dict[str, Any], says: str) -> None:
    """A wrong argument is refused at construction, by a message that shows it or what is allowed."""
    values = {"retrievers": [Plain(docs=[]), Plain(docs=[])], **kwargs}
    with pytest.raises(InvalidInputError, match=says):
        EnsembleRetriever(**values)


async def test_k_and_filter_reach_every_leaf() -> None:
    """Per-call k and filter go through nested ensembles and wrappers to each leaf, ANDed with its own filter."""
    inner_leaf = Fixed(docs=docs("a", "b", "c", year=1), seen=[], filter={"tenant": "t"})
    leaf = Fixed(docs=docs("d", year=1), seen=[])
    bound = Fixed(docs=docs("e", year=1), seen=[])
    plain = Plain(docs=[*docs("f", year=1), *docs("g", year=2)])
    nested = EnsembleRetriever(retrievers=[inner_leaf, leaf.with_retry()])
    retriever = EnsembleRetriever(
        retrievers=[
            nested,
            bound.bind(filter={"bound": 1}),
            plain.with_config(tags=["t"]),
            RunnableLambda(lambda q: docs("h", year=2)),
        ]
    )
    found = await both(retriever, "q", k=7, filter={"year": 1})
    assert "g" not in ids(found) and "h" not in ids(found) and {"a", "d", "e", "f"} <= set(ids(found))
    assert {request.k for fixed in (inner_leaf, leaf, bound) for request in fixed.seen} == {7}
    assert inner_leaf.seen[0].filter == {"$and": [{"tenant": "t"}, {"year": 1}]}
    assert leaf.seen[0].filter == {"year": 1}
    assert bound.seen[0].filter == {"$and": [{"bound": 1}, {"year": 1}]}
    with pytest.raises((FilterError, BranchError)):
        retriever.invoke("q", None, filter={"year": {"$near": 1}})


@pytest.mark.parametrize("first", ["words", "store", "plain", "down"])
@pytest.mark.parametrize("wrapped", [False, True])
async def test_each_of_the_fallbacks_gets_k_and_filter_in_its_own_way(first: str, wrapped: bool) -> None:
    """Retrievers of two kinds that stand in for each other find as much of a tenant as each alone."""
    held = [*(Document(f"parcel price {n}", id=f"b{n}", metadata={"tenant": "b"}) for n in range(5))]
    held += [Document(f"A parcel has cost {n} euros", id=f"a{n}", metadata={"tenant": "a"}) for n in range(3)]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(held)
    members: dict[str, Any] = {
        "words": BM25Retriever.from_documents(held, k=1),
        "store": store.as_retriever(search_kwargs={"k": 1}),
        "plain": Plain(docs=held),
        "down": Plain(docs=[], error="down"),
    }
    arm = members.pop(first).with_fallbacks([members["words" if first == "store" else "store"]])
    if wrapped:
        arm = arm.with_config(tags=["mine"]).with_retry(stop_after_attempt=2)
    with use_notes() as notes:
        found = await both(EnsembleRetriever(retrievers=[arm], k=3), "parcel price", filter={"tenant": "a"})
    assert sorted(doc.id or "" for doc in found) == ["a0", "a1", "a2"]
    assert len(notes.texts) == len(notes.unsearched) == (first == "down")


async def test_fallbacks_at_the_head_of_a_chain() -> None:
    """Retrievers that take the filter alike get it; what rewrites the question there is called as it is."""
    held = [Document(f"parcel {n}", id=f"{n}", metadata={"tenant": "ab"[n // 6]}) for n in range(12)]
    words = BM25Retriever.from_documents(held)
    rewritten = RunnableLambda(lambda query: 1 / 0).with_fallbacks([RunnableLambda(str.lower)]) | words
    found = words.with_fallbacks([words]) | RunnableLambda(lambda documents: documents[::-1])
    for chain, count in ((rewritten, 0), (found, 4)):
        with use_notes() as notes:
            documents = await both(EnsembleRetriever(retrievers=[chain]), "PARCEL", filter={"tenant": "b"})
        assert len(documents) == count and bool(notes.unsearched) == (not count)
    narrow = words.with_fallbacks([words]).bind(filter={"tenant": "a"}) | RunnableLambda(
        lambda documents: documents
    )
    assert await both(EnsembleRetriever(retrievers=[narrow]), "parcel", filter={"tenant": "b"}) == []


class Counting(BaseRetriever):
    """A retriever of the user, which counts its calls of a chain."""

    runnable: Any
    calls: int = 0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.calls += 1
        found: list[Document] = self.runnable.invoke(query)
        return found


async def test_past_fallbacks_state_stays_and_an_error_keeps_its_cause() -> None:
    """The user's retriever is called itself, no copy; what ends a run says why."""

    def fail(query: str) -> list[Document]:
        raise BudgetExceededError("calls", 1) from KeyError(query)

    counting = Counting(runnable=RunnableLambda(lambda query: []).with_fallbacks([Fixed(docs=[])]))
    assert await both(EnsembleRetriever(retrievers=[counting.with_retry()]), "parcel") == []
    assert counting.calls == 2
    with pytest.raises(BudgetExceededError) as ended:
        call_retriever(RunnableLambda(fail).with_fallbacks([counting]), "parcel")
    assert isinstance(ended.value.__cause__, KeyError)


async def test_bound_filters_inside_and_around_fallbacks_hold_both() -> None:
    """A filter that is bound around others takes the place of none."""
    held = [Document(f"parcel {tenant}", metadata={"tenant": tenant, "year": 1}) for tenant in "ab"]
    own = BM25Retriever.from_documents(held).bind(filter={"tenant": "a"})
    for narrowed, count in (({"year": 1}, 1), ({"tenant": "b"}, 0)):
        arm = own.with_fallbacks([own]).bind(filter=narrowed)
        found = await both(EnsembleRetriever(retrievers=[arm]), "parcel")
        assert [doc.page_content for doc in found] == ["parcel a"] * count


async def test_fetch_k() -> None:
    """fetch_k is what each retriever is asked for, never less than k."""
    leaf = Fixed(docs=docs(*"abcdefgh"), seen=[])
    retriever = EnsembleRetriever(retrievers=[leaf], fetch_k=6, k=2)
    assert len(await both(retriever, "q")) == 2
    retriever.invoke("q", None, k=8)
    assert [request.k for request in leaf.seen] == [6, 6, 8]


async def test_a_branch_that_finds_nothing_is_told() -> None:
    """A branch that silently finds nothing is visible in the results."""
    found = await both(
        EnsembleRetriever(retrievers=[Plain(docs=docs("a")), Plain(docs=[], name="idle")]), "q"
    )
    assert get_provenance(found[0])["notes"] == ["idle found nothing"]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_all_branches_failing_raises(on_error: str) -> None:
    """When nothing answered there is an error, not an empty list, under either policy."""
    broken = [Plain(docs=[], error="one"), Plain(docs=[], error="two")]
    retriever = EnsembleRetriever(retrievers=broken, on_error=on_error)
    with pytest.raises(BranchError, match=r"one|two") as caught:
        retriever.invoke("q")
    assert isinstance(caught.value.__cause__, ConnectionError)
    with pytest.raises(BranchError, match=r"one|two"):
        await retriever.ainvoke("q")


async def test_row_14_raise_policy_and_timeouts() -> None:
    """on_error="raise" raises the first failure; a hanging branch costs its time-out."""
    slow = Fixed(docs=docs("slow"), delay=3, name="slow")
    fast = Plain(docs=docs("a"))
    begun = time.monotonic()
    found = await both(EnsembleRetriever(retrievers=[slow, fast], timeout=0.2), "q")
    assert ids(found) == ["a"] and "slow" in get_provenance(found[0])["notes"][0]
    await both_raise(
        BranchTimeoutError,
        "slow",
        EnsembleRetriever(retrievers=[slow, fast], timeout=0.2, on_error="raise"),
        "q",
    )
    assert time.monotonic() - begun < 4


async def test_used_up_budget_is_raised_as_such() -> None:
    """When the budget's deadline ends all branches, the error is the budget's."""
    from rag_kit.concurrency import Budget, use_budget

    with use_budget(Budget(deadline=0.2)), pytest.raises(BudgetExceededError):
        await EnsembleRetriever(retrievers=[Fixed(docs=[], delay=5)]).ainvoke("q")


async def test_row_15_branches_run_side_by_side_within_limits() -> None:
    """Branches overlap, sync and async; max_concurrency from the argument or the config is never exceeded."""
    lock, now, most = threading.Lock(), 0, 0
    together = threading.Barrier(8)  # on a busy machine the eighth thread may start long after the first

    def search(query: str) -> list[Document]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        if unlimited:
            together.wait(60)
        else:
            time.sleep(0.15)
        with lock:
            now -= 1
        return docs("a")

    leaves = [RunnableLambda(search) for _ in range(8)]
    free = EnsembleRetriever(retrievers=leaves)
    unlimited = True
    for call in (lambda: asyncio.to_thread(free.invoke, "q"), lambda: free.ainvoke("q")):
        most = 0
        await call()
        assert most == 8
    unlimited = False
    for retriever, config in (
        (EnsembleRetriever(retrievers=leaves, max_concurrency=2), None),
        (free, {"max_concurrency": 2}),
    ):
        most = 0
        retriever.invoke("q", config)
        await retriever.ainvoke("q", config)
        assert most == 2


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: r.with_config(tags=["t"]), lambda r: r.bind()])
async def test_a_retriever_that_returns_strings_is_named(wrap: Any) -> None:
    """A retriever has to return documents: strings have no source, so an answer could cite nothing."""

    class Stringly(BaseRetriever):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            return ["just text"]  # type: ignore[list-item]

    says = r"Stringly.* holds str; .*Document\(page_content=text\)"
    with pytest.raises(InvalidInputError, match=says):
        call_retriever(wrap(Stringly()), "q")
    with pytest.raises(InvalidInputError, match=says):
        await acall_retriever(wrap(Stringly()), "q")


def test_row_17_copies_that_differ_in_metadata_are_one() -> None:
    """Copies of one document that differ in a score are one result."""
    copies = [Plain(docs=docs("s", score=number)) for number in range(4)]
    assert ids(EnsembleRetriever(retrievers=copies).invoke("q")) == ["s"]
