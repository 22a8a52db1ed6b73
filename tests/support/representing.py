"""A model that represents passages, as a script for ``OpenAIServer`` or ``Scripted``; and an ingest to be killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

PASSAGE = re.compile(r'<passage id="(\d+)"[^>]*>(.*?)</passage>', re.DOTALL)


def texts_for(task: str, passage: str) -> list[str]:
    """Return the scripted representation of a passage."""
    word = passage.split()[-1].strip(".")
    return {
        "represent_summary": [f"In short: {word}."],
        "represent_questions": [f"Who asks about {word}?", f"What is {word}?"],
        "represent_keywords": [word, "synonym"],
        "represent_qa": [f"What is it? It is {word}."],
        "represent_tags": [f"topic: {word}", f"Place: {word}", "tenant: stolen"],
        "represent_translation": [f"译文：{word}"],
        "represent_situation": [],
    }[task]


def reply(prompt: str, texts: Callable[[str, str], list[str]] = texts_for) -> str:
    """The reply to a prompt."""
    task = re.search(r"<task>(\w+)</task>", prompt)[1]
    entries = [{"id": int(n), "texts": texts(task, text)} for n, text in PASSAGE.findall(prompt)]
    return json.dumps({"passages": entries}, ensure_ascii=False)


def killed_after(calls: int, server: Any, module: str, *arguments: Any) -> Callable[[], Any]:
    """Run a module until it has made so many calls of a model, and kill it; gives what runs it again, to its end."""
    command = [sys.executable, "-m", module, *map(str, arguments), server.url]
    tests = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    with subprocess.Popen(command, env=environment) as process:
        while len(server.chats) < calls and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    return partial(subprocess.run, command, env=environment, check=True, timeout=120)
