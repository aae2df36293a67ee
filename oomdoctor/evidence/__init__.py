"""Text to facts: one module per source of evidence, each with a sample of the raw text."""
