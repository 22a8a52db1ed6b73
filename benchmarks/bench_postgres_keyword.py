"""Exact BM25 in PostgreSQL, four ways over the same analysed documents: which one, and at what cost.

A postings table scored in SQL; a GIN index for candidates, scored in SQL; pgvector's ``sparsevec``, searched exactly;
packed postings scored in numpy (``rag_kit.indexing.postgres``), all of them or only those that score bounds ask for.

Documents are sentences of real sets. Where these are too few they come again with changes: three words in ten are
replaced by words of other sentences, and one in fifty by a word that is nowhere else. Queries are the first six words
of real questions that the analyzer keeps. ``--data FOLDER`` names the sets. The full run takes an hour and
writes benchmarks/results/postgres_keyword.json; ``--only`` does a part of it.
"""

from __future__ import annotations

from harness import Row, at_most  # isort: skip  (sets the threads first)

import argparse
import gzip
import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from langchain_core.documents import Document

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from rag_kit.indexing import BM25Index
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1
from rag_kit.indexing.postgres.keyword import save_counts, write_terms
from rag_kit.indexing.postgres.keyword_search import (
    BLOCK,
    best_hits,
    read_counts,
    read_frequencies,
    score_all,
    unpack,
)
from rag_kit.text import default_analyzer
from tests.support.postgres import PostgresServer

RESULT = ROOT / "benchmarks" / "results" / "postgres_keyword.json"
MIGRATION = ROOT / "rag_kit" / "indexing" / "postgres" / "migrations" / "0002_keyword.sql"
ENGLISH = ("scifact", "covidqa", "pubmedqa_l", "timeqa_slice", "xquad_en")
EQUAL = ("scifact", "cmrc2018_dev")
GROUP, QUERIES, K, CHANGES = 10_000, 40, 10, 20
FILTERS = {"all": None, "10%": {"tenth": 3}, "1%": {"hundredth": 7}}
CHUNKS = """
CREATE TABLE chunks (tenant text NOT NULL DEFAULT current_setting('rag_kit.tenant'), n bigint PRIMARY KEY,
    id text NOT NULL, text text NOT NULL, metadata text NOT NULL, fields jsonb, generation bigint NOT NULL);
CREATE INDEX ON chunks (tenant, generation);
CREATE TABLE removed (tenant text NOT NULL DEFAULT current_setting('rag_kit.tenant'), n bigint, generation bigint);
"""

Counted = Sequence[Counter[str]]
Hits = list[tuple[int, float]]


def _where_sql(where: dict[str, Any]) -> tuple[str, list[Any]]:
    """A filter of one field as a condition on the column ``fields``."""
    [(key, value)] = where.items()
    return "c.fields -> %s = %s::jsonb", [key, json.dumps(value)]


class Way:
    """One way to keep and score postings; numbers of documents are those of ``chunks``."""

    tables: tuple[str, ...] = ()

    mean = 17.0  # terms of a document, for who must know before

    def __init__(self, native: psycopg.Connection[Any]) -> None:
        self.native = native
        self.documents = self.tokens = 0
        self.create()

    def create(self) -> None:
        """Make the tables."""

    def write(self, first: int, counted: Counted) -> None:
        """Add documents, or replace those of the same numbers."""
        raise NotImplementedError

    def search(self, terms: list[str], where: dict[str, Any] | None) -> Hits:
        """Numbers and scores of the best."""
        raise NotImplementedError

    def size(self) -> int:
        """Bytes on disk, indexes included."""
        query = "SELECT sum(pg_total_relation_size(t::regclass))::bigint FROM unnest(%s::text[]) t"
        [(count,)] = self.native.execute(query, (list(self.tables),)).fetchall()
        return int(count)

    def _saturation(self) -> str:
        mean = self.tokens / self.documents if self.tokens else 1.0
        return f"{DEFAULT_K1!r}::float8 * ({1 - DEFAULT_B!r} + {DEFAULT_B!r} * length / {mean!r}::float8)"

    def _note(self, first: int, counted: Counted, before: int = 0) -> None:
        self.documents = max(self.documents, first + len(counted))
        self.tokens += sum(terms.total() for terms in counted) - before


