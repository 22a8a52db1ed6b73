"""Which function answers which task. A new task is a function of its name, and its name in this file."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module

from rag_kit.models.extractive.blocks import Prompt, Reply

Task = Callable[[Prompt], Reply]


#: Module -> the tasks that its functions of the same names answer; a module is imported with its first task.
_MODULES = {
    "adaptive": ("clarify_question", "classify_question", "direct_answer"),
    "answer": ("answer",),
    "condense": ("condense",),
    "continuing": ("continue_answer", "continue_unaided", "retrieve_needed"),
    "critique": ("critique", "critique_usefulness", "grade_support", "grade_usefulness"),
    "doubting": ("answer_or_doubt",),
    "generating": ("generate_check", "generate_multi_hop", "generate_single_hop"),
    "grade": ("grade_passage", "grade_passages"),
    "hops": ("answer_from_hops", "decompose", "merge_answers", "next_hop"),
    "rank": ("compress", "rank"),
    "related": ("related_questions",),
    "remember": ("remember_facts",),
    "representing": ("represent_keywords", "represent_summary", "represent_tags"),
    "rewrite": ("rewrite_query",),
    "route": ("route",),
    "summarise": ("summarise_history",),
    "web_query": ("web_query",),
}
#: Tasks that the function of another name answers.
_SAME = {
    "answer_again": "answer",
    "answer_for_user": "answer",
    "condense_for_user": "condense",
    "represent_cluster": "represent_summary",
    "rerank_listwise": "rank",
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}


def _task(name: str) -> Task | None:
    """The function that answers a task; ``None`` for one that is not known."""
    name = _SAME.get(name, name)
    if name not in _WHERE:
        return None
    module = import_module(f"rag_kit.models.extractive.{_WHERE[name]}")
    task: Task = getattr(module, name)
    return task


def perform(prompt: Prompt) -> str:
    """Do what a prompt asks for; never raises on account of what the prompt says.

    Returns:
        Prose, or JSON where the task or a schema in the prompt wants it.
    """
    from rag_kit.models.extractive.fallback import fill, unknown

    task = _task(prompt.task)
    if task is None and not prompt.task and prompt.question and prompt.passages:
        task = _task("answer")
    reply = task(prompt) if task is not None else unknown(prompt)
    if prompt.schema is not None:
        return json.dumps(fill(prompt.schema, reply.fields, prompt), ensure_ascii=False)
    if reply.as_json:
        return json.dumps(dict(reply.fields), ensure_ascii=False)
    return reply.text
