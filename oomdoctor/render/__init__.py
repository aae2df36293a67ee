"""The answer as text, Markdown and JSON."""
