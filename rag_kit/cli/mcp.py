"""``rag-kit mcp``: an index as an MCP server, for assistants that search it and ask it by themselves."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
from typing import Any

from rag_kit.cli.exits import terminate
from rag_kit.cli.opening import open_graph, run_context
from rag_kit.cli.options import ANSWER, PIPELINE, add_options, parse_filter
from rag_kit.cli.output import STATUS, hint
from rag_kit.errors import InvalidInputError, MissingExtraError

DESCRIPTION = """Serve an index by the Model Context Protocol, on standard input and output, or with --http on
loopback. Tools: search, ask, read_passage; the documents are resources. What may be seen is for --filter to say: no
tool takes a filter."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mcp``."""
    add_options(parser, *PIPELINE, *ANSWER)
    parser.set_defaults(deadline=300.0)
    what = "serve streamable HTTP at http://127.0.0.1:PORT/mcp; 0 takes a free port"
    parser.add_argument("--http", type=int, metavar="PORT", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Serve until the client leaves, or until Ctrl-C.

    Raises:
        MissingExtraError: The extra ``mcp`` is not installed.
        InvalidInputError: The port cannot be used.
    """
    try:
        from rag_kit.cli.mcp_server import IndexServer
    except ImportError:
        raise MissingExtraError("mcp", "rag-kit mcp") from None
    STATUS.show("loading ...")
    with open_graph(arguments, prompts=arguments.prompts) as (index, retriever, graph, _):
        from rag_kit.concurrency.pool import PoolExecutor
        from rag_kit.graphs import as_tool

        ask = as_tool(graph, name="ask", context=run_context(arguments))
        server = IndexServer(index, retriever, ask, parse_filter(arguments.filter), arguments.k).server()
        STATUS.clear()
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(PoolExecutor())
            runner.run(_over_stdio(server) if arguments.http is None else _over_http(server, arguments.http))


async def _over_stdio(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    signal.signal(signal.SIGINT, terminate)  # asyncio's own waits for the thread that reads standard input
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _over_http(server: Any, port: int) -> None:
    """Serve on loopback only; requests whose host or origin is another one are refused (DNS rebinding)."""
    import uvicorn

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"--http {port}: {error}; give a free port, or 0 for any.") from None
    with listening:
        hint(f"serving http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        app = server.streamable_http_app(host="127.0.0.1")
        await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listening])
