"""Questions to the live machine; every function has a time-out."""
