"""kill -9 of an ingest at random moments, then the same command: the index of an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.ingest_driver import IngestDriver

KILLS = int(os.environ.get("RAG_KIT_KILLS", "30"))
SEED = int(os.environ.get("RAG_KIT_SEED", "20261121"))


def write_corpus(folder: Path) -> None:
    """Some dozens of small files, English and Chinese, one of them empty."""
    folder.mkdir()
    for number in range(16):
        sections = [
            f"## Section {part}\n\nPump {number} runs at a temperature of {number * part} degrees. "
            f"The valve pressure is {part + number}. Item {part} of the list is number {number}."
            for part in range(5)
        ]
        (folder / f"pump{number:02}.md").write_text(f"# Pump {number}\n\n" + "\n\n".join(sections))
    for number in range(4):
        text = "。".join(f"第{part}号阀门的压力是{number * part}巴，温度很高" for part in range(12))
        (folder / f"阀门{number}.txt").write_text(text + "。", encoding="utf-8")
    (folder / "list.csv").write_text("name,value\n" + "\n".join(f"item {i},{i * i}" for i in range(60)))
    (folder / "page.html").write_text(
        "<h1>Page</h1>" + "".join(f"<p>Section three, {i}.</p>" for i in range(9))
    )
    (folder / "empty.txt").write_text("")


def change_corpus(folder: Path) -> None:
    """Files changed, added and removed."""
    for number in (1, 5, 9):
        path = folder / f"pump{number:02}.md"
        path.write_text(path.read_text().replace("Section 2", "Section two, changed") + "\n\nA new end.\n")
    (folder / "pump03.md").unlink()
    (folder / "阀门1.txt").unlink()
    (folder / "new.md").write_text("# New\n\nA valve of its own, item nine of the list.\n")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")
def test_killed_and_run_again_gives_the_undisturbed_index(tmp_path: Path) -> None:
    """Half of the kills hit the first ingest, half an update with changed, new and vanished files."""
    chance = random.Random(SEED)
    docs = tmp_path / "docs"
    write_corpus(docs)
    killed = 0
    with IngestDriver() as driver:
        for phase, kills in (("first", KILLS - KILLS // 2), ("update", KILLS // 2)):
            if phase == "update":
                change_corpus(docs)
            base = tmp_path / "undisturbed-first" if phase == "update" else None
            good = tmp_path / f"undisturbed-{phase}"
            durations = []
            for _ in range(2):  # the first one also fills caches of the system
                durations.append(_fresh(driver, docs, good, base)["seconds"])
            expected = driver.dump(good)
            assert "ok:" in expected["verify"] and "NOT" not in expected["verify"], expected["verify"]
            assert all(expected["dense"]) and all(expected["keyword"])
            for number in range(kills):
                moment = chance.random() * durations[-1]
                work = tmp_path / f"{phase}-{number}"
                if base is not None:
                    shutil.copytree(base, work)
                done = driver.run(docs, work, kill_after=moment, prune=True)
                killed += done["status"] == -9
                if done["status"] == 0:  # the machine is quicker by now
                    durations.append(done["seconds"])
                left = sorted(path.name for path in work.iterdir()) if work.is_dir() else []
                print(
                    f"{phase} {number}: kill at {moment:.3f} s, status {done['status']}, left {left}",
                    file=sys.stderr,
                )
                assert driver.run(docs, work, prune=True)["status"] == 0
                _same(driver.dump(work), expected, f"{phase}, kill {number} at {moment:.3f} s, seed {SEED}")
                shutil.rmtree(work)
    print(f"{killed} of {KILLS} kills came before the end; seed {SEED}", file=sys.stderr)
    assert killed >= KILLS * 0.6, "most of the kills must hit; is the machine's speed jumping?"


def _fresh(driver: IngestDriver, docs: Path, index: Path, base: Path | None) -> Any:
    shutil.rmtree(index, ignore_errors=True)
    if base is not None:
        shutil.copytree(base, index)
    done = driver.run(docs, index, prune=True)
    assert done["status"] == 0
    return done


def _same(found: Any, expected: Any, when: str) -> None:
    assert found is not None, when
    for part in expected:
        assert found[part] == expected[part], f"{part} differs: {when}"
