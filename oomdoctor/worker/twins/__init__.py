"""Models, adapters, optimizers and losses that allocate as those of a job do."""
