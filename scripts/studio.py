"""``make studio``: the LangGraph server on this machine, with nothing sent anywhere."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Settings under which the server runs without a network.
OFFLINE = {
    "LANGSMITH_TRACING": "false",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
}


def is_taken(port: int) -> bool:
    """Whether a program listens on a port of this machine; then LangGraph takes another one."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> int:
    """Make sure there is an index to ask, then serve the graphs of langgraph.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=2024)
    parser.add_argument(
        "--browser", action="store_true", help="open Studio's page (it is on the public internet)"
    )
    arguments = parser.parse_args()
    if is_taken(arguments.port):
        print(
            f"Port {arguments.port} is taken. Name another: make studio PORT={arguments.port + 1}",
            file=sys.stderr,
        )
        return 1
    index = os.environ.setdefault("RAG_KIT_INDEX", str(ROOT / ".demo" / "index"))
    if "://" not in index and not Path(index).exists():
        from rag_kit.cli.main import main as rag_kit

        if code := rag_kit(["ingest", str(ROOT / "docs" / "guide"), "--index", index]):
            return code
    print(
        f"Serving the graphs on http://127.0.0.1:{arguments.port}\n"
        f"Studio: https://smith.langchain.com/studio/?baseUrl=http://127.0.0.1:{arguments.port}",
        flush=True,
    )
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--host", "127.0.0.1"]
    command += ["--port", str(arguments.port), "--no-reload"]
    if not arguments.browser:
        command.append("--no-browser")
    environment = {**OFFLINE, **os.environ, "LANGGRAPH_NO_VERSION_CHECK": "true"}
    try:
        return subprocess.call(command, cwd=ROOT, env=environment)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
