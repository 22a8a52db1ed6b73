"""Answers of a model kept in a file, so that the same question is not paid for twice."""
