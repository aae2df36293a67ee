"""Takes names, addresses and secrets out of texts: text in, text out; it knows no facts."""