class Table(Way):
    """A row a posting, scored in SQL."""

    tables = ("p1", "d1")

    def create(self) -> None:
        self.native.execute(
            'CREATE TABLE p1 (term text COLLATE "C", n int, count int, length int); '
            "CREATE TABLE d1 (n int PRIMARY KEY, length int, terms text[]); "
            "CREATE UNIQUE INDEX p1_key ON p1 (term, n) INCLUDE (count, length)"
        )

    def write(self, first: int, counted: Counted) -> None:
        numbers = [first, first + len(counted)]
        old = self.native.execute(
            "DELETE FROM d1 WHERE n >= %s AND n < %s RETURNING n, length, terms", numbers
        )
        before = 0
        for n, length, terms in old.fetchall():
            before += length
            self.native.execute("DELETE FROM p1 WHERE term = ANY(%s) AND n = %s", (terms, n))
        with self.native.cursor().copy("COPY p1 FROM STDIN") as copy:
            for n, terms in enumerate(counted, first):
                for term, count in terms.items():
                    copy.write_row((term, n, count, terms.total()))
        with self.native.cursor().copy("COPY d1 FROM STDIN") as copy:
            for n, terms in enumerate(counted, first):
                copy.write_row((n, terms.total(), list(terms)))
        self._note(first, counted, before)

    def search(self, terms: list[str], where: dict[str, Any] | None) -> Hits:
        condition, values = _where_sql(where) if where else ("", [])
        join = f"JOIN chunks c USING (n) WHERE {condition}" if where else ""
        return self.native.execute(
            "WITH q AS MATERIALIZED (SELECT term, w, ln(1 + (%s - count(*) + .5) / (count(*) + .5)) AS idf "
            "FROM p1 JOIN (SELECT t, count(*) w FROM unnest(%s::text[]) t GROUP BY t) x ON t = term GROUP BY term, w) "
            f"SELECT n, sum(w * idf * count / (count + {self._saturation()})) AS score "
            f"FROM p1 JOIN q USING (term) {join} GROUP BY n ORDER BY score DESC, n LIMIT {K}",
            (float(self.documents), terms, *values),
        ).fetchall()


class Gin(Way):
    """Arrays of terms and counts, found by a GIN index, scored in SQL."""

    tables = ("d2",)

    def create(self) -> None:
        self.native.execute(
            "CREATE TABLE d2 (n int PRIMARY KEY, length int, terms text[], counts int[]); "
            "CREATE INDEX ON d2 USING gin (terms)"
        )

    def write(self, first: int, counted: Counted) -> None:
        numbers = [first, first + len(counted)]
        old = self.native.execute("DELETE FROM d2 WHERE n >= %s AND n < %s RETURNING length", numbers)
        before = sum(length for (length,) in old)
        with self.native.cursor().copy("COPY d2 FROM STDIN") as copy:
            for n, terms in enumerate(counted, first):
                copy.write_row((n, terms.total(), list(terms), list(terms.values())))
        self._note(first, counted, before)

    def search(self, terms: list[str], where: dict[str, Any] | None) -> Hits:
        condition, values = _where_sql(where) if where else ("", [])
        join = f"JOIN chunks c USING (n) WHERE {condition}" if where else ""
        asked = Counter(terms)
        each = ", ".join(f"counts[array_position(terms, %s)]::float8 AS t{i}" for i in range(len(asked)))
        frequency = ", ".join(f"count(t{i})::float8 AS f{i}" for i in range(len(asked)))
        total = " + ".join(
            f"coalesce({weight} * ln(1 + (%s - f{i} + .5) / (f{i} + .5)) * t{i} / (t{i} + {self._saturation()}), 0)"
            for i, weight in enumerate(asked.values())
        )
        return self.native.execute(
            f"WITH h AS MATERIALIZED (SELECT n, length, {each} FROM d2 WHERE terms && %s::text[]), "
            f"f AS MATERIALIZED (SELECT {frequency} FROM h) "
            f"SELECT n, {total} AS score FROM h CROSS JOIN f {join} ORDER BY score DESC, n LIMIT {K}",
            (*asked, list(asked), *[float(self.documents)] * len(asked), *values),
        ).fetchall()


