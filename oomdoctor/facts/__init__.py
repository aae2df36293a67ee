"""The registry of facts, the book that holds them with provenance, and what follows from them."""
