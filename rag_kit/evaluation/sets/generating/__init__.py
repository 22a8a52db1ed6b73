"""Questions written by a model from a corpus, with gold passages, filtered."""
