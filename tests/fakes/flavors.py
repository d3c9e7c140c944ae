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


def flavor_page(pages: list[list[dict[str, Any]]], marker: str | None) -> dict[str, Any]:
    """The page after the one that ends with the marker; the first where there is none."""
    number = next((n for n, page in enumerate(pages, 1) if page and page[-1]["id"] == marker), 0)
    more = {"flavors_links": [{"rel": "next", "href": "…"}]} if number + 1 < len(pages) else {}
    return {"flavors": pages[number], **more}