class Sparse(Way):
    """pgvector's sparsevec: the saturated counts, as of the mean length when they were written; an exact scan."""

    tables = ("d3",)

    def create(self) -> None:
        self.native.execute("CREATE TABLE d3 (n int PRIMARY KEY, v sparsevec)")
        self.numbers: dict[str, int] = {}
        self.frequency: Counter[str] = Counter()

    def write(self, first: int, counted: Counted) -> None:
        with self.native.cursor().copy("COPY d3 FROM STDIN") as copy:
            for n, terms in enumerate(counted, first):
                below = DEFAULT_K1 * (1 - DEFAULT_B + DEFAULT_B * terms.total() / self.mean)
                copy.write_row((n, self._vector({term: c / (c + below) for term, c in terms.items()})))
        self.frequency.update(term for terms in counted for term in terms)
        self._note(first, counted)

    def _vector(self, weights: dict[str, float]) -> str:
        pairs = sorted((self.numbers.setdefault(t, len(self.numbers) + 1), w) for t, w in weights.items())
        return "{" + ",".join(f"{number}:{weight!r}" for number, weight in pairs) + "}/1000000000"

    def search(self, terms: list[str], where: dict[str, Any] | None) -> Hits:
        condition, values = _where_sql(where) if where else ("", [])
        join = f"JOIN chunks c USING (n) WHERE {condition}" if where else ""
        idf = {
            t: w * np.log1p((self.documents - self.frequency[t] + 0.5) / (self.frequency[t] + 0.5)).item()
            for t, w in Counter(terms).items()
        }
        query = self._vector(idf)
        rows = self.native.execute(
            f"SELECT n, -(v <#> %s::sparsevec) AS score FROM d3 {join} ORDER BY score DESC, n LIMIT {K}",
            (query, *values),
        ).fetchall()
        return [(n, score) for n, score in rows if score > 0]


class Packed(Way):
    """The kit's leg."""

    tables = ("keyword_documents", "keyword_postings")

    def create(self) -> None:
        self.native.execute(MIGRATION.read_text(encoding="utf-8"))

    def write(self, first: int, counted: Counted) -> None:
        total = read_counts(self.native)
        save_counts(self.native, write_terms(self.native, total, dict(enumerate(counted, first))))
        self.documents = max(self.documents, first + len(counted))

    def search(self, terms: list[str], where: dict[str, Any] | None) -> Hits:
        hits = best_hits(self.native, *score_all(self.native, terms), K, where)
        return [(int(key), score) for key, _, score in hits]


