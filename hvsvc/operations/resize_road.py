"""Looks for the flavors that would bring a server to a size through Nova."""

from __future__ import annotations

from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.domain.resize_road import ResizeRoad, describe_road, is_exact, rank_flavors, wished_size
from hvsvc.domain.target import Target
from hvsvc.domain.world import World
from hvsvc.errors import HvsvcError
from hvsvc.operations.ports import Servers


async def read_resize_road(servers: Servers | None, world: World, target: Target) -> ResizeRoad | None:
    """What `openstack server resize` would mean for the target.

    None for a domain that is not Nova's, and where Nova cannot tell: a plan does not
    fail for it.
    """
    server = world.server
    if servers is None or server is None:
        return None
    size = wished_size(world.domain, target)
    try:
        ranked = rank_flavors(await servers.list_flavors(), server, size)
        exact = await _first_usable(servers, server, [found for found in ranked if is_exact(found, size)])
        above = await _first_usable(servers, server, [found for found in ranked if not is_exact(found, size)])
    except HvsvcError:
        return None
    return describe_road(server, size, exact, above)


async def _first_usable(servers: Servers, server: ServerFacts, ranked: list[Flavor]) -> Flavor | None:
    """Access to a flavor that is not public is asked for only where it would be chosen: it takes a call each."""
    for flavor in ranked:
        if flavor.public or await servers.may_use_flavor(flavor.id, server.project_id):
            return flavor
    return None
