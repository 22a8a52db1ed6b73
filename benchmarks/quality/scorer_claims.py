"""Claims with evidence and a label that people gave: wice, scifact and rgb."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared import lines


@dataclass(frozen=True)
class Claim:
    """A claim with a text that may support it.

    Attributes:
        id: Unique.
        set: Name of the set.
        kind: ``supported``, or how it is not.
        text: The claim.
        evidence: The text.
        group: What is drawn as one in a resample: the claim, whatever it is laid beside.
    """

    id: str
    set: str
    kind: str
    text: str
    evidence: str
    group: str


def load(data: Path) -> list[Claim]:
    """All claims of both sets below a folder."""
    return [*_wice(data / "wice"), *_scifact(data / "scifact")]


def load_rgb(data: Path) -> list[Claim]:
    """Each answer of rgb, English and Chinese, with passages that say it and with those that were made to deny it."""
    kinds = {"positive": "supported", "positive_wrong": "contradicted"}
    return [
        Claim(
            f"{name} {record['id']} {kind} {number}",
            "rgb",
            kinds[kind],
            _said(record),
            text,
            f"{name} {record['id']}",
        )
        for name in ("en_fact", "zh_fact")
        for record in lines(data / "rgb" / f"{name}.jsonl")
        for kind in kinds
        for number, text in enumerate(record[kind])
    ]


def _said(record: dict[str, Any]) -> str:
    """Question and first accepted answer as one statement."""
    answer = record["answer"]
    while isinstance(answer, list):
        answer = answer[0]
    return f"{record['query']} {answer}"


def _wice(folder: Path) -> Iterator[Claim]:
    kinds = {
        "supported": "supported",
        "partially_supported": "partly supported",
        "not_supported": "not supported",
    }
    for number, record in enumerate(lines(folder / "claim_dev.jsonl.gz")):
        name = f"wice {number}"
        yield Claim(
            name, "wice", kinds[record["label"]], record["claim"], "\n".join(record["evidence"]), name
        )


def _scifact(folder: Path) -> Iterator[Claim]:
    """Each claim with its abstract; where it is supported, once more with an abstract about something else."""
    texts = {
        record["_id"]: f"{record['title']}\n{record['text']}" for record in lines(folder / "corpus.jsonl.gz")
    }
    draw = random.Random(0)
    ids = sorted(texts)
    kinds = {"SUPPORT": "supported", "CONTRADICT": "contradicted", "": "cited, not said"}
    for number, record in enumerate(lines(folder / "claims.jsonl")):
        group = f"scifact {record['claim_id']}"
        about = record["doc_id"] or record["cited_doc_ids"][0]
        kind = kinds[record["label"]]
        yield Claim(f"scifact {number}", "scifact", kind, record["claim"], texts[about], group)
        if kind == "supported":
            other = draw.choice([each for each in draw.sample(ids, 8) if each not in record["cited_doc_ids"]])
            yield Claim(
                f"scifact {number} other",
                "scifact",
                "unrelated abstract",
                record["claim"],
                texts[other],
                group,
            )
