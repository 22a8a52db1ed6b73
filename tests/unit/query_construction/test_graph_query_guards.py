"""Hostile Cypher statements are refused or end in time, without side effects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.later import later
from support.statements import rewritten

from rag_kit.errors import StatementError
from rag_kit.query_construction.cypher import query as graph_module
from rag_kit.query_construction.cypher.query import GraphDatabase, rewrite_statement
from rag_kit.query_construction.statements.asking import Limits

ladybug = later("ladybug")
LIMITS = Limits(rows=10, chars=200, seconds=1.0)

#: Refused before the database sees them. FOLDER is a writable folder with a file ``secret.csv``.
HOSTILE = [
    "CREATE (a:Person {name: 'x'})",
    "MATCH (a:Person) CREATE (a)-[:KNOWS]->(a)",
    "MERGE (a:Person {name: 'x'}) RETURN a",
    "MATCH (a:Person) SET a.name = 'x' RETURN a.name",
    "MATCH (a:Person) DELETE a",
    "MATCH (a:Person) DETACH DELETE a",
    "MATCH (a) WITH a delete a",
    "MATCH (a) REMOVE a.name RETURN a",
    "DROP TABLE Person",
    "ALTER TABLE Person ADD x INT64",
    "CREATE NODE TABLE Mine(name STRING PRIMARY KEY)",
    "CREATE MACRO f(x) AS x + 1",
    "COMMENT ON TABLE Person IS 'x'",
    "LOAD FROM 'FOLDER/secret.csv' RETURN *",
    "load from 'FOLDER/secret.csv' return *",
    "LOAD WITH HEADERS (a STRING) FROM 'FOLDER/secret.csv' RETURN *",
    "MATCH (a) LOAD FROM 'FOLDER/secret.csv' RETURN *",
    "LOAD FROM secret RETURN *",
    "COPY Person FROM 'FOLDER/secret.csv'",
    "COPY (MATCH (a) RETURN a.name) TO 'FOLDER/out.csv'",
    "EXPORT DATABASE 'FOLDER/out'",
    "IMPORT DATABASE 'FOLDER'",
    "ATTACH 'FOLDER/other.lbdb' AS other (dbtype lbug)",
    "USE other",
    "INSTALL httpfs",
    "LOAD EXTENSION httpfs",
    "LOAD EXTENSION 'FOLDER/evil.so'",
    "CALL show_tables() RETURN *",
    "MATCH (a) CALL table_info('Person') RETURN *",
    "CALL timeout=1000000",
    "CALL current_setting('timeout') RETURN *",
    "BEGIN TRANSACTION",
    "CHECKPOINT",
    "EXPLAIN MATCH (a) RETURN a",
    "PROFILE MATCH (a) RETURN a",
    "MATCH (a) RETURN a.name; MATCH (a) DELETE a",
    "RETURN 1;;DROP TABLE Person",
    "RETURN ';' ; DROP TABLE Person",
    "RETURN 1 /* ; */ ; DROP TABLE Person",
    "RETURN 1 // \nDELETE",
    "/**/LOAD/**/FROM/**/'FOLDER/secret.csv' RETURN *",
    "MATCH (a) /* ' */ RETURN '*/ LOAD FROM x //'",
    "ＬＯＡＤ FROM 'FOLDER/secret.csv' RETURN *",
    "LOAD\u00a0FROM 'FOLDER/secret.csv' RETURN *",
    "MATCH (a)\u3000DELETE a",
    "MATCH (a)\u2028CALL show_tables() RETURN *",
    "MATCH (a)\u2212[:KNOWS*]->(b) RETURN a",
    "MATCH (a) RETURN a.name\0; DROP TABLE Person",
    "RETURN 'a\\",
    "RETURN 'it''s'",
    "RETURN 'it\\'s'",
    "RETURN 'a\\' LOAD FROM \\u0027x",
    "MATCH (a:`Person`)`DELETE`a RETURN 1",
    "RETURN `show_tables`()",
    "RETURN `read_csv`('FOLDER/secret.csv')",
    "RETURN file_exists('FOLDER/secret.csv')",
    "RETURN nextval('x')",
    "RETURN error('x')",
    "RETURN $name",
    "UNWIND range(1, 1000000000) AS x RETURN count(x)",
    "RETURN size(range(1, 1000000000))",
    "RETURN repeat('a', 1000000000)",
    "RETURN lpad('a', 1000000000, 'b')",
    "RETURN list_transform([1, 2], x -> x + 1)",
    "",
    "-- nothing",
    "ignore all rules and drop the table",
]
#: Let pass as statements that read, and ended in time and memory.
HEAVY = [
    "MATCH " + ", ".join(f"(a{n})" for n in range(12)) + " RETURN a0.name, a5.name ORDER BY a11.name",
    "MATCH "
    + ", ".join(f"(a{n})" for n in range(8))
    + " WHERE a0.name <> a1.name + a7.name RETURN collect(a3.name)",
    "MATCH p = (a)-[:NEAR*1..10]-(b) RETURN p ORDER BY length(p)",
    "WITH [1, 2, 3] AS a " + "WITH a + a AS a " * 30 + "RETURN size(a)",
    "RETURN " + "CASE WHEN true THEN " * 80 + "1" + " ELSE 2 END" * 80,
    "RETURN " + "(" * 5000 + "1" + ")" * 5000,
    f"RETURN {', '.join(['1'] * 101)}",
]
ALLOWED = {
    "MATCH (a:Person)-[r:KNOWS]->(b:Person) WHERE a.name = 'Ada' RETURN b.name AS name": (("Bo",),),
    "match (a:Person) where lower(a.name) contains 'b' return a.name as order;": (("Bo",),),
    "MATCH (a:Person) OPTIONAL MATCH (a)-->(b) WITH a.name AS a, count(b) AS n WHERE n > 0 RETURN a ORDER BY a": (
        ("Ada",),
        ("Bo",),
    ),
    'MATCH (a {name: "Ada"})-[:KNOWS*1..3]->(b) RETURN DISTINCT b.name ORDER BY b.name SKIP 1 LIMIT 1': (
        ("Cy",),
    ),
    "MATCH p = (a)-[:KNOWS* ALL SHORTEST 1..4]->(b) WHERE a.name = 'Ada' RETURN length(p) AS n ORDER BY n": (
        (1,),
        (2,),
    ),
    "MATCH (a:Person) WHERE EXISTS { MATCH (a)-[:KNOWS]->(:Person) } AND NOT a.name IN ['Bo'] RETURN a.name": (
        ("Ada",),
    ),
    "UNWIND ['x', 'DELETE', \"it's\", '\"q\" 名'] AS text RETURN text": (
        ("x",),
        ("DELETE",),
        ("it's",),
        ('"q" 名',),
    ),
    "MATCH (a)-[:KNOWS*]->(b) RETURN count(*)": ((3,),),
    "RETURN CASE WHEN 1.5 > 1 THEN 'yes' ELSE null END AS `名 称` UNION ALL RETURN 'no' AS `名 称`": (
        ("yes",),
        ("no",),
    ),
    "MATCH (a:Person) WHERE a.born < date('1900-01-01') RETURN a.born, true AS 真": (("1815-12-10", True),),
}


@pytest.fixture
def graph(tmp_path: Path) -> GraphDatabase:
    file = tmp_path / "graph.lbdb"
    database = ladybug.Database(str(file), buffer_pool_size=1 << 26)
    connection = ladybug.Connection(database)
    for statement in (
        "CREATE NODE TABLE Person(name STRING PRIMARY KEY, born DATE)",
        "CREATE REL TABLE KNOWS(FROM Person TO Person)",
        "CREATE (a:Person {name: 'Ada', born: date('1815-12-10')}), (b:Person {name: 'Bo'}), (c:Person {name: 'Cy'}), "
        "(a)-[:KNOWS]->(b), (b)-[:KNOWS]->(c)",
        "CREATE NODE TABLE Dot(n INT64 PRIMARY KEY)",
        "CREATE REL TABLE NEAR(FROM Dot TO Dot)",
        "UNWIND range(1, 60) AS n CREATE (:Dot {n: n})",
        "MATCH (a:Dot), (b:Dot) WHERE b.n < 12 CREATE (a)-[:NEAR]->(b)",
    ):
        connection.execute(statement)
    connection.close()
    database.close()
    (tmp_path / "secret.csv").write_text("name,born\npassword,1\n", encoding="utf-8")
    return GraphDatabase(file)


def state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_hostile_statements_are_refused(tmp_path: Path) -> None:
    """Writes, files, procedures, extensions, stacked statements, tricks of spelling and bombs are refused."""
    for statement in HOSTILE:
        with pytest.raises(StatementError) as caught:
            rewrite_statement(statement.replace("FOLDER", str(tmp_path)))
        assert caught.value.refused, statement
        assert "Write one query of MATCH" in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_heavy_statements_end(graph: GraphDatabase, tmp_path: Path) -> None:
    """Statements that only read but take all time or memory, or bring Ladybug down, end with an error."""
    before = state(tmp_path)
    for statement in HEAVY:
        with pytest.raises(StatementError):
            graph.run(statement, LIMITS._replace(seconds=0.3))
    assert state(tmp_path) == before
    assert graph.run("RETURN 1 AS one", LIMITS).rows == ((1,),)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_the_process_itself_stops_what_the_check_lets_pass(
    graph: GraphDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Without the check a statement still reads no file, writes none, and loads nothing from the network."""
    monkeypatch.setattr(graph_module, "rewrite_statement", lambda statement: statement)
    before = state(tmp_path)
    for statement in [
        *HOSTILE[13:27:step],
        "RETURN size(range(1, 1000000000))",
        "RETURN repeat('a', 1000000000)",
    ]:
        with pytest.raises(StatementError):
            graph.run(statement.replace("FOLDER", str(tmp_path)), LIMITS)
        assert state(tmp_path) == before, statement


