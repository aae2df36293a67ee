"""What runs inside a user's process during a trial; standard library only, imports nothing of ours.

The lab puts `hooks/` first into PYTHONPATH and says in two environment variables what it wants.
Python then loads `hooks/sitecustomize.py` at its start, which loads this package under a name of
its own; a module of a library is hooked when the program imports it. Nothing of the program's
is changed but what `interventions/` is asked to change, and a fault of ours is told and swallowed.
"""
