"""A worker in a process of its own, from its start to its end."""
