"""What runs inside a process on virtual cards; standard library only, imports nothing of ours.

`hooks/sitecustomize.py` loads this package under a name of its own, so that no program's module is
hidden by one of these.

    memory.py           what is known of a tensor on a virtual card
    known_values.py     small values that follow from the host's
    unknown_values.py   what stands for values that only a card could compute
    older_torch.py      the most needed of that with torch before 2.9
    places.py           the line of the program that is under way
    files.py            where a program's checkpoints go
"""
