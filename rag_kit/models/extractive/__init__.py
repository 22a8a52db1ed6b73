"""The extractive chat model: no language model, deterministic, without network."""
