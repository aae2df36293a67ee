"""Makes what a user can share: redacted copies of the inputs with their diagnosis."""
