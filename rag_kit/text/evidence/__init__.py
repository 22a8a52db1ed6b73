"""Evidence: which sentences and passages answer a question, by their words, names, times and kinds of things."""
