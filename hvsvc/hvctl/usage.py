"""What to write instead, where the command line was misunderstood."""

from __future__ import annotations

from typing import Final

import click

#: options whose value is one of a few words
WORDS: Final = {
    "--reboot": "--reboot soft or --reboot never",
    "--online": "--online new or --online all",
    "--via": "--via ceiling or --via resize",
}
_ONE_SIDE: Final = "--live and --config belong to setvcpus and setmem; a ceiling is always stored"
#: command, option that it has not -> what its user is after
_INSTEAD: Final = {
    (
        "setvcpus",
        "--vcpus",
    ): "the number stands alone; write: hvctl setvcpus DOMAIN N, as in hvctl setvcpus web-1 4",
    (
        "setmem",
        "--memory",
    ): "the size stands alone; write: hvctl setmem DOMAIN SIZE, as in hvctl setmem web-1 1GiB",
    **{
        (command, option): _ONE_SIDE for command in ("raise", "headroom") for option in ("--live", "--config")
    },
    **{
        (command, option): f"{command} is of both sides; --live and --config belong to setvcpus and setmem"
        for command in ("scale", "plan")
        for option in ("--live", "--config")
    },
}


def usage_hint(error: click.ClickException) -> str:
    """The next step after a usage error; empty where its own words do."""
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.info_name if error.ctx else ""
        return _INSTEAD.get((command or "", error.option_name), "")
    if isinstance(error, click.BadOptionUsage) and error.option_name in WORDS:
        return f"write {WORDS[error.option_name]}"
    return ""
