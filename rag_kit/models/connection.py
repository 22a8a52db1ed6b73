"""Why an endpoint could not be reached: the deepest cause of a failed connection, and the proxy on the way."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from rag_kit.concurrency.bridge import linked_errors

from .redact import origin_of

PROXY = "rag_kit_proxy"
"""Key of a request's extensions: the proxy that the settings of its client name; only the kit's own clients have it."""

WEB_PAGE = "a web page (HTML)"


def is_tls_failure(error: BaseException) -> bool:
    """Tell whether a connection failed because of a certificate or missing TLS, so that a second try is useless."""
    cause = _deepest(error)
    return isinstance(cause, ssl.SSLError) and not _is_broken_off(cause)


def _is_broken_off(error: ssl.SSLError) -> bool:
    """Tell whether the other side closed the connection, as a load balancer does while its servers restart."""
    return isinstance(error, ssl.SSLEOFError) or error.reason == "UNEXPECTED_EOF_WHILE_READING"


def connection_problem(error: BaseException, place: str) -> str:
    """Explain a failed connection to a place by its deepest cause, with what to do; "" where nothing is known."""
    cause = _deepest(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted: {cause.verify_message}"
        if "mismatch" in cause.verify_message.lower():
            return f"{why} Use the host name that the certificate is made for"
        return f"{why}. Set SSL_CERT_FILE to a file with the certificate of the authority that signed it"
    if isinstance(cause, ssl.SSLError) and _is_broken_off(cause):
        return "the connection was closed during the TLS handshake, or after it"
    if isinstance(cause, ssl.SSLError):
        reason = (cause.reason or str(cause)).lower().replace("_", " ")
        return f"no TLS connection came about: {reason}. If the server speaks plain HTTP, write http:// for https://"
    if isinstance(cause, socket.gaierror):
        return f"its host name is not known: {cause.strerror}"
    if isinstance(cause, ConnectionRefusedError):
        return "nothing listens there: connection refused"
    text = str(cause) if cause is not None else ""
    broke_off = "without sending a response" in text or isinstance(cause, ConnectionResetError)
    if broke_off and "http://" in place:
        text = f"{text.rstrip('.')}. If it wants TLS, write https:// for http://"
    return text


def proxy_of(request: Any) -> str:
    """Return the proxy that a request went through, and the variable that named it; "" if there was none."""
    extensions = getattr(request, "extensions", None)
    if not isinstance(extensions, dict) or PROXY not in extensions:
        return ""
    if own := extensions[PROXY]:
        return f"{origin_of(own)} (OPENAI_PROXY or openai_proxy)"
    parts = urlsplit(str(request.url))
    if proxy_bypass(parts.netloc):
        return ""
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if proxy := os.environ.get(variable):
                return f"{origin_of(proxy)} ({variable})"
    return ""


def _deepest(error: BaseException) -> BaseException | None:
    """Return the cause that says most: the deepest with an ``errno``, else the deepest with a message, else None."""
    causes = linked_errors(error)
    system_errors = [cause for cause in causes if isinstance(cause, OSError) and cause.errno is not None]
    with_words = [cause for cause in causes[1:] if str(cause).strip()]
    return (system_errors or with_words or [None])[-1]
