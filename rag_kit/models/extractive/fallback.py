"""Tasks that this model has no rule for: an honest line, or the least that fits the asked schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.models.extractive.support import strength
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.sentences import choose, collect

ABOUT = {
    "en": (
        "I am rag_kit's extractive model, not a language model: I can only quote sentences from given passages. "
        "Name a real model with RAG_KIT_CHAT_MODEL to chat."
    ),
    "zh": (
        "我是 rag_kit 的抽取式模型，不是语言模型：只能从给定的段落里摘录句子。"
        "要对话，请用 RAG_KIT_CHAT_MODEL 指定一个真正的模型。"
    ),
}
_MAX_DEPTH = 8


def unknown(prompt: Prompt) -> Reply:
    """Say what this model is; known fields of a schema still get an honest value."""
    asked = (prompt.question or prompt.block("query") or prompt.user)[:4000].strip()
    question = analyse(asked)
    found = collect(question, prompt.passages)
    picked = choose(question, found)
    support = round(strength(question, prompt.passages, found, picked), 3)
    fields: dict[str, Any] = {
        "query": asked,
        "question": asked,
        "queries": [asked],
        "questions": [asked],
        "passages": [one.text for one in picked] or [asked],
        "relevant": support >= 0.5,
        "score": support,
        "reason": f"{support:.0%} by the words that question and passages share.",
    }
    return Reply(ABOUT[prompt.language], fields)


def fill(schema: Mapping[str, Any], fields: Mapping[str, Any], prompt: Prompt) -> dict[str, Any]:
    """An object with the fields of a JSON schema: known ones from `fields`, others the least that fits.

    Example:
        >>> fill({"properties": {"query": {"type": "string"}, "n": {"type": "integer"}}}, {"query": "a"},
        ...      Prompt("", "", "", (), (), None))
        {'query': 'a', 'n': 0}
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(fields)
    return {
        str(name): fields[name] if name in fields else _least(rule, schema, prompt, 0)
        for name, rule in properties.items()
    }


def _least(rule: Any, root: Mapping[str, Any], prompt: Prompt, depth: int) -> Any:
    """The least value that fits a rule of a schema."""
    if not isinstance(rule, Mapping) or depth > _MAX_DEPTH:
        return None
    if "default" in rule:
        return rule["default"]
    if "const" in rule:
        return rule["const"]
    options = rule.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    reference = rule.get("$ref")
    if isinstance(reference, str):
        definitions = root.get("$defs")
        target = definitions.get(reference.rsplit("/", 1)[-1]) if isinstance(definitions, Mapping) else None
        return _least(target, root, prompt, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        choices = rule.get(key)
        if isinstance(choices, list) and choices:
            return _least(choices[0], root, prompt, depth + 1)
    kind = rule.get("type")
    if kind == "object":
        properties = rule.get("properties")
        items = properties.items() if isinstance(properties, Mapping) else ()
        return {str(name): _least(inner, root, prompt, depth + 1) for name, inner in items}
    if kind == "array":
        least = rule.get("minItems", 0)
        count = min(least, 16) if isinstance(least, int) else 0
        return [_least(rule.get("items"), root, prompt, depth + 1) for _ in range(count)]
    minimum = rule.get("minimum", 0)
    simple: dict[Any, Any] = {"string": "unknown", "boolean": False, "integer": minimum, "number": minimum}
    return simple.get(kind)
