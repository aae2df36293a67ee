"""What runs inside a process on virtual cards; standard library only, imports nothing of ours.

`hooks/sitecustomize.py` loads this package under a name of its own, so that no program's module is
hidden by one of these.
"""
