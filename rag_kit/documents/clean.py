"""Hostile text made inert: control characters and invisible ones are shown as escapes; keys are masked."""

from __future__ import annotations

import re

# C0 and C1 controls (without tab and newline), soft hyphen, Arabic letter mark, Mongolian vowel separator,
# zero-width characters and bidirectional marks, line and paragraph separators, bidirectional embeddings and
# isolates, invisible operators, fillers that show as nothing, byte-order mark, interlinear annotation,
# musical and shorthand format controls, tag characters, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
_SECRETS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), r"\1 ***"),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|lsv2_pt|lsv2_sk)[-_][A-Za-z0-9_*-]{6,}"), "***"),
    (re.compile(r"(://)[^\s/@]+@"), r"\1***@"),
    (
        re.compile(
            r"(?i)\b((?:[a-z0-9]+[_-])*(?:api[_-]?key|key|token|secret|password|passwd|authorization))"
            r"(['\"]?\s*[=:]\s*['\"]?)[^\s'\",;&}]{4,}"
        ),
        r"\1\2***",
    ),
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
    return _UNSAFE.sub(_escape, text)


def redact(text: str) -> str:
    """Mask what looks like a key, token or password in a message that will be shown or stored.

    Example:
        >>> redact("401 for https://me:pw@host/v1 with api_key=abcd1234 and Bearer abcdef123456")
        '401 for https://***@host/v1 with api_key=*** and Bearer ***'
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
