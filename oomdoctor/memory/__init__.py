"""Physics of memory without torch: states, activations, logits, caches, fingerprints."""
