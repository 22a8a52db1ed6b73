"""``make studio`` says a true address, or what to do."""

import socket
import subprocess
import sys
from pathlib import Path

STUDIO = Path(__file__).resolve().parents[2] / "scripts" / "studio.py"


def test_a_port_that_is_taken_is_named_before_an_address_is_printed() -> None:
    """LangGraph would serve on another port than the one that was printed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        command = [sys.executable, str(STUDIO), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f"Port {port} is taken. Name another: make studio PORT={port + 1}\n"
