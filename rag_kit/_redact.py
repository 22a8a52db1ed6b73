"""Keys, tokens and passwords masked in messages that will be shown or stored."""

from __future__ import annotations

import re

_SECRETS = (
    # "Bearer abcdef123456"
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), r"\1 ***"),
    # "sk-abc12345", "hf_abc12345"
    (
        re.compile(
            r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|lsv2_pt|lsv2_sk|pat|key|token)[-_][A-Za-z0-9_*.-]{5,}[A-Za-z0-9_*]"
        ),
        "***",
    ),
    # user and password in "https://me:pw@host"; also in "https:/me:pw@host", as a path makes of it
    (re.compile(r"(://|:/(?=[^\s/@]*:))[^\s/@]+@"), r"\1***@"),
    # "api_key=abcd1234" and '"password": "abcd1234"', but not "id_key=abcd1234"
    (
        re.compile(
            # looks back for the beginning of the word: a chain of a-b-c-... must not be read again from each part
            r"(?i)(?<![a-z0-9])(?!(?<=\bid_)key)(api[_-]?key|key|token|secret|password|passwd|authorization)"
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


def error_text(error: BaseException, *, max_chars: int = 2000) -> str:
    """Return class and text of an exception as one line: secrets masked, controls escaped, cut to ``max_chars``.

    Example:
        >>> error_text(ValueError("not  let in:\\napi_key=abcd1234"))
        'ValueError: not let in: api_key=***'
    """
    while isinstance(error, BaseExceptionGroup):  # it says how many errors it holds, and not which
        error = error.exceptions[0]
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a class of somebody's own may fail in __str__
        text = "(its text cannot be read)"
    text = " ".join(text[: 2 * max_chars].split())  # a text may be of megabytes, and `redact` reads all of it
    text = redact(text)  # before it is cut, so that no half of a key is left
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    text = text if len(text) <= max_chars else f"{text[:max_chars]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
