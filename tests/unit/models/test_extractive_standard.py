"""LangChain's standard tests for chat models, as far as they apply to a model that quotes sentences."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from rag_kit.models.extractive.model import ExtractiveChatModel


class TestStandardUnit(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ExtractiveChatModel

    @property
    def chat_model_params(self) -> dict:
        return {}

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False


class TestStandardIntegration(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ExtractiveChatModel

    @property
    def chat_model_params(self) -> dict:
        return {}

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False

    @property
    def supports_json_mode(self) -> bool:
        return False
