"""Keys, tokens and passwords masked in messages that will be shown or stored."""

from __future__ import annotations

import re

_SECRETS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), r"\1 ***"),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|lsv2_pt|lsv2_sk)[-_][A-Za-z0-9_*-]{6,}"), "***"),
    (re.compile(r"(://)[^\s/@]+@"), r"\1***@"),
    (
        re.compile(
            r"(?i)\b(?!id_key)((?:[a-z0-9]+[_-])*(?:api[_-]?key|key|token|secret|password|passwd|authorization))"
            r"(['\"]?\s*[=:]\s*['\"]?)[^\s'\",;&}]{4,}"
        ),
        r"\1\2***",
    ),
)


def redact(text: str) -> str:
    """Mask what looks like a key, token or password in a message that will be shown or stored.

    Example:
        >>> redact("401 for https://me:pw@host/v1 with api_key=abcd1234 and Bearer abcdef123456")
        '401 for https://***@host/v1 with api_key=*** and Bearer ***'
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
