"""docs/credentials.md on a real Keystone, Nova and Placement: what its credential does, and what it cannot."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openstack.config
import pytest
from openstack.connection import Connection

from tests.documents import read_blocks
from tests.hvsvc_process import HvsvcProcess
from tests.lab.cloud import Lab


def block(kind: str) -> str:
    """The documents' one block of this kind."""
    (found,) = read_blocks(kind)
    return found.text


@dataclass(frozen=True)
class Restricted:
    """clouds.yaml with the restricted credential as cloud "hvsvc", and a session that uses it directly."""

    clouds_yaml: Path
    connection: Connection

    def ask(self, method: str, path: str, body: Any = None, service: str = "compute") -> int:
        """The HTTP status of a call."""
        proxy = getattr(self.connection, service)
        answer = proxy.request(
            path, method, json=body, raise_exc=False, microversion="2.51" if service == "compute" else "1.36"
        )
        status: int = answer.status_code
        return status


@pytest.fixture(scope="module")
def restricted(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restricted]:
    """A user as the document makes it, and its application credential."""
    admin = lab.cloud("admin")
    identity: Any = admin.identity
    project = identity.find_project("admin")
    role = identity.find_role("hvsvc") or identity.create_role(name="hvsvc")
    password = secrets.token_urlsafe()
    user = identity.create_user(name=f"hvsvc-{secrets.token_hex(2)}", password=password, domain_id="default")
    for each in (role, identity.find_role("admin")):
        identity.assign_project_role_to_user(project, user, each)
    auth_url = lab.env()["OS_AUTH_URL"]
    auth = {"auth_url": auth_url, "user_id": user.id, "password": password, "project_id": project.id}
    owner = Connection(auth=auth, region_name="RegionOne", identity_api_version="3")
    own: Any = owner.identity
    made = own.create_application_credential(
        user=user.id, name="hvsvc", access_rules=json.loads(block("json"))
    )
    path = tmp_path_factory.mktemp("credential") / "clouds.yaml"
    cloud = {
        "auth_type": "v3applicationcredential",
        "auth": {
            "auth_url": auth_url,
            "application_credential_id": made.id,
            "application_credential_secret": made.secret,
        },
        "region_name": "RegionOne",
        "identity_api_version": "3",
    }
    path.write_text(json.dumps({"clouds": {"hvsvc": cloud}}))
    region = openstack.config.OpenStackConfig(config_files=[str(path)], load_envvars=False).get_one("hvsvc")
    connection = Connection(config=region)
    try:
        yield Restricted(path, connection)
    finally:
        connection.close()
        owner.close()
        identity.delete_user(user)


@pytest.fixture(scope="module")
def hvsvc(lab: Lab, restricted: Restricted) -> Iterator[HvsvcProcess]:
    environ = {"OS_CLIENT_CONFIG_FILE": str(restricted.clouds_yaml)}
    settings = '[nova]\ncloud = "hvsvc"\n[placement]\npolicy = "enforce"'
    with HvsvcProcess(lab.libvirt_uri, settings, environ=environ) as daemon:
        yield daemon


def reasons(operation: dict[str, Any]) -> set[str]:
    return {item["reason"] for item in operation["reasons"]}


def test_the_restricted_credential_passes_the_reference_run(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("restricted", image="lab-nocpuauto")
    lab.wait_agent(server)
    plan = hvsvc.hvctl_json("plan", server.name, "--vcpus", "4", "--memory", "1GiB")
    assert plan["resize"]["exact"]["name"] == "big"
    raised = hvsvc.hvctl_json(
        "raise", server.name, "--max-vcpus", "8", "--max-memory", "2GiB", "--reboot", "soft"
    )
    assert (raised["outcome"], reasons(raised)) == ("COMPLETE", {"LOST_BY_HARD_REBOOT"})
    scaled = hvsvc.hvctl_json("scale", server.name, "--vcpus", "8", "--memory", "1GiB")
    assert (scaled["outcome"], reasons(scaled)) == ("COMPLETE", set())
    assert scaled["after"]["vcpus"]["guest_online"] == 8
    allocated = lab.cloud("admin").placement.get(f"/allocations/{server.id}", microversion="1.36").json()
    (provider,) = allocated["allocations"].values()
    assert (provider["resources"]["VCPU"], provider["resources"]["MEMORY_MB"]) == (8, 1024)


def test_the_restricted_credential_is_refused_everything_else(lab: Lab, restricted: Restricted) -> None:
    server = lab.create_server("kept", booted=False)
    path = f"/servers/{server.id}"
    assert restricted.ask("GET", path) == 200
    assert restricted.ask("DELETE", path) == 401
    assert restricted.ask("PUT", path, {"server": {"name": "renamed"}}) == 401
    assert restricted.ask("POST", "/servers", {"server": {}}) == 401
    assert restricted.ask("GET", "/os-hypervisors") == 401
    assert restricted.ask("DELETE", f"/allocations/{server.id}", service="placement") == 401
    assert restricted.ask("GET", f"/allocations/{server.id}", service="placement") == 200
    assert (lab.folder / "etc/nova/policy.yaml").read_text() == block("policy"), (
        "Nova runs with another policy"
    )
    # Access rules do not look into the body: policy refuses what is not a reboot.
    actions: list[dict[str, Any]] = [
        {"forceDelete": None},
        {"os-stop": None},
        {"resize": {"flavorRef": "1"}},
        {"rebuild": {"imageRef": "70a599e0-31e7-49b7-b260-868f441e862b"}},
        {"migrate": None},
        {"os-resetState": {"state": "error"}},
        {"evacuate": {}},
        {"shelveOffload": None},
    ]
    for action in actions:
        assert restricted.ask("POST", f"{path}/action", action) == 403, action
    seen = lab.nova_server(server.id)
    assert (seen.status, seen.task_state, seen.name) == ("ACTIVE", None, server.name)
    lab.wait_booted(server)
    assert restricted.ask("POST", f"{path}/action", {"reboot": {"type": "SOFT"}}) == 202
    lab.wait_booted(server)


@pytest.mark.nova_long
def test_a_members_credential_does_what_it_may(lab: Lab) -> None:
    server = lab.create_server("mine", image="lab-nocpuauto")
    lab.wait_agent(server)
    other = lab.create_server("theirs", project="admin")
    lab.wait_agent(other)
    environ = {"OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    with HvsvcProcess(lab.libvirt_uri, '[nova]\ncloud = "lab-demo"', environ=environ) as daemon:
        raised = daemon.hvctl_json("raise", server.name, "--max-vcpus", "4", "--reboot", "soft")
        assert raised["outcome"] == "COMPLETE", raised
        scaled = daemon.hvctl_json("scale", server.name, "--vcpus", "4")
        assert scaled["outcome"] == "COMPLETE", scaled
        assert scaled["after"]["vcpus"]["guest_online"] == 4
        shown = daemon.hvctl_json("dominfo", server.name)
        assert "PLACEMENT_NOT_PERMITTED" in json.dumps(shown)

        domain_id = lab.domain_id(other)
        refused = daemon.hvctl("raise", other.name, "--max-vcpus", "4", "--reboot", "soft", "-f", "json")
        assert refused.json["error"]["code"] not in {"INTERNAL", "UNKNOWN"}, refused
        assert refused.code in {3, 8}, refused
        assert lab.domain_id(other) == domain_id
        assert daemon.hvctl_json("dominfo", other.name)["vcpus"]["maximum_config"] == 2
