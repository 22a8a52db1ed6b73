"""The judge, a chat model and an embedding model behind every metric that needs one, and Ragas's metrics on it."""
