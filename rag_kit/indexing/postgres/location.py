"""Place of an index: a schema of a PostgreSQL database, named by a URL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.store import RemoteLocation

# what is not percent-encoded would be cut in the middle of a password, and its end be shown
_URL = re.compile(
    r"""postgres(?:ql)?://
    (?:(?P<user>[^:@/?]*)(?P<password>:[^@/?]*)?@)?
    (?P<server>(?:[^:@/?\[]|\[[^]@/?]*]|:\d+)*)  # hosts, IPv6 in brackets, ports
    (?P<database>(?:/[^@?]*)?)
    (?:\?(?P<query>.*))?""",
    re.I | re.S | re.X,
)
_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,59}")
_SECRET_KEYS = ("password", "sslpassword", "oauth_client_secret")
# the password of "://ann:secret@", or the value of "&sslpassword=secret"
_SECRET_VALUE = re.compile(r"://[^/?@]*?:([^/?@]+)@|[?&][^=&]*(?:word|secret)=([^&]+)")
_DEFAULTS = {"index": "rag_kit", "tenant": ""}


@dataclass(frozen=True)
class PostgresLocation(RemoteLocation):
    """Location of an index in a database."""

    url: str  # names it without a password
    conninfo: str = field(repr=False, compare=False)  # for psycopg; may hold a password, so never to be shown
    name: str = "rag_kit"  # of the index, which is that of its schema
    tenant: str = ""  # whose rows

    def __str__(self) -> str:
        return self.url

    def __reduce__(self) -> tuple[Any, ...]:
        return location_of, (self.url,)  # without the password, which libpq finds in PGPASSWORD or ~/.pgpass

    def without_secrets(self, text: str) -> str:
        """Replace the URL's passwords in a text, such as an error of the server's, by ``***``."""
        for password, parameter in _SECRET_VALUE.findall(self.conninfo):
            secret = password or parameter
            text = text.replace(secret, "***").replace(unquote(secret), "***")
        return text


_NO_URL = (
    "What was given is neither a folder nor the URL of an index. Write "
    "postgresql://USER@HOST:PORT/DATABASE?index=NAME&tenant=NAME, with @ : / ? # % in a user, password or "
    "database as %40 %3A %2F %3F %23 %25."
)


def location_of(place: str) -> PostgresLocation:
    """Return the location that a URL names; raise InvalidInputError for anything else.

    Example:
        >>> print(location_of("postgresql://ann:secret@db.local/docs?index=handbook&tenant=a"))
        postgresql://ann@db.local/docs?index=handbook&tenant=a
    """
    url = _URL.fullmatch(place)
    if url is None:
        raise InvalidInputError(_NO_URL)
    query = url["query"] or ""
    try:
        # a plus sign is itself; strict: with bytes that are no UTF-8 replaced, two tenants could have one name
        query_as_is = query.replace("+", "%2B")
        pairs = parse_qsl(query_as_is, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:
        raise InvalidInputError(_NO_URL) from None
    own = _DEFAULTS | {key: value for key, value in pairs if key in _DEFAULTS}  # index and tenant
    if not _NAME.fullmatch(own["index"]):
        raise InvalidInputError(
            f"index={own['index'][:80]!r} cannot be the name of an index: it has small letters a-z, digits and _, at "
            "most 60, does not begin with a digit, nor with pg_."
        )
    is_ambiguous = any(own.get(key, value) != value for key, value in pairs)  # as in "tenant=a&tenant=b"
    if is_ambiguous or "\0" in own["tenant"]:
        raise InvalidInputError("The URL of an index has one index= and one tenant=, without NUL.")
    # each "key=value" as it was given, percent-encoded, with its decoded key
    parameters = list(zip(query.split("&"), (key for key, _ in pairs), strict=False))
    shown = "&".join(parameter for parameter, key in parameters if key not in _SECRET_KEYS)
    for_libpq = "&".join(parameter for parameter, key in parameters if key not in _DEFAULTS)
    user = login = ""
    if url["user"] is not None:
        user, login = f"{url['user']}@", f"{url['user']}{url['password'] or ''}@"
    server = url["server"] + url["database"]
    return PostgresLocation(
        url=f"postgresql://{user}{server}" + (f"?{shown}" if shown else ""),
        conninfo=f"postgresql://{login}{server}" + (f"?{for_libpq}" if for_libpq else ""),
        name=own["index"],
        tenant=own["tenant"],
    )
