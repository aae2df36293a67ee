"""The phases of a job, as the loops of training libraries go through them."""
