"""The append-only log: what was appended is read again, whatever a kill cut off."""

import os
from pathlib import Path

import pytest

from rag_kit.documents.files import AppendLog, read_log
from rag_kit.errors import InvalidInputError, LockedError


@pytest.mark.parametrize("half", [b'{"id": 3', b"x" * 200_000])
def test_a_line_cut_off_is_dropped_and_the_next_one_begins_anew(tmp_path: Path, half: bytes) -> None:
    """After a kill in the middle of a line, whole lines stay and later ones do not run into the half one."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"id": 1}\n' + half)
    assert [record for _, record in read_log(path)] == [{"id": 1}, None]
    with AppendLog(path) as log:
        log.append([{"id": "\ud800 half a character"}])
    assert [record for _, record in read_log(path)] == [{"id": 1}, {"id": "\ud800 half a character"}]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """A second log is refused until the first is closed; a record that is no JSON changes nothing."""
    path = tmp_path / "below" / "log.jsonl"
    with AppendLog(path) as log:
        with pytest.raises(LockedError, match="another run"):
            AppendLog(path)
        with pytest.raises(ValueError):
            log.append([{"id": 1}, {"id": float("nan")}])
    with AppendLog(path) as log:
        log.append([{"id": 2}])
    assert list(read_log(path)) == [(1, {"id": 2})]
    with pytest.raises(InvalidInputError, match="cannot be written"):
        AppendLog(path / "below a file.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_full_disk_is_said_and_lines_stay_whole(tmp_path: Path) -> None:
    """A line of which the disk took a part is cut off before the next one."""
    import resource

    log = AppendLog(tmp_path / "log.jsonl")
    log.append([{"n": 1}])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        with pytest.raises(InvalidInputError, match="cannot be written"):
            log.append([{"text": "x" * 1000}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append([{"n": 2}])
    log.close()
    assert [record for _, record in read_log(tmp_path / "log.jsonl")] == [{"n": 1}, {"n": 2}]
