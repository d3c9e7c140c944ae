"""Flavors as Nova shows them."""

from __future__ import annotations

from typing import Any


def own_flavor(name: str, vcpus: int, ram: int, **specs: str) -> dict[str, Any]:
    """A flavor as a server embeds it."""
    sizes = {"vcpus": vcpus, "ram": ram, "disk": 1, "ephemeral": 0, "swap": 0}
    return {"original_name": name, **sizes, "extra_specs": specs}


def flavor(name: str, vcpus: int, ram: int, **changes: Any) -> dict[str, Any]:
    """A flavor as Nova lists it, with the id "f-NAME"."""
    shown = {"id": f"f-{name}", "name": name, "vcpus": vcpus, "ram": ram, "disk": 1, "extra_specs": {}}
    more = {
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": True,
    }
    return shown | more | changes


def answer_flavors(
    path: str,
    query: dict[str, str],
    pages: list[list[dict[str, Any]]],
    projects: dict[str, list[str]] | None,
) -> tuple[int, Any]:
    """Status and answer for a path below /flavors; `projects` None where the credential may not ask for access."""
    if path.endswith("/detail"):
        last = query.get("marker")
        number = next((n for n, page in enumerate(pages, 1) if page and page[-1]["id"] == last), 0)
        more = {"flavors_links": [{"rel": "next", "href": "…"}]} if number + 1 < len(pages) else {}
        return 200, {"flavors": pages[number], **more}
    if projects is None:
        return 403, {"forbidden": {"code": 403}}
    flavor_id = path.split("/")[-2]
    grants = [{"flavor_id": flavor_id, "tenant_id": project} for project in projects.get(flavor_id, [])]
    return 200, {"flavor_access": grants}
