"""Ragas as the scorer: its classes, its prompts, asked through the kit's judge.

`metric` holds the one wrapper, `names` the names that the kit knows, `guards` what is done about known faults of
Ragas, `adapter` the judge as an LLM and as embeddings of Ragas's.
"""
