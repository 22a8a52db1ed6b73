"""A model writes a statement for a question, a database runs it under guards: what SQL and Cypher share."""
