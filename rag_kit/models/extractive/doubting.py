"""The task ``answer_or_doubt``: the answer of the task ``answer``, or the sentence that this prompt wants instead.

This model knows nothing but the passages, so it never says that one of them is wrong.
"""

from __future__ import annotations

from rag_kit.models.extractive.answer import answer
from rag_kit.models.extractive.blocks import Prompt, Reply

_DECLINED = {
    "en": "I cannot answer the question because of insufficient information in the documents.",
    "zh": "文档信息不足，无法回答该问题。",
}


def answer_or_doubt(prompt: Prompt) -> Reply:
    """Answer from the passages of the prompt, or decline in the words of this prompt.

    Example:
        >>> answer_or_doubt(Prompt("answer_or_doubt", "", "谁发明了电话？", (), (), None)).text
        '文档信息不足，无法回答该问题。'
    """
    reply = answer(prompt)
    if not reply.fields["declined"]:
        return reply
    text = _DECLINED[prompt.language]
    return Reply(text, {**reply.fields, "answer": text})
