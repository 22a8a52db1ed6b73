"""Comparisons of text, tool calls and tables of this kit, where Ragas's are wrong for Chinese or broken."""
