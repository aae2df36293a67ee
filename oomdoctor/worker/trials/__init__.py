"""Runs jobs on real tensors: on a card, a virtual one, or counted on the host."""
