"""Flavors as Nova tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor, or the sizes of one that a server was made from.

    `id` is empty for a server's own flavor: Nova embeds a copy that names none
    (since microversion 2.47). Not `public`: only some projects may use it.
    """

    id: str
    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    ephemeral_gib: int = 0
    public: bool = True
    extra_specs: Mapping[str, str] = field(default_factory=dict)
