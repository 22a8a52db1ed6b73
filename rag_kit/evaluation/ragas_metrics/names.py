"""The metrics of Ragas that the kit knows by name, and what it must know of each class before Ragas is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.evaluation.metric import Stage


@dataclass(frozen=True)
class Kind:
    """A class of Ragas's, as far as it can be used without importing Ragas, which takes seconds.

    Attributes:
        stage: Which part of the pipeline it judges.
        needs: Columns that a row must have.
        llm: Whether it asks a chat model.
        embeddings: Whether it compares vectors.
        low: Smallest possible value.
        high: Greatest possible value.
        higher_is_better: False for rates of errors.
        reads: Argument of ``ascore`` -> another column that it is given, where the names differ.
        best_of: Whether each of the example's ``answers`` counts as a reference, and the best value is taken.
        packages: What it imports when it computes, so that this happens on a thread.
    """

    stage: Stage
    needs: tuple[str, ...] = ()
    llm: bool = True
    embeddings: bool = False
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    reads: Mapping[str, str] = field(default_factory=dict)
    best_of: bool = False
    packages: tuple[str, ...] = ()


_RAG = ("user_input", "response", "retrieved_contexts")
_GOLD = ("user_input", "reference", "retrieved_contexts")
_PAIR = ("reference", "response")
_CALLS = ("messages", "reference_tool_calls")
_QUERY = {"response": "response_code", "reference": "reference_code", "reference_contexts": "schema"}
_TABLE = {"response": "response_code", "reference": "reference_table"}


def _text(*packages: str, best_of: bool = False) -> Kind:
    return Kind("end_to_end", _PAIR, llm=False, best_of=best_of, packages=packages)


KINDS: dict[str, Kind] = {
    "Faithfulness": Kind("generation", _RAG),
    "AnswerRelevancy": Kind("generation", ("user_input", "response"), embeddings=True, low=-1.0),
    "NoiseSensitivity": Kind("generation", (*_RAG, "reference"), higher_is_better=False),
    "ResponseGroundedness": Kind("generation", ("response", "retrieved_contexts")),
    "QuotedSpansAlignment": Kind("generation", ("response", "retrieved_contexts"), llm=False),
    "SummaryScore": Kind("generation", ("response", "reference_contexts")),
    "ContextPrecision": Kind("retrieval", _GOLD),
    "ContextPrecisionWithReference": Kind("retrieval", _GOLD),
    "ContextPrecisionWithoutReference": Kind("retrieval", _RAG),
    "ContextUtilization": Kind("retrieval", _RAG),
    "ContextRecall": Kind("retrieval", _GOLD),
    "ContextEntityRecall": Kind("retrieval", ("reference", "retrieved_contexts")),
    "ContextRelevance": Kind("retrieval", ("user_input", "retrieved_contexts")),
    "AnswerAccuracy": Kind("end_to_end", ("user_input", *_PAIR)),
    "AnswerCorrectness": Kind("end_to_end", ("user_input", *_PAIR), embeddings=True, low=-0.25),
    "FactualCorrectness": Kind("end_to_end", _PAIR),
    "SemanticSimilarity": Kind("end_to_end", _PAIR, llm=False, embeddings=True, low=-1.0),
    "BleuScore": _text("sacrebleu"),
    "RougeScore": _text("rouge_score.rouge_scorer"),
    "CHRFScore": _text("sacrebleu"),
    "ExactMatch": _text(best_of=True),
    "StringPresence": _text(best_of=True),
    "NonLLMStringSimilarity": _text("rapidfuzz.distance"),
    "DomainSpecificRubrics": Kind("end_to_end", ("user_input", "response"), low=1.0, high=5.0),
    "RubricsScoreWithReference": Kind("end_to_end", ("user_input", *_PAIR), low=1.0, high=5.0),
    "RubricsScoreWithoutReference": Kind("end_to_end", ("user_input", "response"), low=1.0, high=5.0),
    "InstanceSpecificRubrics": Kind("end_to_end", ("user_input", "response", "rubrics"), low=1.0, high=5.0),
    "ToolCallAccuracy": Kind("agent", _CALLS, llm=False),
    "ToolCallF1": Kind("agent", _CALLS, llm=False),
    "AgentGoalAccuracyWithReference": Kind("agent", ("messages", "goal"), reads={"reference": "goal"}),
    "AgentGoalAccuracyWithoutReference": Kind("agent", ("messages",)),
    "TopicAdherence": Kind("agent", ("messages", "reference_topics")),
    "SQLSemanticEquivalence": Kind("agent", ("response_code", "reference_code"), reads=_QUERY),
    "DataCompyScore": Kind(
        "agent", ("response_code", "reference_table"), llm=False, reads=_TABLE, packages=("pandas",)
    ),
}
KINDS["AgentGoalAccuracy"] = KINDS["AgentGoalAccuracyWithReference"]

#: Name -> class of ``ragas.metrics.collections``, and what it is made with beside the judge.
NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "faithfulness": ("Faithfulness", {}),
    "answer_relevancy": ("AnswerRelevancy", {}),
    "context_precision": ("ContextPrecision", {}),
    "context_precision_without_reference": ("ContextPrecisionWithoutReference", {}),
    "context_recall": ("ContextRecall", {}),
    "context_entity_recall": ("ContextEntityRecall", {}),
    "context_relevance": ("ContextRelevance", {}),
    "answer_accuracy": ("AnswerAccuracy", {}),
    "answer_correctness": ("AnswerCorrectness", {}),
    "factual_correctness": ("FactualCorrectness", {}),
    "semantic_similarity": ("SemanticSimilarity", {}),
    "noise_sensitivity": ("NoiseSensitivity", {}),
    "noise_sensitivity_irrelevant": ("NoiseSensitivity", {"mode": "irrelevant"}),
    "response_groundedness": ("ResponseGroundedness", {}),
    "summary_score": ("SummaryScore", {}),
    "quoted_spans": ("QuotedSpansAlignment", {}),
    "rubrics": ("DomainSpecificRubrics", {}),
    "rubrics_with_reference": ("RubricsScoreWithReference", {}),
    "instance_rubrics": ("InstanceSpecificRubrics", {}),
    "bleu": ("BleuScore", {}),
    "rouge_1": ("RougeScore", {"rouge_type": "rouge1"}),
    "rouge_2": ("RougeScore", {"rouge_type": "rouge2"}),
    "rouge_l": ("RougeScore", {"rouge_type": "rougeL"}),
    "chrf": ("CHRFScore", {}),
    "exact_match": ("ExactMatch", {}),
    "string_presence": ("StringPresence", {}),
    "string_similarity": ("NonLLMStringSimilarity", {}),
    "tool_call_accuracy": ("ToolCallAccuracy", {}),
    "tool_call_accuracy_flexible": ("ToolCallAccuracy", {"strict_order": False}),
    "tool_call_f1": ("ToolCallF1", {}),
    "agent_goal_accuracy": ("AgentGoalAccuracyWithReference", {}),
    "agent_goal_accuracy_without_reference": ("AgentGoalAccuracyWithoutReference", {}),
    "topic_adherence": ("TopicAdherence", {}),
    "sql_equivalence": ("SQLSemanticEquivalence", {}),
    "data_comparison": ("DataCompyScore", {}),
    "data_comparison_columns": ("DataCompyScore", {"mode": "columns"}),
}
