"""The conversational graph behind a plain HTTP server; index, threads and facts about users in one PostgreSQL.

    python -m graphs.server setup postgresql://user@host/db     # once: ingest makes the index, this the other tables
    python -m graphs.server 8001 postgresql://user@host/db      # as many as you like, on any machine
    curl -H 'X-User: ann' -d '{"thread": "1", "question": "..."}' http://127.0.0.1:8001

The index is the one that RAG_KIT_INDEX names. No server keeps anything, so a thread goes on on any of them; a request
without a question takes up a run that was cut off, after the last step that it finished. X-User is set by the proxy
that signs users in; never take it from a browser. Nobody reaches another user's threads.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.errors import EmptyInputError
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from graphs.parts import llm, retriever
from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_conversational_rag

MAX_REQUEST = 100_000  # bytes


def main() -> None:
    """Make the tables of threads and facts, or serve until the process is ended."""
    command, url = sys.argv[1:]
    # LangGraph's classes need these settings of a connection
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, kwargs=settings, min_size=1, max_size=10) as pool:
        saver, store = PostgresSaver(pool), PostgresStore(pool)
        if command == "setup":
            saver.setup()
            store.setup()
            return
        graph = build_conversational_rag(retriever(), llm(), remember=True, checkpointer=saver, store=store)
        with ThreadingHTTPServer(("127.0.0.1", int(command)), make_handler(graph)) as server:
            print(f"http://127.0.0.1:{server.server_port}", flush=True)
            server.serve_forever()


def make_handler(graph: Any) -> type[BaseHTTPRequestHandler]:
    """Make the class whose objects answer the requests, each on a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer with question, answer, status and citations, or with what is wrong."""
            try:
                code, reply = 200, answer(graph, self.headers["X-User"], self.read_body())
            except (InvalidInputError, EmptyInputError) as error:
                code, reply = 400, {"error": str(error)}
            except Exception as error:  # noqa: BLE001 - one failed run ends no server
                self.log_error("%r", error)
                code, reply = 500, {"error": "The run failed; the server's log says why."}
            data = json.dumps(reply, ensure_ascii=False).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def read_body(self) -> dict[str, Any]:
            """Return the JSON object in the request."""
            size = self.headers.get("Content-Length", "")
            if size.isdecimal() and int(size) <= MAX_REQUEST:
                try:
                    body = json.loads(self.rfile.read(int(size)))
                except ValueError:
                    body = None
                if isinstance(body, dict):
                    return body
            raise InvalidInputError(f"Send a JSON object of at most {MAX_REQUEST:,} bytes.")

    return Handler


def answer(graph: Any, user: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """Run the graph in the user's thread."""
    thread, question = body.get("thread"), body.get("question")
    if not user:
        raise InvalidInputError("The header X-User is missing.")
    if not isinstance(thread, str) or not 0 < len(thread) <= 128:
        raise InvalidInputError("thread must be a text of 1 to 128 characters.")
    config: RunnableConfig = {"configurable": {"thread_id": json.dumps([user, thread])}}
    # without a question LangGraph takes up the run that was cut off
    input = None if question is None else {"question": question}
    result = graph.invoke(input, config, context={"user_id": user})
    return {key: result.get(key) for key in ("question", "answer", "status", "citations")}


if __name__ == "__main__":
    main()
