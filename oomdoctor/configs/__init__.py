"""Training and serving configs to facts, and facts to edits, one module per dialect."""