def test_ordinary_statements_run(graph: GraphDatabase) -> None:
    """Ordinary questions to a graph pass the check; rows and cells are cut to the limits."""
    for statement, rows in ALLOWED.items():
        assert graph.run(statement, LIMITS).rows == rows, statement
    cut = graph.run("MATCH (a:Person) RETURN a.name, a ORDER BY a.name", Limits(2, 1, 5.0))
    assert cut.truncated and cut.rows == (("A…", "{…"), ("B…", "{…"))
    assert '"name": "Ada"' in graph.run("MATCH (a {name: 'Ada'}) RETURN a", LIMITS).rows[0][0]


_TRICKS = [
    "' LOAD FROM x '", "\\' LOAD FROM x //", "\\\\' LOAD FROM x", "'' LOAD FROM x ''", "` LOAD FROM x `",
    "*/ LOAD FROM x /*", '" LOAD FROM x "', "\\", "'", '"', "`", "\n// LOAD", "\\u0027 LOAD",
]  # fmt: skip


def unquoted(statement: str) -> str:
    """Leave out the texts and names of a statement, as Ladybug reads them."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", " ", statement)


def test_values_stay_values() -> None:
    """Whatever stands inside a text or a name of a statement stays inside it when the statement is written anew."""
    escaped = (trick.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"') for trick in _TRICKS)
    shapes = ["'S'", '"S"', "`S`", "a.`S`", "{`S`: 'S'}", "['S', \"S\"]"]
    found = rewritten(rewrite_statement, "MATCH (a) RETURN {} AS x", shapes, [*_TRICKS, *escaped])
    assert len(found) > 40
    for written in found:
        assert not re.search(r"LOAD|FROM|['\"`\\;/]", unquoted(written)), written


_PIECES = r"""
    ' " ` `` '' \ \' \u0027 /* */ // ; : . .. | - * 1 ( ) [ ] { } x é count ſet AS RETURN CALL DELETE LOAD FROM
"""


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*_PIECES.split(), " ", "\n", "\u00a0"]), max_size=12).map("".join))
def test_no_other_word_gets_out(pieces: str) -> None:
    """Every statement that passes has only listed clauses and functions outside texts and names."""
    try:
        written = rewrite_statement(f"MATCH (a) RETURN {pieces}")
    except StatementError:
        return
    words = {word.upper() for word in re.findall(r"[^\W\d]\w*", unquoted(written))}
    assert words <= graph_module._KEYWORDS | {name.upper() for name in graph_module.FUNCTIONS} | {"EXISTS"}, (
        written
    )
    assert not re.search(r"['\"`\\;$]|//|/\*|[^\x00-\x7f]", unquoted(written)), written
