"""A domain that cannot be read now, and a list of domains that may have some of those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hvsvc.domain.definition import NovaMetadata
from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.errors import HvsvcError


@dataclass(frozen=True, slots=True)
class UnreadDomain:
    """A domain of which libvirt gave out no definition that can be read; `error` says why.

    The rest is what libvirt told of it all the same; None where it told nothing. The
    counts and sizes are those of the running domain.
    """

    uuid: str
    libvirt_name: str
    error: HvsvcError
    id: int | None = None
    state: DomainState | None = None
    persistent: bool = False
    autostart: bool = False
    managed_save: bool = False
    maximum_vcpus: int | None = None
    current_vcpus: int | None = None
    maximum_memory_kib: int | None = None
    used_memory_kib: int | None = None
    nova: NovaMetadata | None = None


@dataclass(frozen=True, slots=True)
class DomainList:
    """Every domain of a host, each in one of the two, ordered by uuid."""

    read: Sequence[DomainFacts]
    unread: Sequence[UnreadDomain] = ()
