"""A scripted model for Ragas's prompts over HTTP: it answers by the prompt alone, so that two askers get the same."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

from support.by_task import ragas_schema
from support.openai_server import Recorded

_ZH = {"translate": "译：{}", "text": "文本{}"}


def answer(request: Recorded) -> dict[str, Any]:
    """A reply that fits what the prompt asks for; every prompt has its own."""
    return answer_to(str(request.body["messages"][-1]["content"]))


def answer_to(prompt: str) -> dict[str, Any]:
    """The same for the text of a prompt."""
    if "Statements to translate:" in prompt:
        strings = json.loads(prompt.partition("Statements to translate:\n")[2])
        kept = {"0", "1"}
        return {"statements": [each if each in kept else f"译：{each}" for each in strings]}
    schema = ragas_schema(prompt)
    data = json.loads(prompt.rpartition("input: ")[2].rpartition("Output:")[0].strip())
    dice = random.Random(hashlib.sha256(prompt.encode()).hexdigest())
    if schema["title"] == "ClassificationWithReason":
        places: dict[str, list[Any]] = {"TP": [], "FP": [], "FN": []}
        for one in data["answer"]:
            places[dice.choice(("TP", "FP"))].append({"statement": one, "reason": "r"})
        places["FN"] = [
            {"statement": one, "reason": "r"} for one in data["ground_truth"] if dice.random() < 0.5
        ]
        return places
    found = _fill(schema, schema.get("$defs", {}), "", data, dice)
    assert isinstance(found, dict)
    return found


def _fill(
    schema: dict[str, Any], defs: dict[str, Any], name: str, data: dict[str, Any], dice: random.Random
) -> Any:
    if "$ref" in schema:
        return _fill(defs[schema["$ref"].rpartition("/")[2]], defs, name, data, dice)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return {key: _fill(each, defs, key, data, dice) for key, each in schema.get("properties", {}).items()}
    if kind == "array":
        lists = [
            data[key] for key in ("statements", "topics", "questions") if isinstance(data.get(key), list)
        ]
        size = len(lists[0]) if lists else dice.randint(1, 3)
        return [_fill(schema["items"], defs, name, data, dice) for _ in range(size)]
    if kind == "integer":
        if name == "rating":
            return dice.choice((0, 2, 4) if "reference_answer" in data else (0, 1, 2))
        return dice.randint(1, 5) if name == "score" else dice.randint(0, 1)
    if kind == "boolean":
        return dice.random() < 0.5
    if name == "answers":
        return dice.choice("01")
    words = ("river", "lake", "河流", "湖泊", "Basel", "巴塞尔")
    return f"{dice.choice(words)} {dice.choice(words)}"
