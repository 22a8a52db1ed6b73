"""Answers of models that see: they get the pictures of their passages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from PIL import Image
from support.blocking import blockbuster_ctx

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_conversational_rag, build_crag, build_plain_rag
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.indexing.document_index.folder import keep_picture
from rag_kit.models import chat_model

ASKED = {"question": "At how many degrees does the pump start?"}


class Seeing(BaseChatModel):
    """Keeps the messages of the last request."""

    seen: list[BaseMessage] = []

    @property
    def _llm_type(self) -> str:
        return "seeing"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen[:] = messages
        return ChatResult(generations=[ChatGeneration(message=AIMessage("It starts at 40 degrees.[2]"))])


class Sure(Evaluator):
    """Takes every passage for relevant."""

    name = "sure"

    async def grade(self, question: str, passages: Any, language: str) -> Any:
        return [Grading(1.0, "sure") for _ in passages]


def picture(colour: str) -> bytes:
    """A small picture as PNG."""
    file = io.BytesIO()
    Image.new("RGB", (60, 60), colour).save(file, "PNG")
    return file.getvalue()


def passages(*names: str) -> RunnableLambda[str, list[Document]]:
    """A retriever of a passage without a picture, and one for each name."""
    first = Document("The hall is cold.", id="hall")
    others = [
        Document("The pump starts at 40 degrees.", id=f"p{number}", metadata={"picture": name})
        for number, name in enumerate(names)
    ]
    return RunnableLambda(lambda query: [first, *others])


def blocks(model: Seeing) -> list[Any]:
    """The content of the last message as types, and texts after the first."""
    content: Any = model.seen[-1].content
    return [block["type"] if block["type"] == "image" else block["text"] for block in content[1:]]


@pytest.mark.parametrize("build", [build_plain_rag, build_conversational_rag, build_crag])
async def test_the_answer_is_asked_for_with_the_pictures_of_its_passages(build: Any, tmp_path: Path) -> None:
    """Each picture follows the number of its passage, sync and async; the answer is checked as any other."""
    model, name = Seeing(), keep_picture(tmp_path, picture("red"))
    more = {"evaluator": Sure()} if build is build_crag else {}
    graph = build(passages(name), model, pictures=tmp_path, **more)
    result = graph.invoke(ASKED)
    assert blocks(model) == ['<picture passage="2"/>', "image"] and result["status"] == "grounded"
    model.seen.clear()
    with blockbuster_ctx():
        await graph.ainvoke(ASKED)
    image = next(block for block in model.seen[-1].content if block["type"] == "image")  # type: ignore[index]
    assert image["mime_type"] == "image/png" and image["base64"]  # type: ignore[index]


def test_a_prompt_without_pictures_is_text(tmp_path: Path) -> None:
    """So it is without the option, and where no passage names a picture."""
    for graph in (
        build_plain_rag(passages(keep_picture(tmp_path, picture("red"))), model := Seeing()),
        build_plain_rag(passages(), model := Seeing(), pictures=tmp_path),
    ):
        graph.invoke(ASKED)
    assert isinstance(model.seen[-1].content, str)
    extracts = build_plain_rag(passages("pictures/x.png"), chat_model("extractive"), pictures=tmp_path)
    assert extracts.invoke(ASKED)["status"] == "grounded"


def test_pictures_that_are_not_there_or_too_many_are_left_out_with_a_note(tmp_path: Path) -> None:
    """A name that leads out of the folder, or a link, is no picture."""
    names = [keep_picture(tmp_path, picture(f"#0000{number:02x}")) for number in range(9)]
    gone = f"pictures/{'0' * 32}.png"
    model = Seeing()
    graph = build_plain_rag(passages("../secret.png", gone, *names), model, pictures=tmp_path)
    notes = " ".join(graph.invoke(ASKED)["notes"])
    assert blocks(model).count("image") == 8
    assert gone in notes and "1 of 9 pictures were left out" in notes and "secret" not in notes


def test_pictures_must_be_the_folder_of_an_index(tmp_path: Path) -> None:
    """Anything else is refused when the graph is built."""
    for wrong in (tmp_path / "none", 3):
        with pytest.raises(InvalidInputError, match="give the folder of the index"):
            build_plain_rag(passages(), Seeing(), pictures=wrong)  # type: ignore[arg-type]
