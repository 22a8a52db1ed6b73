"""Further texts by which a passage is found: summaries, questions, keywords, translations..."""
