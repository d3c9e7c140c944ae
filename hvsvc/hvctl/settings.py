"""What holds for every command: where the service is, how output looks, how long to wait.

Each option is taken before the command and after it; the one after wins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
from click.core import ParameterSource

from hvsvc.hvctl.number import Number

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_TARGET: Final = "unix:///run/hvsvc/hvsvc.sock"
FORMATS: Final = ("table", "json", "yaml", "value")
#: bound of one call that answers at once
CALL_TIMEOUT_S: Final = 60.0
#: bound of the wait for an operation
WAIT_TIMEOUT_S: Final = 900.0


@dataclass(slots=True)
class Settings:
    """Options of every command; `timeout_s` bounds the call, or the wait for the operation."""

    target: str = DEFAULT_TARGET
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_server_name: str | None = None
    insecure: bool = False
    output_format: str = "table"
    columns: tuple[str, ...] = ()
    timeout_s: float | None = None
    #: cloud of clouds.yaml to ask for the host of a server, and where hvsvc listens on such a host
    cloud: str | None = None
    cloud_target: str | None = None
    #: the target was named by the caller: on the command line, or in the environment
    target_given: bool = False
    #: the options that stand on the command line
    on_command_line: set[str] = field(default_factory=set)
    #: the target was found by asking the cloud
    located: bool = False

    @property
    def asks_cloud(self) -> bool:
        """Whether the cloud says where the service is: a target wins, unless --cloud alone was typed."""
        if self.cloud is None:
            return False
        typed_alone = "cloud" in self.on_command_line and "target" not in self.on_command_line
        return typed_alone or not self.target_given

    @property
    def target_words(self) -> str:
        """What must stand before a further command to reach the same hvsvc, and a space."""
        return f"--target {self.target} " if self.located else ""

    @property
    def call_timeout_s(self) -> float:
        """Deadline of a call that answers at once."""
        return CALL_TIMEOUT_S if self.timeout_s is None else min(self.timeout_s, CALL_TIMEOUT_S)

    @property
    def wait_timeout_s(self) -> float:
        """Bound of the wait for an operation."""
        return WAIT_TIMEOUT_S if self.timeout_s is None else self.timeout_s


def settings_of(ctx: click.Context) -> Settings:
    """The settings of this run, as far as the options were read."""
    return ctx.find_root().ensure_object(Settings)


def global_options(*, root: bool) -> Callable[[Decorated], Decorated]:
    """Add the options; after a command those that say where the service is stay out of its help."""

    def env(name: str) -> str | None:
        return name if root else None

    pem = click.Path(exists=True, dir_okay=False, path_type=Path)
    where: dict[str, Any] = {"expose_value": False, "callback": _keep, "hidden": not root}
    how: dict[str, Any] = {"expose_value": False, "callback": _keep}
    options = (
        click.option(
            "--target",
            metavar="unix:///PATH|HOST:PORT",
            envvar=env("HVCTL_TARGET"),
            help=f"Where hvsvc listens (HVCTL_TARGET; default {DEFAULT_TARGET}).",
            **where,
        ),
        click.option(
            "--cloud",
            metavar="NAME",
            envvar=env("HVCTL_CLOUD"),
            help="Cloud of clouds.yaml to ask on which host a server runs, unless --target says where (HVCTL_CLOUD).",
            **where,
        ),
        click.option(
            "--cloud-target",
            metavar="TEMPLATE",
            envvar=env("HVCTL_CLOUD_TARGET"),
            help="Where hvsvc listens on that host (HVCTL_CLOUD_TARGET; default {host}:9443).",
            **where,
        ),
        click.option(
            "--tls-ca",
            type=pem,
            envvar=env("HVCTL_TLS_CA"),
            help="PEM file of the authorities that may sign the server's certificate (HVCTL_TLS_CA).",
            **where,
        ),
        click.option(
            "--tls-cert",
            type=pem,
            envvar=env("HVCTL_TLS_CERT"),
            help="PEM file of the client's certificate (HVCTL_TLS_CERT).",
            **where,
        ),
        click.option(
            "--tls-key",
            type=pem,
            envvar=env("HVCTL_TLS_KEY"),
            help="PEM file of the client's key (HVCTL_TLS_KEY).",
            **where,
        ),
        click.option(
            "--tls-server-name",
            metavar="NAME",
            envvar=env("HVCTL_TLS_SERVER_NAME"),
            help="Name to expect in the server's certificate instead of HOST (HVCTL_TLS_SERVER_NAME).",
            **where,
        ),
        click.option(
            "--insecure",
            is_flag=True,
            default=None,
            help="Plaintext instead of TLS; for a loopback HOST only.",
            **where,
        ),
        click.option(
            "-f", "--format", "output_format", type=click.Choice(FORMATS), help="Output format.", **how
        ),
        click.option(
            "-c",
            "--column",
            "columns",
            metavar="COLUMN",
            multiple=True,
            help="Only this column; repeatable; dots reach inside, as in vcpus.maximum_live.",
            **how,
        ),
        click.option(
            "--timeout",
            "timeout_s",
            metavar="SECONDS",
            type=Number(min=0, min_open=True),
            help=f"How long to wait: for a change until it is done (default {WAIT_TIMEOUT_S:.0f}), "
            f"else for the answer (default {CALL_TIMEOUT_S:.0f}).",
            **how,
        ),
    )

    def decorate(command: Decorated) -> Decorated:
        located = command if root else _with_located_domain(command)
        for option in reversed(options):
            located = option(located)
        return located

    return decorate


def _with_located_domain(command: Decorated) -> Decorated:
    """Before the command: where only a cloud says where the domain is, the cloud is asked."""

    @wraps(command)
    def run(*args: Any, **params: Any) -> Any:
        ctx = click.get_current_context()
        settings = settings_of(ctx)
        if settings.asks_cloud:
            from hvsvc.hvctl.locate import locate_domains  # noqa: PLC0415  with openstacksdk behind it

            params |= locate_domains(ctx, settings, params)
        return command(*args, **params)

    return cast("Decorated", run)


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and value != () and param.name:
        settings = settings_of(ctx)
        setattr(settings, param.name, value)
        if param.name == "target":
            settings.target_given = True
        if ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            settings.on_command_line.add(param.name)