class Bounded(Packed):
    """The same; frequent terms that cannot bring a new document among the best are read where candidates are."""

    def search(self, terms: list[str], where: dict[str, Any] | None) -> Hits:
        total = read_counts(self.native)
        found = read_frequencies(self.native, dict.fromkeys(terms))
        asked = Counter(term for term in terms if term in found)
        bound = {
            t: w * np.log1p((total.documents - found[t] + 0.5) / (found[t] + 0.5)) for t, w in asked.items()
        }
        order = sorted(bound, key=lambda term: found[term])
        table = np.zeros(self.documents, np.float32)
        blocks: list[int] | None = None
        for at, term in enumerate(order):
            query = "SELECT block, packed FROM keyword_postings WHERE term = %b"
            if blocks is not None:
                query += " AND block = ANY(%b::bigint[])"
            values = (term,) if blocks is None else (term, blocks)
            postings = unpack(self.native.execute(query, values, binary=True).fetchall())
            mean = total.tokens / total.documents
            count = postings.counts.astype(np.float64)
            count /= count + DEFAULT_K1 * (1 - DEFAULT_B + DEFAULT_B * postings.lengths / mean)
            table[postings.numbers] += (count * bound[term]).astype(np.float32)
            rest = sum(bound[later] for later in order[at + 1 :])
            if where is None and (hits := np.flatnonzero(table > 0)).size > K:
                kth = np.partition(table[hits], len(hits) - K)[len(hits) - K]
                if kth > rest:
                    candidates = hits[table[hits] > kth - rest]
                    blocks = np.unique(candidates // BLOCK).tolist()
        hits = np.flatnonzero(table > 0)
        found_hits = best_hits(self.native, hits, table[hits], K, where)
        return [(int(key), score) for key, _, score in found_hits]


WAYS: dict[str, type[Way]] = {
    "packed": Packed,
    "packed, bounds": Bounded,
    "postings table": Table,
    "GIN": Gin,
    "sparsevec": Sparse,
}


SMALL, LARGE = 100_000, 1_000_000
RUNS = [("packed", SMALL), ("postings table", SMALL), ("GIN", SMALL), ("sparsevec", SMALL)]
RUNS += [("packed", LARGE), ("packed, bounds", LARGE)]


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, compressed or not."""
    if path.exists():
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with gzip.open(f"{path}.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def texts_of(folder: Path) -> list[str]:
    """Titles and texts."""
    return [f"{row.get('title', '')}\n{row['text']}".strip() for row in lines(folder / "corpus.jsonl")]


def sentences(data: Path, first: int, last: int) -> Iterator[str]:
    """The sentences of these numbers; see above."""
    real = [
        sentence.split()
        for name in ENGLISH
        for row in lines(data / name / "corpus.jsonl")
        for sentence in re.split(r"(?<=[.!?])\s+", row["text"])
        if len(sentence.split()) > 4
    ]
    words = [word for sentence in real for word in sentence]
    for number in range(first, last):
        sentence = real[number % len(real)]
        if number >= len(real):
            rng = random.Random(number)
            sentence = [
                f"{word}{number}"
                if (chance := rng.random()) < 0.02
                else rng.choice(words)
                if chance < 0.32
                else word
                for word in sentence
            ]
        yield " ".join(sentence)


def questions(data: Path) -> list[list[str]]:
    """The terms of six words each."""
    analyzer, rng = default_analyzer(), random.Random(1)
    found = []
    for name in ENGLISH:
        for row in lines(data / name / "queries.jsonl"):
            kept = [word for word in row["text"].split() if analyzer(word)][:6]
            if len(kept) == 6:
                found.append(analyzer(" ".join(kept)))
    return rng.sample(found, QUERIES)


def opened(server: PostgresServer, kind: type[Way]) -> Way:
    """A new database's tables, as an ordinary role with the policies on."""
    native = psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True)
    native.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION vector")
    native.execute(
        "DROP ROLE IF EXISTS app; CREATE ROLE app; GRANT ALL ON SCHEMA public TO app; SET ROLE app"
    )
    native.execute("SET rag_kit.tenant = ''")
    native.execute(CHUNKS)
    return kind(native)


def put(way: Way, first: int, texts: Sequence[str]) -> None:
    """Rows of the truth."""
    rows = [
        (n, str(n), text, json.dumps({"tenth": n % 10, "hundredth": n % 100}))
        for n, text in enumerate(texts, first)
    ]
    with way.native.cursor().copy(
        "COPY chunks (n, id, text, metadata, fields, generation) FROM STDIN"
    ) as copy:
        for n, key, text, fields in rows:
            copy.write_row((n, key, text, fields, fields, 1))


def difference(server: PostgresServer, kind: type[Way], data: Path) -> float:
    """The largest difference from the scores of ``BM25Index``, of the best of each query of two real sets."""
    worst = 0.0
    for name in EQUAL:
        texts, analyzer = texts_of(data / name), default_analyzer()
        index = BM25Index.from_texts(texts)
        way = opened(server, kind)
        counted = [Counter(analyzer(text)) for text in texts]
        way.mean = statistics.mean(terms.total() for terms in counted)
        with way.native.transaction():
            put(way, 0, texts)
            way.write(0, counted)
        for row in lines(data / name / "queries.jsonl")[:50]:
            found = way.search(analyzer(row["text"]), None)
            wanted = [score for _, score in index.search(row["text"], K)]
            assert len(found) == len(wanted), (name, row["text"])
            worst = max([worst, *(abs(a - b) for (_, a), b in zip(found, wanted, strict=True))])
        way.native.close()
    return worst


