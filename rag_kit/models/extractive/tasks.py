"""Which function answers which task. A new task is one file with a function, and one line here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.models.extractive.blocks import Prompt


@dataclass(frozen=True)
class Reply:
    """What a task gives back.

    Attributes:
        text: The reply as prose.
        fields: The reply by field name, for prompts that ask for JSON.
        as_json: Whether the reply is JSON even where the prompt holds no schema.
    """

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    as_json: bool = False


Task = Callable[[Prompt], Reply]


def _tasks() -> dict[str, Task]:
    from rag_kit.models.extractive.adaptive import clarify_question, classify_question, direct_answer
    from rag_kit.models.extractive.answer import answer
    from rag_kit.models.extractive.condense import condense
    from rag_kit.models.extractive.continuing import continue_answer, continue_unaided, retrieve_needed
    from rag_kit.models.extractive.critique import (
        critique,
        critique_usefulness,
        grade_support,
        grade_usefulness,
    )
    from rag_kit.models.extractive.doubting import answer_or_doubt
    from rag_kit.models.extractive.generating import generate_check, generate_multi_hop, generate_single_hop
    from rag_kit.models.extractive.grade import grade_passage, grade_passages
    from rag_kit.models.extractive.grading import (
        judge_citation,
        judge_nugget_support,
        judge_nuggets,
        judge_relevance,
        judge_sentences,
    )
    from rag_kit.models.extractive.hops import answer_from_hops, next_hop
    from rag_kit.models.extractive.judging import (
        judge_claims,
        judge_context,
        judge_correctness,
        judge_question,
        judge_recall,
        judge_statements,
        judge_verdicts,
    )
    from rag_kit.models.extractive.judging_more import (
        judge_entities,
        judge_goal,
        judge_groundedness,
        judge_outcome,
        judge_refusal,
        judge_rubric,
        judge_sql,
        judge_topic_match,
        judge_topics,
    )
    from rag_kit.models.extractive.rank import compress, rank
    from rag_kit.models.extractive.related import related_questions
    from rag_kit.models.extractive.remember import remember_facts
    from rag_kit.models.extractive.rewrite import rewrite_query
    from rag_kit.models.extractive.route import route
    from rag_kit.models.extractive.summarise import summarise_history
    from rag_kit.models.extractive.web_query import web_query

    return {
        "answer": answer,
        "answer_for_user": answer,
        "answer_from_hops": answer_from_hops,
        "answer_or_doubt": answer_or_doubt,
        "clarify_question": clarify_question,
        "classify_question": classify_question,
        "direct_answer": direct_answer,
        "next_hop": next_hop,
        "answer_again": answer,
        "compress": compress,
        "condense": condense,
        "continue_answer": continue_answer,
        "continue_unaided": continue_unaided,
        "critique": critique,
        "critique_usefulness": critique_usefulness,
        "generate_check": generate_check,
        "generate_multi_hop": generate_multi_hop,
        "generate_single_hop": generate_single_hop,
        "grade_passage": grade_passage,
        "grade_passages": grade_passages,
        "grade_support": grade_support,
        "grade_usefulness": grade_usefulness,
        "judge_citation": judge_citation,
        "judge_nugget_support": judge_nugget_support,
        "judge_nuggets": judge_nuggets,
        "judge_relevance": judge_relevance,
        "judge_sentences": judge_sentences,
        "condense_for_user": condense,
        "judge_claims": judge_claims,
        "judge_context": judge_context,
        "judge_correctness": judge_correctness,
        "judge_question": judge_question,
        "judge_recall": judge_recall,
        "judge_statements": judge_statements,
        "judge_verdicts": judge_verdicts,
        "judge_entities": judge_entities,
        "judge_goal": judge_goal,
        "judge_groundedness": judge_groundedness,
        "judge_groundedness_again": judge_groundedness,
        "judge_outcome": judge_outcome,
        "judge_refusal": judge_refusal,
        "judge_rubric": judge_rubric,
        "judge_sql": judge_sql,
        "judge_topic_match": judge_topic_match,
        "judge_topics": judge_topics,
        "related_questions": related_questions,
        "remember_facts": remember_facts,
        "rerank_listwise": rank,
        "retrieve_needed": retrieve_needed,
        "rewrite_query": rewrite_query,
        "route": route,
        "summarise_history": summarise_history,
        "web_query": web_query,
    }


def perform(prompt: Prompt) -> str:
    """Do what a prompt asks for; never raises on account of what the prompt says.

    Returns:
        Prose, or JSON where the task or a schema in the prompt wants it.
    """
    from rag_kit.models.extractive.fallback import fill, unknown

    task = _tasks().get(prompt.task)
    if task is None and not prompt.task and prompt.question and prompt.passages:
        task = _tasks()["answer"]
    reply = task(prompt) if task is not None else unknown(prompt)
    if prompt.schema is not None:
        return json.dumps(fill(prompt.schema, reply.fields, prompt), ensure_ascii=False)
    if reply.as_json:
        return json.dumps(dict(reply.fields), ensure_ascii=False)
    return reply.text
