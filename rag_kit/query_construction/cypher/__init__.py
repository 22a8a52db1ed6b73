"""Text to Cypher: a model writes one statement for a question, which reads a graph database under guards."""
