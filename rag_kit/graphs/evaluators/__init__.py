"""How surely a passage helps to answer a question, and when that is enough: CRAG's retrieval evaluator."""
