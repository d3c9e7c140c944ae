"""`completion`: the script that teaches a shell hvctl's words and the host's domains."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hvsvc.hvctl.settings import global_options

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@global_options(root=False)
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script for shell completion.

    \b
    bash: eval "$(hvctl completion bash)"
    zsh:  eval "$(hvctl completion zsh)"
    fish: hvctl completion fish | source
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(completion_class(ctx.find_root().command, {}, "hvctl", "_HVCTL_COMPLETE").source())
