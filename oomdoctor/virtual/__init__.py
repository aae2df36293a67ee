"""A stub driver on which the CUDA host code of torch runs without a card.

The CUDA build of torch keeps its dispatcher, its allocator and its choice of kernels on the host;
only the kernels need a card. Here a library in C stands where the driver would: it counts memory,
answers questions about a card of any kind, and lets kernels go. So an unmodified program runs to
its end, or out of memory, with the real allocator, on a machine that has no GPU. It computes
nothing: what a kernel would have written reads as zero.

    card.py         what a virtual card is, from the table of cards
    wheels.py       the CUDA build of torch and its libraries, as an environment has them
    headers.py      the functions that a library declares, from its own headers
    symbols.py      the functions that a library exports
    rest.py         writes those functions in C that csrc/ does not
    compiling.py    runs the C compiler
    kept.py         a cache of what was compiled, once for all that it depends on
    build.py        the libraries, built once per version and kept
    environment.py  the environment variables that put a process on virtual cards
    run.py          runs a Python program on them
    unmodelled.py   what a run asked for that nobody models
    csrc/           the library, hooks/ the decisions in Python that need values
"""
