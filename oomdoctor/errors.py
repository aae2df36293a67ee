"""The errors that reach a user, each with an exit code and a hint.

OomdoctorError
├── UsageError          the command or an argument is wrong                      exit 2
├── InputError          a file could not be read or understood                   exit 2
│   └── SizeError       it is larger than what is read of its kind               exit 2
├── RuleError           a rule is malformed, ill-typed or failed to evaluate     exit 3
├── ProbeError          the machine could not be asked                           exit 3
└── GuardError          the safety guard refused to go on                        exit 5
"""

from __future__ import annotations

from oomdoctor.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file: path, 1-based line and column where they are known."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return `path`, `path:line` or `path:line:column`."""
        parts = [self.path, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)


class OomdoctorError(Exception):
    """Base of all errors meant for the user: what happened, where, and what to do about it."""

    exit_code = 3

    def __init__(
        self, message: str, *, location: Location | None = None, hint: str | None = None
    ) -> None:
        """Store the message with the place it speaks of and a remedy."""
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        """Return `place: message` and the hint on a line of its own."""
        head = f"{self.location}: {self.message}" if self.location else self.message
        return f"{head}\n  hint: {self.hint}" if self.hint else head


class UsageError(OomdoctorError):
    """The command or one of its arguments is wrong."""

    exit_code = 2


class InputError(OomdoctorError):
    """A file could not be read, or is not what it should be."""

    exit_code = 2


class SizeError(InputError):
    """A file is larger than what is read of its kind; nothing is wrong with it."""


class RuleError(OomdoctorError):
    """A rule is malformed, has a type error, or failed while it was evaluated."""

    exit_code = 3


class ProbeError(OomdoctorError):
    """The machine could not be asked."""

    exit_code = 3


class GuardError(OomdoctorError):
    """The safety guard refused to go on."""

    exit_code = 5
