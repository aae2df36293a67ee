"""Runs a command as it is and keeps what is needed to say afterwards why it ended: its bundle."""
