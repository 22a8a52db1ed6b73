"""Which function answers which task; what is not a task gets an honest line, or the least that fits the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.models.extractive.answering import extract_answer
from rag_kit.models.extractive.blocks import Prompt

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
# module -> the tasks that its functions of the same names answer; a module is imported with its first task
_TABLE = Path(__file__).with_name("tasks.txt").read_text(encoding="utf-8")
_MODULES = (line.split(": ", 1) for line in _TABLE.splitlines())
_MODULE_OF = {name: module for module, names in _MODULES for name in names.split()}
#: Tasks that the function of another name answers.
_ALIASES = {
    "answer_again": "answer",
    "answer_for_user": "answer",
    "condense_for_user": "condense",
    "represent_cluster": "represent_summary",
    "rerank_listwise": "rank",
    "rerank_pointwise": "grade_passage",
}


def perform(prompt: Prompt) -> str:
    """Reply to a prompt by the function of its task, in prose, or in JSON if the task or a schema wants that."""
    name = _ALIASES.get(prompt.task, prompt.task)
    if not name and prompt.question and prompt.passages:
        name = "answer"
    reply: str | dict[str, Any]
    if name in _MODULE_OF:
        module = import_module(f"rag_kit.models.extractive.{_MODULE_OF[name]}")
        reply = getattr(module, name)(prompt)
    else:
        if name:
            why = "'extractive' is no language model and cannot do this; the rest of the run goes on"
            write_note(f"{name}: {why}")
        reply = ABOUT[prompt.language] if prompt.schema is None else _guess_fields(prompt)
    if prompt.schema is not None:
        reply = fill(prompt.schema, {"answer": reply} if isinstance(reply, str) else reply)
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def fill(schema: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Make an object for a JSON schema: known fields from `fields`, the smallest value of its type for each other."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(fields)
    return {name: fields.get(name, _smallest_value(rule, schema)) for name, rule in properties.items()}


def _guess_fields(prompt: Prompt) -> dict[str, Any]:
    """Fill in the fields of an unknown task that have an honest value."""
    question = prompt.question or prompt.block("query") or prompt.user
    answer = extract_answer(question, prompt.passages)
    return {
        "query": question,
        "question": question,
        "queries": [question],
        "questions": [question],
        "passages": [answer or question],
        "relevant": bool(answer),
        "score": float(bool(answer)),
    }


def _smallest_value(rule: Any, root: Mapping[str, Any]) -> Any:
    """Return the first allowed value of a schema, else the smallest of its type; None if it names no type."""
    if not isinstance(rule, Mapping):
        return None
    if isinstance(rule.get("$ref"), str):
        rule = root.get("$defs", {}).get(rule["$ref"].rsplit("/", 1)[-1], {})
    if rule.get("enum"):
        return rule["enum"][0]
    smallest = {"string": "unknown", "boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}
    return smallest.get(str(rule.get("type")))
