"""The flight recorder's inside: writes down what a process does with memory, and changes nothing.

It uses the hooks of a trial (steps, phases, failures) with a line that is a file, a meter that
takes no figure away from the program, and at an out-of-memory error writes down what only the dying
process knows. Standard library only, as all of `inject/`.
"""
