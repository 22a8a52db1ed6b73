"""kill -9 while an index is made: there is no index then, or a whole one, and making it again works."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from rag_kit.errors import IndexMissingError
from rag_kit.indexing import DocumentIndex

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")


def create(folder: Path) -> None:
    DocumentIndex.create(folder).discard()


def begin(folder: Path) -> None:
    """Die in the first transaction of a store, with pages of it in the file already."""
    folder.mkdir()
    connection = sqlite3.connect(folder / "store.sqlite3", isolation_level=None)
    connection.executescript("PRAGMA cache_size=1; BEGIN; CREATE TABLE meta (key, value);")
    connection.executemany("INSERT INTO meta VALUES (?, randomblob(5000))", [(n,) for n in range(50)])
    os.kill(os.getpid(), signal.SIGKILL)


def check(folder: Path) -> bool:
    """Whether there is an index; where there is none, one can be made."""
    try:
        DocumentIndex.open(folder).close()
    except IndexMissingError:
        create(folder)
        DocumentIndex.open(folder).close()
        return False
    return True


def test_a_kill_in_the_first_transaction_leaves_no_index(tmp_path: Path) -> None:
    """The journal that is left, which a reader cannot roll back, is no damage."""
    process = multiprocessing.get_context("fork").Process(target=begin, args=(tmp_path / "index",))
    process.start()
    process.join()
    assert (tmp_path / "index" / "store.sqlite3-journal").exists()
    assert not check(tmp_path / "index")


def test_what_a_kill_left_without_facts_is_no_index(tmp_path: Path) -> None:
    """Without the facts that `create` writes last there is no index, for readers and writers."""
    create(tmp_path / "index")
    with closing(sqlite3.connect(tmp_path / "index" / "store.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key != 'uid'")
    with pytest.raises(IndexMissingError):
        DocumentIndex.open(tmp_path / "index", mode="w")
    assert not check(tmp_path / "index")


def test_kills_at_any_moment(tmp_path: Path) -> None:
    """A reader finds no index or a whole one; a second create finds the same."""
    chance, fork = random.Random(20261123), multiprocessing.get_context("fork")
    duration = 0.0
    for number in range(21):
        process = fork.Process(target=create, args=(tmp_path / str(number),))
        started = time.monotonic()
        process.start()
        if number:
            time.sleep(chance.random() * duration)
            process.kill()
        process.join()
        duration = duration or time.monotonic() - started
        assert check(tmp_path / str(number)) or number
