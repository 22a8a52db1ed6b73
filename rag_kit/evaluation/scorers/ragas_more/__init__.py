"""Ragas's metrics that compare texts, tool calls, tables, and those of its judges that agents and SQL need."""
