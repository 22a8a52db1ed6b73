"""Notes of a run, and the log of outages."""

from __future__ import annotations

import asyncio
import logging

import pytest

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.notes import Notes, Outages, use_notes, write_note


def test_notes_of_branches_reach_the_block_around_them() -> None:
    """On threads and on the event loop; each text once, in the order of writing."""
    with use_notes() as outer, use_notes() as inner:
        write_note("first")
        fan_out([lambda: write_note("second", unsearched=True), lambda: write_note("first")])

        async def branch() -> None:
            write_note("third")

        asyncio.run(_in_tasks(branch))
    assert inner.texts == outer.texts == ["first", "second", "third"]
    assert outer.unsearched == ["second"]


async def _in_tasks(branch: object) -> None:
    await afan_out([branch, branch])  # type: ignore[list-item]


def test_without_a_collector_a_note_is_dropped() -> None:
    """Writing needs no block around it, and nothing is kept from one block to the next."""
    write_note("lost")
    with use_notes(Notes()) as notes:
        pass
    assert notes.texts == []


def test_an_outage_is_logged_when_it_begins(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once while it lasts, again after the part has worked, and at most once a minute."""
    clock = [0.0]
    monkeypatch.setattr("rag_kit.concurrency.notes.time.monotonic", lambda: clock[0])
    outages, log = Outages(), logging.getLogger("rag_kit.test")

    def warned() -> int:
        outages.failed(log, "dense", "ConnectionError")
        return sum(record.levelno == logging.WARNING for record in caplog.records)

    with caplog.at_level(logging.DEBUG, "rag_kit.test"):
        assert [warned(), warned()] == [1, 1]
        clock[0] = 61.0
        assert warned() == 1  # the outage that was logged goes on
        outages.worked("dense")
        assert warned() == 2
        outages.worked("dense")
        assert warned() == 2  # within the minute
        clock[0] = 130.0
        outages.worked("dense")
        assert warned() == 3
