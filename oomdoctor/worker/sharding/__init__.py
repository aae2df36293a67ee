"""How a job spreads over cards, as rank 0 of N sees it: torch's and DeepSpeed's own code."""
