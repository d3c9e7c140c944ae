"""What a small Keystone answers: its version, and a token with a catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def answer_keystone(
    path: str, url: str, token_id: str, services: Iterable[str]
) -> tuple[str, tuple[int, Any, dict[str, str]]]:
    """The place of the errors table, and the answer for a path below /identity."""
    if path != "/identity/v3/auth/tokens":
        links = [{"rel": "self", "href": f"{url}/identity/v3/"}]
        return "discovery", (200, {"version": {"id": "v3.14", "status": "stable", "links": links}}, {})
    place = {"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "id": "e"}
    urls = {"compute": f"{url}/compute/v2.1", "placement": f"{url}/placement"}
    catalog = [
        {"type": kind, "name": kind, "id": kind, "endpoints": [place | {"url": urls[kind]}]}
        for kind in services
    ]
    token = {
        "methods": ["password"],
        "issued_at": "2020-01-01T00:00:00.000000Z",
        "expires_at": "2999-01-01T00:00:00.000000Z",
        "user": {"id": "u", "name": "u", "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p", "name": "p", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"id": "r", "name": "member"}],
        "catalog": catalog,
    }
    return "auth", (201, {"token": token}, {"X-Subject-Token": token_id})
