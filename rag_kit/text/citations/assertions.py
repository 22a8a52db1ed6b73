"""A statement cut into the assertions that it joins, each of which a passage may make in another sentence."""

from __future__ import annotations

import re

from rag_kit.text.analysis import content_words
from rag_kit.text.language import HAN

_MIN_WORDS = 2  # content words of an assertion
_VERB = (
    r"(?:is|are|was|were|has|have|had|can|cannot|could|may|might|must|will|shall|should|does|do|did|it|they|its|their"
    r"|there|this|these)"
)
_CUT = re.compile(
    rf"(?:，|；|(?<=[{HAN}%）)\w])[,;](?=[{HAN}]))"
    rf"|;\s|,\s(?:and|but|while|whereas)\s|\sand\s(?={_VERB}\b)|\s(?:while|whereas)\s"
)
# a piece that only says when, if or why another one holds
_DEPENDENT = re.compile(
    r"\s*(?:如|若|只[要有]|除|因|由于|虽|尽管|即[使便]|哪怕|无论|不论|根据|按|依|从|自|在|对于?|当|凡"
    r"|(?:if|when|unless|once|after|before|because|since|as|where|although|though|provided|until)\b)"
    r"|.*(?:[时后前外内中下的]|的话|以来|期间)$",
    re.IGNORECASE | re.DOTALL,
)


def assertions(statement: str) -> list[str]:
    """Cut a statement at the commas and conjunctions that join whole assertions.

    A piece that only says when, if or why something holds stays with the next one, the last one with that before.

    Example:
        >>> assertions("The tank holds 300 litres, and the pump is blue.")
        ['The tank holds 300 litres', 'the pump is blue.']
        >>> assertions("如果下雨，比赛改期，门票仍然有效。")
        ['如果下雨，比赛改期', '门票仍然有效。']
    """
    found: list[str] = []
    # where the assertion begins, the one before it, and the piece that it ends with
    start = before = piece_start = 0
    for cut in [*_CUT.finditer(statement), None]:
        end = cut.start() if cut else len(statement)
        is_dependent = _DEPENDENT.match(statement[piece_start:end])
        is_whole = not is_dependent and len(content_words(statement[start:end])) >= _MIN_WORDS
        piece_start = cut.end() if cut else end
        if is_whole or (cut is None and not found):
            found.append(statement[start:end])
            start, before = piece_start, start
        elif cut is None:
            found[-1] = statement[before:]
    return found
