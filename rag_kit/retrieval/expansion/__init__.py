"""Query expansion: more terms for the keyword leg, from a model or a thesaurus."""
