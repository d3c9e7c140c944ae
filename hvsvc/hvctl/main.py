"""The `hvctl` command: finds the subcommand and loads only that one."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from typing import Any, Final

import click

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.interrupt import end_at_interrupt
from hvsvc.hvctl.settings import global_options
from hvsvc.hvctl.usage import usage_hint

#: set by the scripts of `hvctl completion`
_COMPLETE: Final = "_HVCTL_COMPLETE"

#: command -> module that holds it; a module is loaded when its command is used
COMMANDS: Final[dict[str, str]] = {
    "list": "read",
    "dominfo": "read",
    "vcpucount": "read",
    "host": "read",
    "plan": "plan",
    "raise": "change",
    "headroom": "headroom",
    "setvcpus": "change",
    "setmem": "change",
    "scale": "change",
    "reboot": "change",
    "drift": "drift",
    "forget": "drift",
    "watch": "watch",
    "operations": "operations",
    "health": "health",
    "completion": "completion",
}


class Commands(click.Group):
    """The commands of COMMANDS, in that order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or a refusal that names what it may have been meant to be."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415  for a slip alone

            close = get_close_matches(name, COMMANDS)
            known = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(COMMANDS)}"
            ctx.fail(f"no command {name!r}; {known}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hvsvc.hvctl.commands.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version  # noqa: PLC0415  a tenth of the start, for this option alone

        click.echo(f"hvctl {version('hvsvc')}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
@global_options(root=True)
def cli() -> None:
    """Grow a running server without rebuilding it.

    Reports and changes the libvirt domains of one compute host.

    DOMAIN is a Nova server's name, a uuid, a libvirt name, or domains/UUID. Sizes have a unit: 16GiB, 512MiB.

    \b
    Exit codes: 0 done (also pending a reboot, as asked), 1 internal error,
    2 bad usage or invalid argument, 3 not found, 4 a precondition fails,
    5 busy, changed meanwhile or already exists, 6 unavailable or timed out,
    7 done in part or unconfirmed, 8 not permitted, 130 interrupted.
    """


def run(args: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        result: Any = cli.main(args, prog_name="hvctl", standalone_mode=False, complete_var=_COMPLETE)
    except click.ClickException as err:
        err.show()
        if hint := usage_hint(err):
            click.echo(f"  next: {hint}", err=True)
        return exit_codes.USAGE
    except SystemExit as err:
        # click exits so in two cases: when a completion is done, and when the reader of stdout is gone.
        if _COMPLETE in os.environ:
            raise
        return exit_codes.BROKEN_PIPE if err.code else exit_codes.OK
    except UnicodeEncodeError as err:
        click.echo(f"hvctl: {err.object!a} is not UTF-8, as names have to be", err=True)
        return exit_codes.USAGE
    except OSError as err:
        _give_up_output()
        click.echo(f"hvctl: {err.filename or 'writing its output'}: {err.strerror}", err=True)
        return exit_codes.INTERNAL
    return result if isinstance(result, int) else exit_codes.OK


def _give_up_output() -> None:
    """What could not be written would be tried again at the end, with a complaint of the interpreter's."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_utf8(argument: str) -> str:
    """An argument as UTF-8, whatever the locale says; as it is where it is none."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeDecodeError:
        return argument


def main() -> None:
    """Entry point of the `hvctl` script."""
    end_at_interrupt()
    # gRPC's core would write its own lines about lost connections beside hvctl's.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run([_as_utf8(argument) for argument in sys.argv[1:]]))
