"""Serve an index to assistants by the Model Context Protocol (MCP).

It is served on standard input and output, or with --http on loopback. Tools: search, ask, read_passage; the documents
are resources. What may be seen is for --filter to say: no tool takes a filter.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
from typing import TYPE_CHECKING

from rag_kit.cli.exits import terminate
from rag_kit.cli.options import ANSWER, PIPELINE, add_options, open_graph, run_context
from rag_kit.cli.output import STATUS, hint
from rag_kit.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from rag_kit.cli.mcp_server import IndexServer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mcp``."""
    add_options(parser, *PIPELINE, *ANSWER)
    parser.set_defaults(deadline=300.0)
    text = "serve streamable HTTP at http://127.0.0.1:PORT/mcp; 0 takes a free port"
    parser.add_argument("--http", type=int, metavar="PORT", help=text)


def run(arguments: argparse.Namespace) -> None:
    """Serve until the client leaves, or until Ctrl-C."""
    try:
        from rag_kit.cli.mcp_server import IndexServer
    except ImportError:
        raise MissingExtraError("mcp", "rag-kit mcp") from None
    STATUS.show("loading ...")
    with open_graph(arguments, prompts=arguments.prompts) as (index, retriever, graph, _):
        from rag_kit.concurrency.bridge import PoolExecutor
        from rag_kit.graphs import as_tool

        answer = as_tool(graph, name="ask", context=run_context(arguments))
        server = IndexServer(index, retriever, answer, arguments.filter, arguments.k)
        STATUS.clear()
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(PoolExecutor())
            if arguments.http is None:
                # the handler of asyncio would wait for the thread that reads standard input
                signal.signal(signal.SIGINT, terminate)
                runner.run(server.run_stdio_async())
            else:
                runner.run(_serve_http(server, arguments.http))


async def _serve_http(server: IndexServer, port: int) -> None:
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
