#!/usr/bin/python3
"""What the lab's cloud holds: endpoints, the demo project and its user, flavors, images. Idempotent.

content.py endpoints | images | wait-services | delete-servers
Run by up.sh and down.sh with OS_* of the admin and HVSVC_LAB in the environment.
"""

import datetime as dt
import hashlib
import os
import pathlib
import sys
import time
from typing import Any

import openstack

LAB = pathlib.Path(os.environ["HVSVC_LAB"])
GUEST = LAB / "guest"
ENDPOINTS = {
    ("glance", "image"): "http://127.0.0.1:9292",
    ("nova", "compute"): "http://127.0.0.1:8774/v2.1",
    ("placement", "placement"): "http://127.0.0.1:8778",
    ("neutron", "network"): "http://127.0.0.1:9696",
}
FLAVORS = {"small": (2, 512), "big": (4, 1024)}
IMAGES = {  # name: words for the guest's init
    "lab": "",
    "lab-nocpuauto": "nocpuauto",
    "lab-noacpi": "noacpid",
    "lab-noga": "noga",
    "lab-deaf": "noacpid noga",
}


def create_endpoints(cloud: Any) -> None:
    for (name, kind), url in ENDPOINTS.items():
        if not cloud.identity.find_service(name):
            service = cloud.identity.create_service(name=name, type=kind)
            cloud.identity.create_endpoint(
                service_id=service.id, interface="public", url=url, region_id="RegionOne"
            )
    if not cloud.identity.find_project("demo"):
        project = cloud.identity.create_project(name="demo", domain_id="default")
        user = cloud.identity.create_user(
            name="demo", password="lab", domain_id="default", default_project_id=project.id
        )
        role = cloud.identity.find_role("member")
        cloud.identity.assign_project_role_to_user(project, user, role)


def create_images(cloud: Any) -> None:
    for name, (vcpus, ram_mib) in FLAVORS.items():
        if not cloud.compute.find_flavor(name):
            cloud.compute.create_flavor(name=name, vcpus=vcpus, ram=ram_mib, disk=1)
    blank = GUEST / "blank.raw"
    with blank.open("wb") as disk:
        disk.truncate(16 << 20)
    kernel = upload(cloud, "lab-kernel", GUEST / "vmlinuz", disk_format="aki", container_format="aki")
    ramdisk = upload(cloud, "lab-ramdisk", GUEST / "initrd.img", disk_format="ari", container_format="ari")
    for name, words in IMAGES.items():
        upload(
            cloud,
            name,
            blank,
            disk_format="raw",
            container_format="bare",
            kernel_id=kernel.id,
            ramdisk_id=ramdisk.id,
            hw_qemu_guest_agent="yes",
            # a guest that hangs in a soft lockup, as one boot in some hundred does under TCG, boots again by itself
            os_command_line=f"console=ttyS0 panic=-1 softlockup_panic=1 {words}".rstrip(),
        )


def upload(cloud: Any, name: str, path: pathlib.Path, **wanted: str) -> Any:
    """The image of this name, made anew when its file or what is wanted of it has changed."""
    md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    found = cloud.image.find_image(name)
    if found:
        flat = {**found.properties, **found.to_dict()}
        if found.checksum == md5 and all(flat.get(key) == value for key, value in wanted.items()):
            return found
        cloud.image.delete_image(found)
    return cloud.image.create_image(name, filename=str(path), visibility="public", wait=True, **wanted)


def wait_for_services(cloud: Any) -> None:
    """Until each Nova service has reported since it was started and Placement knows the host.

    "up" alone may come from before a restart: a server built then ends in ERROR, because nova-compute takes it for
    one whose build was interrupted.
    """
    started = {
        name: dt.datetime.fromtimestamp((LAB / "run" / f"{name}.pid").stat().st_mtime, dt.UTC)
        for name in ("nova-conductor", "nova-scheduler", "nova-compute")
    }
    waiting = set(started)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for service in cloud.compute.services():
            seen = service.updated_at and dt.datetime.fromisoformat(service.updated_at + "+00:00")
            if service.state == "up" and seen and seen > started.get(service.binary, seen):
                waiting.discard(service.binary)
        if not waiting and any(True for _ in cloud.placement.resource_providers()):
            return
        time.sleep(0.5)
    sys.exit(f"not reported to Nova and Placement within 120 s: {sorted(waiting) or 'a resource provider'}")


def delete_servers(cloud: Any) -> None:
    servers = list(cloud.compute.servers(details=False, all_projects=True))
    for server in servers:
        cloud.compute.delete_server(server, ignore_missing=True)
    for server in servers:
        cloud.compute.wait_for_delete(server, interval=0.5, wait=60)


ACTIONS = {
    "endpoints": create_endpoints,
    "images": create_images,
    "wait-services": wait_for_services,
    "delete-servers": delete_servers,
}
ACTIONS[sys.argv[1]](openstack.connect())
