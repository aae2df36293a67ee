"""`oomdoctor completion`: print the completion script of a shell."""

from __future__ import annotations

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.output import write_result

SHELLS = ("bash", "zsh", "fish")


class Completion(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example('eval "$(oomdoctor completion bash)"', "in ~/.bashrc"),
        Example('eval "$(oomdoctor completion zsh)"', "in ~/.zshrc"),
        Example("oomdoctor completion fish | source", "in ~/.config/fish/config.fish"),
    )


@click.command("completion", cls=Completion)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print the completion script of SHELL; commands, codes, causes and facts are completed."""
    from click.shell_completion import get_completion_class

    from oomdoctor.cli.main import COMPLETE_VAR, PROGRAM, cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click has no completion for {shell}")
    write_result(found(cli, {}, PROGRAM, COMPLETE_VAR).source())
    return int(ExitCode.DONE)
