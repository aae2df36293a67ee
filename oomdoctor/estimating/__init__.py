"""What a job will need on which card, before it is started: estimates and plans."""
