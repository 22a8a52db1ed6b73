"""Modules of the library that cannot be imported without an extra are not collected where it is not installed."""

from importlib.util import find_spec

_OF_PSYCOPG = ("connection", "keyword", "keyword_search", "store", "vectors")
collect_ignore = (
    [] if find_spec("psycopg_pool") else [f"rag_kit/indexing/postgres/{name}.py" for name in _OF_PSYCOPG]
)
if not find_spec("mcp"):
    collect_ignore.append("rag_kit/cli/mcp_server.py")
