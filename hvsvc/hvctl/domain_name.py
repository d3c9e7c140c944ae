"""The DOMAIN argument, and its completion in the shell."""

from __future__ import annotations

from typing import Final

import click
import grpc
from click.shell_completion import CompletionItem

from hvsvc.hvctl.channel import open_channel
from hvsvc.hvctl.settings import settings_of
from hvsvc.v1.domain_pb2 import DOMAIN_VIEW_BASIC, ListDomainsRequest
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub

#: A completion that takes longer is worse than none.
COMPLETION_TIMEOUT_S: Final = 1.0


def domain_name(text: str) -> str:
    """Argument type: a Nova server's name, a uuid, a libvirt name or domains/UUID.

    The service finds the domain.
    """
    if not text.strip():
        raise click.BadParameter("the name of a domain is needed, not an empty word")
    return text


def names_that_begin(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completion: names that begin so; none where the service does not answer at once."""
    try:
        with open_channel(settings_of(ctx)) as channel:
            reply = DomainServiceStub(channel).ListDomains(
                ListDomainsRequest(page_size=500, view=DOMAIN_VIEW_BASIC), timeout=COMPLETION_TIMEOUT_S
            )
    except (grpc.RpcError, click.UsageError):
        return []
    names = {
        name for domain in reply.domains for name in (domain.nova.name, domain.libvirt_name, domain.uuid)
    }
    # A line break or an escape in a name would be taken for something else by the shell.
    return [
        CompletionItem(name)
        for name in sorted(names)
        if name and name.startswith(incomplete) and name.isprintable()
    ]
