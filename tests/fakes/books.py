"""Placement's API for `FakeCloud`: consumers with generations, one provider's inventory, real error codes.

Its rules are those of the real one (handlers/allocation.py of Placement 8): a stale
generation is 409 placement.concurrent_update, every refusal 409 placement.undefined_code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PROVIDER = "3f1b5f8e-6d1c-4b2a-8a55-0c2f9f0f7a11"
DISKS = "b2f0a4b1-7a6e-4c83-9d36-4a2f2f3f9c22"
PROJECT = "0123456789abcdef0123456789abcdef"
USER = "fedcba9876543210fedcba9876543210"

Reply = tuple[int, Any, dict[str, str]]


def inventory(total: int, **changes: Any) -> dict[str, Any]:
    """One resource class as the API shows it."""
    shown = {"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
    return shown | {"allocation_ratio": 1.0} | changes


def consumer(vcpus: int = 2, memory_mb: int = 512) -> dict[str, Any]:
    """A server with another class on the compute provider, and with another provider."""
    return {
        "allocations": {
            PROVIDER: {
                "generation": 31,
                "resources": {"VCPU": vcpus, "MEMORY_MB": memory_mb, "PCI_DEVICE": 1},
            },
            DISKS: {"generation": 4, "resources": {"DISK_GB": 20}},
        },
        "consumer_generation": 1,
        "project_id": PROJECT,
        "user_id": USER,
    }


@dataclass
class Books:
    """What Placement knows."""

    consumers: dict[str, dict[str, Any]] = field(default_factory=dict)
    inventories: dict[str, Any] = field(
        default_factory=lambda: {"VCPU": inventory(16, allocation_ratio=4.0), "MEMORY_MB": inventory(32768)}
    )
    #: what other consumers use
    others: dict[str, int] = field(default_factory=lambda: {"VCPU": 8, "MEMORY_MB": 4096})
    #: runs right before a write is judged
    before_write: Callable[[], None] = lambda: None

    def resources(self, server_id: str) -> dict[str, int]:
        """What the server has on the compute provider."""
        found: dict[str, int] = self.consumers[server_id]["allocations"][PROVIDER]["resources"]
        return found

    def touch(self, server_id: str, **resources: int) -> None:
        """Another writer changes the server's allocation."""
        self.consumers[server_id]["consumer_generation"] += 1
        self.resources(server_id).update(resources)

    def answer(self, method: str, path: str, body: Any) -> tuple[str, Reply]:
        """The place of the errors table, and the answer."""
        if found := re.fullmatch(r"/placement/allocations/([^/]+)", path):
            if method == "PUT":
                self.before_write()
                return "allocate", (*self._put(found[1], body), {})
            return "allocation", (200, self.consumers.get(found[1], {"allocations": {}}), {})
        if path == f"/placement/resource_providers/{PROVIDER}/inventories":
            return "inventory", (
                200,
                {"inventories": self.inventories, "resource_provider_generation": 31},
                {},
            )
        if path == f"/placement/resource_providers/{PROVIDER}/usages":
            return "usage", (200, {"usages": self._usages(), "resource_provider_generation": 31}, {})
        return "unknown", (404, {}, {})

    def _usages(self, but: str = "") -> dict[str, int]:
        usages = dict(self.others)
        for server_id in self.consumers.keys() - {but}:
            for name in usages:
                usages[name] += self.resources(server_id).get(name, 0)
        return usages

    def _put(self, server_id: str, body: Any) -> tuple[int, Any]:
        known = self.consumers[server_id]
        if set(body) != {"allocations", "consumer_generation", "project_id", "user_id"}:
            return 400, _error(400, "placement.undefined_code")
        if body["consumer_generation"] != known["consumer_generation"]:
            return 409, _error(409, "placement.concurrent_update")
        used = self._usages(but=server_id)
        for name, limits in self.inventories.items():
            asked = body["allocations"][PROVIDER]["resources"][name]
            capacity = (limits["total"] - limits["reserved"]) * limits["allocation_ratio"]
            if asked > limits["max_unit"] or used[name] + asked > capacity:
                return 409, _error(409, "placement.undefined_code")
        generations = {uuid: part["generation"] + 1 for uuid, part in known["allocations"].items()}
        self.consumers[server_id] = {
            **body,
            "consumer_generation": known["consumer_generation"] + 1,
            "allocations": {
                uuid: {"generation": generations[uuid], "resources": part["resources"]}
                for uuid, part in body["allocations"].items()
            },
        }
        return 204, None


def _error(status: int, code: str) -> dict[str, Any]:
    return {
        "errors": [{"status": status, "title": "t", "detail": "words that must not matter", "code": code}]
    }
