"""Examples of each command, which its ``--help`` ends with."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "ingest": (
        "rag-kit ingest handbook notes.pdf --index my-index",
        "rag-kit ingest handbook --index postgresql://user@host/db?index=handbook --prune",
    ),
    "retrieve": ("rag-kit retrieve 'How long is the warranty?' --index my-index --explain",),
    "ask": (
        "rag-kit ask 'How long is the warranty?' --index my-index",
        "rag-kit ask --index my-index",
        "rag-kit ask --index my-index --graph crag --json < questions.txt > answers.jsonl",
    ),
    "mcp": ("rag-kit mcp --index my-index",),
    "verify": ("rag-kit verify --index my-index",),
    "repair": ("rag-kit repair --index my-index",),
    "reembed": ("rag-kit reembed --index my-index --embedding-model openai:text-embedding-3-small",),
    "chunks": (
        "rag-kit chunks export passages.jsonl --index my-index",
        "rag-kit chunks import passages.jsonl --index my-index",
    ),
    "generate": ("rag-kit generate handbook --out questions.jsonl -n 50 --model openai:gpt-4o-mini",),
    "benchmark": ("rag-kit benchmark my-set --pipeline bm25 --pipeline hybrid --out result.json",),
    "evaluate": (
        "rag-kit evaluate questions.jsonl --index my-index --graph plain --out runs/plain",
        "rag-kit evaluate questions.jsonl --index my-index --metric faithfulness --judge openai:gpt-4o-mini",
    ),
    "compare": ("rag-kit compare runs/plain runs/crag --report report.html",),
    "prompts": ("rag-kit prompts show answer --language en > my-prompts/answer.en.prompt",),
    "models": ("rag-kit models install minilm",),
    "doctor": ("rag-kit doctor", "rag-kit doctor --model openai:qwen-plus --json"),
}
