"""Own code beside the library that could stand in its place (docs/decisions/0035).

Encodings: parts of the Chinese guide and sentences of other languages, each decoded from an encoding that it is found
in; right is a text that comes out as it went in. Threads: what a fan-out promises, on concurrent.futures alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Barrier

from charset_normalizer import from_bytes
from harness import Row, at_least, interleaved, median_ratio, timed

from rag_kit.concurrency import fan_out
from rag_kit.indexing.readers.encodings import decode
from rag_kit.text.language import SIMPLIFIED, TRADITIONAL

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "zh"
SIZES = (12, 40, 200, 1000)  # characters of a text
KOREAN = "검색 증강 생성은 문서에서 관련 구절을 찾아 언어 모델에 함께 제공하는 방법이다. 출처가 답에 적힌다. "
JAPANESE = (
    "検索拡張生成は、文書から関連する箇所を見つけて、言語モデルに渡す方法です。出典が答えに書かれます。"
)
FRENCH = (
    "La génération augmentée par récupération cherche d'abord les passages utiles, puis répond à la demande. "
)
HUNG = 1.0
BRANCHES = 8


def samples(quick: bool) -> list[tuple[str, bytes]]:
    """Texts with the bytes that they are found as."""
    chinese = "".join(path.read_text(encoding="utf-8") for path in sorted(GUIDE.glob("*.md")))
    traditional = chinese.translate(dict(zip(map(ord, SIMPLIFIED), TRADITIONAL, strict=True)))
    sources = [
        (chinese, "gb18030"), (chinese, "utf-8"), (traditional, "big5hkscs"), (KOREAN * 60, "cp949"),
        (JAPANESE * 60, "cp932"), (JAPANESE * 60, "euc_jp"), (FRENCH * 60, "cp1252"),
    ]  # fmt: skip
    found = []
    for text, encoding in sources:
        for size in SIZES:
            step = max(size, len(text) // (10 if quick else 40))
            for start in range(0, len(text) - size, step):
                part = text[start : start + size].strip().replace("\r", "")
                raw = part.encode(encoding, "ignore")
                found.append((raw.decode(encoding), raw))
    return found


def right(read: Callable[[bytes], str], texts: list[tuple[str, bytes]]) -> int:
    """How many texts come out as they went in."""
    return sum(read(raw) == text for text, raw in texts)


def by_library(raw: bytes) -> str:
    """Decode by charset-normalizer."""
    best = from_bytes(raw).best()
    return "" if best is None else str(best)


def by_executor() -> None:
    """Branches with a time-out on an executor, which waits for those that hang."""
    with ThreadPoolExecutor(BRANCHES) as executor:
        wait([executor.submit(time.sleep, HUNG) for _ in range(BRANCHES)], timeout=HUNG / 10)


def nested_by_executor() -> None:
    """Inner branches that take no time, where outer ones hold all threads of the one executor until they give up."""
    executor, begun = ThreadPoolExecutor(BRANCHES), Barrier(BRANCHES)

    def outer() -> None:
        begun.wait()
        wait([executor.submit(int)], timeout=HUNG)

    wait([executor.submit(outer) for _ in range(BRANCHES)])


def nested_by_fan_out() -> None:
    """The same by the kit."""
    fan_out([lambda: fan_out([int] * BRANCHES).values] * BRANCHES)


def run(quick: bool = False) -> list[Row]:
    """The rows of ``make bench``."""
    texts = samples(quick)
    ours, theirs = right(decode, texts), right(by_library, texts)
    some = texts[:: max(1, len(texts) // 40)]
    times = interleaved({"ours": lambda: right(decode, some), "library": lambda: right(by_library, some)}, 3)
    task = [lambda: time.sleep(HUNG)] * BRANCHES
    late, _ = timed(lambda: fan_out(task, timeout=HUNG / 10, on_error="skip"))
    return [
        at_least("texts decoded right, ours / charset-normalizer", ours / theirs, 1.0,
                 f"{ours} and {theirs} of {len(texts)}"),
        at_least("time to decode, charset-normalizer / ours", median_ratio(times, "library", "ours"), 1.0),
        at_least("until branches that hang are given up, ThreadPoolExecutor / fan_out",
                 timed(by_executor)[0] / late, 5.0, f"{BRANCHES} branches of {HUNG:g} s, time-out {HUNG / 10:g} s"),
        at_least("until nested branches end, one ThreadPoolExecutor / fan_out",
                 timed(nested_by_executor)[0] / timed(nested_by_fan_out)[0], 5.0,
                 f"{BRANCHES} in each of {BRANCHES}; the executor's outer ones give up after {HUNG:g} s"),
    ]  # fmt: skip
