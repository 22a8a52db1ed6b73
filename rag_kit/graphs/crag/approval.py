"""What a person's reply says about a query that is to leave for the web."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

MAX_WEB_QUERY = 400
_YES = "yes|yes please|y|true|ok|okay|sure|approve|approved|是|是的|同意|好|好的|可以|批准"
_NO = (
    "|no|nope|n|no thanks|no thank you|no way|please no|false|never|none|null|not|don't|do not|please don't"
    "|do not search|don't search|no search|stop|cancel|abort|deny|denied|decline|declined|refuse|refused|reject"
    "|rejected|ignore|skip|否|不|不是|不了|不要|不要了|不用|不用了|不必|不必了|不行|不可以|不需要|不允许|不批准"
    "|不同意|不搜|不要搜|不要搜索|别|别搜|别搜了|拒绝|取消|停止|驳回|算了"
)
_ALLOWED = "allowed: True, False or another query"


def approved(reply: Any) -> tuple[str | None, str]:
    """Read the reply, also as forms send it: a dict with ``approve``, ``query`` or both.

    Example:
        >>> approved("OK!"), approved(False), approved({"approve": True, "query": "fan start"})
        (('', ''), (None, 'a person refused'), ('fan start', ''))
    """
    if isinstance(reply, Mapping):
        if "approve" in reply:
            edited, why = approved(reply["approve"])
            if edited != "":  # no consent, whatever else the form says
                return None, why or f"approve was a text; {_ALLOWED}"
        elif "query" not in reply:
            return None, f"the reply holds neither approve nor query; {_ALLOWED}"
        reply = reply.get("query", True)
    if reply is True:
        return "", ""
    if reply is False or reply is None:
        return None, "a person refused"
    if not isinstance(reply, str):
        return None, f"the reply was a {type(reply).__name__}; {_ALLOWED}"
    # also as an input method writes them: ＮＯ, don’t
    word = unicodedata.normalize("NFKC", reply).replace("’", "'").strip().casefold().strip(" .,!?。")
    if word in _NO.split("|"):
        return None, "a person refused"
    return "" if word in _YES.split("|") else reply.strip(), ""


def one_line(text: str) -> str:
    """A query on one line, short enough for a search engine."""
    return " ".join(text.split())[:MAX_WEB_QUERY].strip()
