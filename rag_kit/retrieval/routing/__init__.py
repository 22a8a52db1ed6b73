"""Routing: send a question to the data sources, or to the prompt, that suit it."""
