"""Options of the commands that change a domain, as the fields of their requests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from hvsvc.hvctl.domain_name import domain_name, names_that_begin
from hvsvc.hvctl.number import WholeNumber
from hvsvc.hvctl.settings import global_options
from hvsvc.hvctl.sizes import size_kib
from hvsvc.hvctl.topology import topology_policy
from hvsvc.v1 import scaling_pb2

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: uint32 of the contract
COUNT: Final = WholeNumber(1, (1 << 32) - 1)

domain_argument: Final = click.argument("domain", type=domain_name, shell_complete=names_that_begin)
max_options: Final = (
    click.option("--max-vcpus", metavar="N", type=COUNT, help="Maximum vCPUs: the ceiling."),
    click.option(
        "--max-memory", "max_memory_kib", type=size_kib, metavar="SIZE", help="Maximum memory: the ceiling."
    ),
    click.option(
        "--topology",
        type=topology_policy,
        metavar="sockets|cores|SxDxCxT",
        help="What grows with the maximum (default: sockets), or exact factors; SxDxLxCxT with clusters.",
    ),
)
size_options: Final = (
    click.option("--vcpus", metavar="N", type=COUNT, help="Current vCPUs."),
    click.option("--memory", "memory_kib", type=size_kib, metavar="SIZE", help="Current memory."),
)


def _word_option(*names: str, words: dict[str, int], help_text: str) -> Callable[[Decorated], Decorated]:
    def number(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int:
        return words[value] if value else 0

    return click.option(*names, type=click.Choice(list(words)), callback=number, help=help_text)


reboot_option: Final = _word_option(
    "--reboot",
    words={"soft": scaling_pb2.REBOOT_MODE_SOFT, "never": scaling_pb2.REBOOT_MODE_NEVER},
    help_text="Whether the guest may be rebooted where that is needed (default: never).",
)
online_option: Final = _word_option(
    "--online",
    "guest_cpus",
    words={"new": scaling_pb2.GUEST_CPUS_NEW, "all": scaling_pb2.GUEST_CPUS_ALL},
    help_text="Which CPUs to bring online in the guest: those that appear (default), or all.",
)
via_option: Final = click.option(
    "--via",
    type=click.Choice(["ceiling", "resize"]),
    default="ceiling",
    help="The ceiling of the running domain (default), or a resize of the server through Nova (needs --cloud).",
)
affect_options: Final = (
    click.option("--live", is_flag=True, help="Only the running domain: lost at its next start."),
    click.option(
        "--config", is_flag=True, help="Only the stored definition: in force from the next start on."
    ),
)


def affect_of(*, live: bool, config: bool) -> scaling_pb2.Affect.ValueType:
    """Both together mean the default, as in virsh: live and config."""
    if live == config:
        return scaling_pb2.AFFECT_LIVE_AND_CONFIG
    return scaling_pb2.AFFECT_LIVE if live else scaling_pb2.AFFECT_CONFIG


def refuse_nothing_asked(fields: Mapping[str, Any], *, sizes: bool = True, topology: bool = True) -> None:
    """Name the options of which a command needs one; `sizes` and `topology`: whether those of the current
    sizes, and the topology alone, are enough for it.

    :raise click.UsageError: where none was given.
    """
    options = {"vcpus": "--vcpus", "memory_kib": "--memory"} if sizes else {}
    options |= {"max_vcpus": "--max-vcpus", "max_memory_kib": "--max-memory"}
    options |= {"topology": "--topology"} if topology else {}
    if all(fields.get(name) is None for name in options):
        *others, last = options.values()
        raise click.UsageError(f"nothing is asked; give {', '.join(others)} or {last}")


def _request_id(_ctx: click.Context, _param: click.Parameter, value: uuid.UUID | None) -> str:
    return str(value or uuid.uuid4())


#: how a change is asked for
_change_options: Final = (
    click.option("--etag", default="", help="Refuse unless the stored definition is the one with this etag."),
    click.option(
        "--request-id",
        type=click.UUID,
        callback=_request_id,
        help="Repeat an earlier request: answers with the operation it began (default: a new one).",
    ),
    click.option("--dry-run", "validate_only", is_flag=True, help="Check and plan only."),
    click.option("--no-wait", is_flag=True, help="Print the running operation and return."),
    global_options(root=False),
)


def change_options(command: Decorated) -> Decorated:
    """Options of every change."""
    return _apply(command, _change_options)


def target_options(command: Decorated) -> Decorated:
    """Domain and options of `plan`, which `scale` takes too."""
    return _apply(
        command,
        (
            domain_argument,
            *size_options,
            *max_options,
            reboot_option,
            online_option,
            global_options(root=False),
        ),
    )


def with_options(*options: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Several options in the order of the help."""
    return lambda command: _apply(command, options)


def _apply(command: Decorated, options: tuple[Callable[..., Any], ...]) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command