def built(way: Way, data: Path, first: int, last: int) -> Counter[str]:
    """Write documents in groups; the seconds of each step."""
    analyzer, seconds = default_analyzer(), Counter[str]()
    numbered = sentences(data, first, last)
    while texts := list(islice(numbered, GROUP)):
        marks = [time.perf_counter()]
        counted = [Counter(analyzer(text)) for text in texts]
        marks.append(time.perf_counter())
        with way.native.transaction():
            put(way, first, texts)
            marks.append(time.perf_counter())
            way.write(first, counted)
        marks.append(time.perf_counter())
        first += len(texts)
        for name, begun, ended in zip(("analysis", "truth", "build"), marks, marks[1:], strict=False):
            seconds[name] += ended - begun
    return seconds


def searched(way: Way, data: Path) -> dict[str, float]:
    """Bytes a document, milliseconds of queries and changes."""
    way.native.execute("VACUUM ANALYZE")
    asked = questions(data)
    result = {"bytes": way.size() / way.documents}
    for name, where in FILTERS.items():
        way.search(asked[0], where)
        seconds = [timed(way.search, terms, where) for terms in asked]
        result[f"query_{name}_ms"] = 1000 * statistics.median(seconds)
    if not isinstance(way, Sparse):
        result["change_ms"] = 1000 * statistics.median(changed(way, n) for n in range(CHANGES))
    return result


def share(server: PostgresServer, data: Path, group: int) -> float:
    """The part of the time of an ingest of 10,000 short chunks, so many a write, that the leg takes."""
    from rag_kit.indexing import DocumentIndex

    docs = [Document(text, id=str(n)) for n, text in enumerate(sentences(data, 0, GROUP))]
    spent = 0.0
    with DocumentIndex.create(f"{server.url.replace('+psycopg', '')}&index=share{group}") as index:
        apply = index._store.keyword.apply

        def counted(connection: Any, state: Any) -> int:
            nonlocal spent
            start = time.perf_counter()
            generation: int = apply(connection, state)
            spent += time.perf_counter() - start
            return generation

        index._store.keyword.apply = counted
        start = time.perf_counter()
        for first in range(0, len(docs), group):
            index.upsert(docs[first : first + group])
        return spent / (time.perf_counter() - start)


def timed(function: Callable[..., object], *arguments: Any) -> float:
    """Seconds."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def changed(way: Way, n: int) -> float:
    """Seconds to replace one document, searched in the same transaction."""
    words = default_analyzer()(f"the study of hearts and cells changed{n} with patients in a large trial")
    start = time.perf_counter()
    with way.native.transaction():
        way.write(n, [Counter(words)])
        seconds = time.perf_counter() - start
        assert way.search([word for word in words if word.startswith("changed")], None)[0][0] == n
    return seconds


def measured(kind: type[Way], data: Path, amount: int) -> dict[str, Any]:
    """All of one way, on a server of its own."""
    with PostgresServer() as server:
        apart = difference(server, kind, data)
        way = opened(server, kind)
        seconds = {f"{step}_us": 1e6 * s / amount for step, s in built(way, data, 0, amount).items()}
        found = {"difference": apart, **seconds, **searched(way, data)}
        way.native.close()
    return found


def run(quick: bool = False, data: Path = ROOT.parent / "shared" / "data", only: str = "") -> list[Row]:
    """Each way at 100,000 documents, what is chosen at 1,000,000; a query's time against that of packed postings."""
    result: dict[str, Any] = {"rows": {}, "shares": {}}
    if RESULT.exists() and not quick:
        result = json.loads(RESULT.read_text(encoding="utf-8"))
    keys = {f"{name}, {amount:,}": (name, amount) for name, amount in RUNS}
    for key, (name, amount) in keys.items():
        if key.startswith(only):
            result["rows"][key] = measured(WAYS[name], data, 20_000 if quick else amount)
    result["rows"] = {key: result["rows"][key] for key in keys if key in result["rows"]}
    if not only:
        with PostgresServer() as server:
            result["shares"] = {group: share(server, data, group) for group in (50, 1000, GROUP)}
    if not quick:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (_, ours), *others = result["rows"].items()
    return [
        at_most(f"packed against {key}, a query", ours["query_all_ms"] / row["query_all_ms"], 1)
        for key, row in others
        if key.endswith(f"{SMALL:,}")
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--only", default="", help="the beginning of a way's name")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    for row in run(given.quick, given.data, given.only):
        print(row)
