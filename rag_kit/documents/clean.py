"""Hostile text made inert: control characters and invisible ones are shown as escapes."""

from __future__ import annotations

import re

# C0 and C1 controls (without tab and newline), soft hyphen, Arabic letter mark, Mongolian vowel separator,
# zero-width characters and bidirectional marks, line and paragraph separators, bidirectional embeddings and
# isolates, invisible operators, fillers that show as nothing, byte-order mark, interlinear annotation,
# musical and shorthand format controls, tag characters, lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    r"""Make a text safe to show: nothing in it can move the cursor, hide, or turn the reading order.

    Control characters except newline and tab (so also ANSI escapes), bidirectional and zero-width characters,
    tag characters and lone surrogates become visible escapes such as ``\x1b`` and ``\u202e``. Everything else
    stays.

    Example:
        >>> print(clean_text("red \x1b[31m, \u202eturned"))
        red \x1b[31m, \u202eturned
    """
    return UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
