"""How surely passages help, measured beside many others."""

from __future__ import annotations

import sys

from rag_kit.text.evidence.sentences import PassageText
from rag_kit.text.evidence.usefulness import measure


def test_many_passages_take_their_number_not_its_square() -> None:
    """Each added passage costs as much as the one before it; thousands held up a run for a minute."""

    def steps(count: int) -> int:
        lines = 0

        def counted(*_: object) -> object:
            nonlocal lines
            lines += 1
            return counted

        texts = [PassageText(number, f"The fan {number} starts at noon.") for number in range(count)]
        before = sys.gettrace()
        sys.settrace(counted)  # type: ignore[arg-type]
        try:
            measure("When does the fan start?", texts)
        finally:
            sys.settrace(before)
        return lines

    steps(2)  # what is loaded once
    assert steps(400) < 2.5 * steps(200)
