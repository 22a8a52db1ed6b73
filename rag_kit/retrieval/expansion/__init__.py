"""Query expansion: more terms for the keyword leg, from a model, a thesaurus or the first results."""
