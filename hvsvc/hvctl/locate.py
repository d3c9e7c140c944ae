"""Finds the hvsvc of the compute host on which a server runs, by asking Nova."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from hvsvc.errors import Reason
from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.cloud import Cloud, CloudError, CloudServer
from hvsvc.hvctl.failure import Failure
from hvsvc.hvctl.report import report
from hvsvc.hvctl.settings import Settings

DEFAULT_TEMPLATE: Final = "{host}:9443"
_FIELDS: Final = re.compile(r"\{[^{}]*\}?|\}")
#: what a host may be named; anything else must not become a part of an address or of a path
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


def locate_domains(ctx: click.Context, settings: Settings, params: Mapping[str, Any]) -> dict[str, Any]:
    """Point `settings` at the host of the servers that a command names; its parameter with their domains there.

    A cloud that cannot say ends hvctl with the exit code of why.

    :raise click.UsageError: for a command that names no domain, or a configuration that
        cannot be used.
    """
    key = "domains" if params.get("domains") else "domain"
    named = params.get(key)
    if not named:
        raise click.UsageError(
            "--cloud (or HVCTL_CLOUD) finds the host of a server, and this command names none: give --target"
        )
    template = target_template(settings)
    try:
        cloud = Cloud(settings.cloud or "", settings.call_timeout_s)
        servers = [find_server(cloud, name) for name in ([named] if isinstance(named, str) else named)]
        targets = {target_of(server, template, cloud.name): server.name for server in servers}
    except CloudError as err:
        report(settings, err.failure)
        ctx.exit(exit_codes.for_status(err.failure.code))
    if len(targets) > 1:
        where = ", ".join(f"{name} at {target}" for target, name in targets.items())
        raise click.UsageError(
            f"the servers are on several hosts ({where}); name those of one host at a time"
        )
    (settings.target,) = targets
    settings.located = True
    domains = tuple(f"domains/{server.id}" for server in servers)
    return {key: domains[0] if isinstance(named, str) else domains}


def find_server(cloud: Cloud, domain: str) -> CloudServer:
    """The one server that DOMAIN names: an id, a name, or domains/UUID.

    :raise CloudError: NOT_FOUND for none; INVALID_ARGUMENT for several, with the candidates.
    """
    name = domain.removeprefix("domains/")
    found = cloud.find_servers(name)
    if not found:
        message = (
            f"cloud {cloud.name} shows no server with the id or name {name!r}; a domain that is not Nova's, or is "
            "named by libvirt, is found with --target alone"
        )
        raise CloudError(Failure("NOT_FOUND", message, Reason.SERVER_NOT_FOUND.value, {"asked": name}))
    if len(found) > 1:
        candidates = ", ".join(f"{server.id} ({server.host or server.status})" for server in found)
        message = (
            f"{name!r} names {len(found)} servers of cloud {cloud.name}: {candidates}; give one of their ids"
        )
        metadata = {"asked": name, "candidates": candidates}
        raise CloudError(Failure("INVALID_ARGUMENT", message, Reason.AMBIGUOUS_NAME.value, metadata))
    return found[0]


def target_of(server: CloudServer, template: str, cloud: str) -> str:
    """The address of hvsvc on the server's host.

    :raise CloudError: PERMISSION_DENIED where Nova hides the host; FAILED_PRECONDITION for
        a server that is on none.
    """
    values = {"host": server.host, "hypervisor_hostname": server.hypervisor_hostname}
    wanted = [name for name in values if f"{{{name}}}" in template]
    if not server.host and not server.host_id:
        message = f"server {server.name} is on no host: its status is {server.status}; bring it to ACTIVE in Nova first"
        raise CloudError(Failure("FAILED_PRECONDITION", message, Reason.SERVER_NOT_ACTIVE.value))
    if server.host is None:
        message = (
            f"cloud {cloud} does not show the credential on which host server {server.name} runs (admins only); name "
            "hvsvc there: --target HOST:9443 beside --cloud"
        )
        raise CloudError(
            Failure("PERMISSION_DENIED", message, Reason.NOVA_NOT_PERMITTED.value, {"serverId": server.id})
        )
    for name in wanted:
        value = values[name] or ""
        if not _HOST.fullmatch(value):
            message = f"server {server.name} is on no host ({name} {value!r}, status {server.status})"
            raise CloudError(Failure("FAILED_PRECONDITION", message, Reason.SERVER_NOT_ACTIVE.value))
    return _FIELDS.sub(lambda match: values[match[0][1:-1]] or "", template)


def target_template(settings: Settings) -> str:
    """Where hvsvc listens on a host: of the option or the environment, the client's configuration, or the default.

    :raise click.UsageError: for a template with anything in braces but the host's names.
    """
    template, origin = settings.cloud_target, "--cloud-target"
    if template is None:
        template, origin = _configured() or (DEFAULT_TEMPLATE, "default")
    if not _FIELDS.search(template) or set(_FIELDS.findall(template)) - {"{host}", "{hypervisor_hostname}"}:
        raise click.UsageError(
            f"{origin} {template!r}: write where hvsvc listens on {{host}} or {{hypervisor_hostname}}, such as "
            f"{DEFAULT_TEMPLATE}"
        )
    return template


def configuration_file() -> Path:
    """The client's configuration: hvsvc/hvctl.toml below XDG_CONFIG_HOME, or ~/.config."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "hvsvc" / "hvctl.toml"


def _configured() -> tuple[str, str] | None:
    import tomllib  # noqa: PLC0415  for this alone

    path = configuration_file()
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as err:
        raise click.UsageError(f"cannot read {path}: {err}") from err
    section = content.get("cloud", {})
    unknown = [key for key in content if key != "cloud"]
    if isinstance(section, dict):
        unknown += [f"cloud.{key}" for key in section if key != "target"]
    if unknown or not isinstance(section, dict) or not isinstance(section.get("target", ""), str):
        raise click.UsageError(
            f'{path}: {", ".join(unknown) or "[cloud]"}: only [cloud] target = "…" is known'
        )
    return (section["target"], f"{path}: [cloud] target") if "target" in section else None
