"""Do structured calls end and fit? All prompts with a schema, in both languages, asked of SmolLM2 by JSON schema.

    python benchmarks/quality/quality_structured_calls.py [--calls 300] [--first 0] [--timeout 300] [--out FILE]

The model runs on loopback (the extra ``slow``), four requests at once: 300 calls take over an hour. ``--first`` goes on
where an earlier run ended. Nothing is asserted of what it says. Counted are the calls that gave an object of their
schema, and the replies that were longer than their bound.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from langchain_core.callbacks import BaseCallbackHandler
from support.small_model import SLOTS, VALUES, serve, weights

from rag_kit.concurrency import fan_out
from rag_kit.models import chat_model, structured_call
from rag_kit.prompts import load_prompt
from rag_kit.prompts.library import PromptLibrary

QUESTIONS = {
    "en": [
        "When does the pump start?",
        "How long is the warranty of a pump?",
        "Is the pump older than 2024?",
    ],
    "zh": ["保修期是多少年？", "水泵在多少度启动？", "水泵是2024年以后的吗？"],
}


class Replies(BaseCallbackHandler):
    """The bound and the length in tokens of each reply, and how it was asked for."""

    def __init__(self) -> None:
        self.bounds: dict[Any, int] = {}
        self.forms, self.lengths = Counter[str](), list[tuple[int, int]]()

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **kwargs: Any) -> None:
        """Note the request."""
        sent = kwargs.get("invocation_params") or {}
        self.forms[(sent.get("response_format") or {}).get("type", "text")] += 1
        bounds = (sent.get("extra_body") or {}).get("max_tokens"), sent.get("max_tokens")
        self.bounds[run_id] = bounds[0] or bounds[1] or sent.get("max_completion_tokens") or 0

    def on_llm_end(self, response: Any, *, run_id: Any, **kwargs: Any) -> None:
        """Note the length of the reply."""
        usage = response.generations[0][0].message.usage_metadata or {}
        self.lengths.append((self.bounds.pop(run_id), usage.get("output_tokens", 0)))


def measure(model: Any, calls: int, timeout: float, first: int = 0) -> dict[str, Any]:
    """Make so many calls from the first on, one prompt after the other."""
    prompts: list[Any] = [load_prompt(name, language=tongue) for name, tongue in PromptLibrary().entries()]
    prompts = [prompt for prompt in prompts if prompt.output_schema is not None]
    replies, titles, jobs = Replies(), [], []
    for number in range(first, first + calls):
        prompt = prompts[number % len(prompts)]
        question = QUESTIONS[prompt.metadata["language"]][number // len(prompts) % 3]
        values = {name: VALUES.get(name, question) for name in prompt.input_variables}
        titles.append(f"{prompt.title}, question {number // len(prompts) % 3 + 1}")
        settings: dict[str, Any] = {"config": {"callbacks": [replies]}, "timeout": timeout}
        jobs.append(partial(structured_call, model, prompt, values, **settings))
    outcomes = fan_out(jobs, on_error="skip", max_concurrency=SLOTS).outcomes
    failures = {
        title: str(outcome.error)[:300]
        for title, outcome in zip(titles, outcomes, strict=True)
        if not outcome.ok
    }
    over = sum(length > bound for bound, length in replies.lengths if bound)
    return {
        "calls": calls, "valid": sum(outcome.ok for outcome in outcomes), "failures": failures,
        "requests": dict(replies.forms), "over_bound": over,
        "without_bound": sum(not bound for bound, _ in replies.lengths),
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds of a request")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with serve(weights(), most_tokens=0) as url:
        llm = chat_model(
            "openai:smollm2", base_url=url, api_key="none", temperature=0.0, timeout=options.timeout
        )
        found = json.dumps(
            measure(llm, options.calls, options.timeout, options.first), ensure_ascii=False, indent=1
        )
    print(found)
    if options.out:
        options.out.write_text(found + "\n", encoding="utf-8")
