"""Placement's books as its admin sees them, asked directly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.lab.cloud import Lab, Server
from tests.lab.still import nova_compute_still


class Books:
    """Placement as its admin reads and writes it, through the SDK's own session."""

    def __init__(self, lab: Lab) -> None:
        self._api = lab.cloud("admin").placement

    def _get(self, path: str) -> Any:
        answer = self._api.get(path, microversion="1.36")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def consumer(self, server: Server) -> dict[str, Any]:
        found: dict[str, Any] = self._get(f"/allocations/{server.id}")
        return found

    def provider(self, server: Server) -> str:
        (uuid,) = self.consumer(server)["allocations"]
        return str(uuid)

    def resources(self, server: Server) -> dict[str, int]:
        (part,) = self.consumer(server)["allocations"].values()
        return dict(part["resources"])

    def size(self, server: Server) -> tuple[int, int]:
        found = self.resources(server)
        return found["VCPU"], found["MEMORY_MB"]

    def size_if_any(self, server: Server) -> tuple[int, int] | None:
        """As `size`; None where the server has no allocation, as while it is shelved."""
        return self.size(server) if self.consumer(server)["allocations"] else None

    def put(self, server: Server, **resources: int) -> int:
        """Sets resource classes of the server; returns the HTTP status."""
        found = self.consumer(server)
        for part in found["allocations"].values():
            part.pop("generation")
            part["resources"] |= resources
        return int(self._api.put(f"/allocations/{server.id}", json=found, microversion="1.36").status_code)

    def usage_agrees(self, provider: str) -> bool:
        """Whether `openstack resource provider usage show` is the sum of what the consumers have."""
        usages = self._get(f"/resource_providers/{provider}/usages")["usages"]
        consumers = self._get(f"/resource_providers/{provider}/allocations")["allocations"].values()
        return all(
            usages[name] == sum(consumer["resources"].get(name, 0) for consumer in consumers)
            for name in ("VCPU", "MEMORY_MB")
        )

    @contextmanager
    def inventory(self, provider: str, **changes: int) -> Iterator[None]:
        """Another inventory of VCPU for a moment; nova-compute's periodic report would restore it meanwhile."""
        path = f"/resource_providers/{provider}/inventories/VCPU"
        with nova_compute_still():
            before = self._get(path)
            self._put_inventory(path, changes)
            try:
                yield
            finally:
                self._put_inventory(path, {name: before[name] for name in changes})

    def _put_inventory(self, path: str, changes: dict[str, int]) -> None:
        answer = self._api.put(path, json=self._get(path) | changes, microversion="1.36")
        assert answer.status_code == 200, answer.text
