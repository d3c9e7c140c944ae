"""The other road on a real Nova: `hvctl scale --via resize`, and `--cloud`, which finds the host."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hvsvc_process import Answer, HvsvcProcess
from tests.lab.cloud import Lab, Server

pytestmark = pytest.mark.nova_long
MIB_KIB = 1024
GIB_KIB = 1024 * 1024


@pytest.fixture(scope="module")
def hvsvc(lab: Lab) -> Iterator[HvsvcProcess]:
    """The daemon on the lab's libvirt, with the administrator's credential; hvctl finds clouds.yaml as it does."""
    environ = {"OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    with HvsvcProcess(lab.libvirt_uri, '[nova]\ncloud = "lab-admin"', environ=environ) as daemon:
        yield daemon


@pytest.fixture
def clouds(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(lab.clouds_yaml))


@pytest.fixture
def template(hvsvc: HvsvcProcess, lab: Lab, tmp_path: Path) -> str:
    """Where hvsvc listens on a host of that name: the lab's host is one, and its socket the daemon's."""
    host = next(iter(lab.cloud("admin").compute.services(binary="nova-compute"))).host
    (tmp_path / f"{host}.sock").symlink_to(hvsvc.socket)
    return f"unix://{tmp_path}/{{host}}.sock"


def resize(hvsvc: HvsvcProcess, server: Server, *more: str, cloud: str = "lab-demo") -> Answer:
    """2/512 to 4/1024: from flavor small to big."""
    words = ("scale", server.name, "--vcpus", "4", "--memory", "1GiB", "--via", "resize")
    return hvsvc.hvctl("--cloud", cloud, *words, *more, "-f", "json")


def flavor_of(lab: Lab, server: Server) -> str:
    name: str = lab.nova_server(server.id).flavor.original_name
    return name


def test_plan_shows_the_other_road(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("road")
    admin = lab.cloud("admin").compute
    word = secrets.token_hex(2)
    hidden = admin.create_flavor(name=f"hidden-{word}", vcpus=3, ram=768, disk=1, is_public=False)
    granted = admin.create_flavor(name=f"granted-{word}", vcpus=3, ram=800, disk=1, is_public=False)
    admin.flavor_add_tenant_access(granted, str(lab.cloud("demo").current_project_id))
    admin.create_flavor_extra_specs(granted, {"hw:cpu_policy": "shared"})
    try:
        plan = hvsvc.hvctl_json("plan", server.name, "--vcpus", "4", "--memory", "1GiB")["resize"]
        assert plan["exact"]["name"] == "big"
        assert (plan["exact"]["vcpus"], plan["exact"]["memory_mib"], plan["exact"]["disk_gib"]) == (
            4,
            1024,
            1,
        )
        road = hvsvc.hvctl_json("plan", server.name, "--vcpus", "3", "--memory", "768MiB")["resize"]
        assert "exact" not in road, "the hidden flavor has just the size, and is not this project's"
        assert road["above"]["name"] == granted.name
        assert any("hw:cpu_policy none → shared" in text for text in road["consequences"])
    finally:
        admin.delete_flavor(hidden)
        admin.delete_flavor(granted)
    nothing = hvsvc.hvctl_json("plan", server.name, "--vcpus", "64")["resize"]
    assert nothing.keys() == {"consequences"}
    assert "64 vCPUs" in nothing["consequences"][0]


def test_a_resize_is_verified_and_confirmed(lab: Lab, hvsvc: HvsvcProcess, clouds: None) -> None:
    server = lab.create_server("resize")
    lab.wait_agent(server)
    refused = resize(hvsvc, server)
    assert (refused.code, refused.json["error"]["reason"]) == (4, "REBOOT_REQUIRED")
    checked = resize(hvsvc, server, "--reboot", "soft", "--dry-run")
    assert (checked.code, checked.json["outcome"], checked.json["changed"]) == (0, "VALIDATED", False)
    assert flavor_of(lab, server) == "small"

    done = resize(hvsvc, server, "--reboot", "soft")
    assert done.code == 0, done
    assert (done.json["outcome"], done.json["changed"], done.json["flavor"]) == ("COMPLETE", True, "big")
    assert [(step["kind"], step["state"]) for step in done.json["steps"]] == [
        ("RESIZE", "DONE"),
        ("VERIFY", "DONE"),
        ("CONFIRM", "DONE"),
    ]
    seen = lab.nova_server(server.id)
    assert (seen.status, seen.task_state, seen.flavor.original_name) == ("ACTIVE", None, "big")
    vcpus = done.json["after"]["vcpus"]
    assert (vcpus["current_live"], vcpus["guest_online"]) == (4, 4)
    assert done.json["after"]["memory"]["balloon_actual_kib"] == GIB_KIB
    assert len([cpu for cpu in lab.agent(server, "guest-get-vcpus") if cpu["online"]]) == 4

    again = resize(hvsvc, server, "--reboot", "soft")
    assert (again.code, again.json["outcome"], again.json["changed"]) == (0, "COMPLETE", False)


def test_a_resize_that_no_host_has_room_for_leaves_the_server_as_it_was(
    lab: Lab, hvsvc: HvsvcProcess, clouds: None
) -> None:
    server = lab.create_server("toobig")
    lab.wait_agent(server)
    admin = lab.cloud("admin").compute
    huge = admin.create_flavor(name=f"huge-{secrets.token_hex(2)}", vcpus=4, ram=1000, disk=9000)
    domain_id = lab.domain_id(server)
    try:
        words = (
            "scale",
            server.name,
            "--vcpus",
            "4",
            "--memory",
            "1000MiB",
            "--via",
            "resize",
            "--reboot",
            "soft",
        )
        answer = hvsvc.hvctl("--cloud", "lab-admin", *words, "-f", "json")
    finally:
        admin.delete_flavor(huge)
    assert answer.code == 4, answer
    assert "no host has room" in answer.json["error"]["message"]
    assert "outcome" not in answer.json
    assert (flavor_of(lab, server), lab.domain_id(server)) == ("small", domain_id)
    assert lab.nova_server(server.id).status == "ACTIVE"


def test_a_server_whose_guest_does_not_come_back_is_reverted(
    lab: Lab, hvsvc: HvsvcProcess, clouds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest of this server answers before; resized, its memory is too small to unpack its initrd."""
    server = lab.create_server("revert")
    lab.wait_agent(server)
    admin = lab.cloud("admin").compute
    tiny = admin.create_flavor(name=f"tiny-{secrets.token_hex(2)}", vcpus=4, ram=48, disk=1)
    try:
        words = (
            "scale",
            server.name,
            "--vcpus",
            "4",
            "--memory",
            "48MiB",
            "--via",
            "resize",
            "--reboot",
            "soft",
        )
        answer = hvsvc.hvctl("--cloud", "lab-demo", *words, "-f", "json")
        seen = lab.wait_active(server)
    finally:
        admin.delete_flavor(tiny)
    assert answer.code == 4, answer
    assert "reverted" in answer.json["error"]["message"]
    assert answer.json["steps"][-1]["kind"] == "REVERT"
    assert seen.flavor.original_name == "small"


def test_hvctl_finds_the_host_of_a_server(
    lab: Lab,
    hvsvc: HvsvcProcess,
    clouds: None,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = lab.create_server("found", booted=False)

    def hvctl(*words: str) -> Any:
        return hvsvc.hvctl_anywhere("-f", "json", *words)

    found = hvctl("--cloud", "lab-admin", "--cloud-target", template, "dominfo", server.name)
    assert (found.code, found.json["uuid"]) == (0, server.id)
    assert hvctl("--cloud", "lab-admin", "--cloud-target", template, "vcpucount", server.id).code == 0

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "hvsvc").mkdir()
    (tmp_path / "hvsvc" / "hvctl.toml").write_text(f'[cloud]\ntarget = "{template}"\n')
    monkeypatch.setenv("HVCTL_CLOUD", "lab-admin")
    assert hvctl("dominfo", server.name).json["uuid"] == server.id

    missing = hvctl("dominfo", "no-such-server")
    assert (missing.code, missing.json["error"]["reason"]) == (3, "SERVER_NOT_FOUND")

    hidden = hvctl("--cloud", "lab-demo", "dominfo", server.name)
    assert (hidden.code, hidden.json["error"]["reason"]) == (8, "NOVA_NOT_PERMITTED")
    assert "--target" in hidden.json["error"]["message"]
    named = hvctl("--cloud", "lab-demo", "--target", f"unix://{hvsvc.socket}", "dominfo", server.name)
    assert (named.code, named.json["uuid"]) == (0, server.id)


def test_several_servers_of_a_name_are_listed(
    lab: Lab, hvsvc: HvsvcProcess, clouds: None, template: str
) -> None:
    first, second = (lab.create_server("twin", booted=False) for _ in range(2))
    admin = lab.cloud("admin").compute
    for server in (first, second):
        admin.update_server(server.id, name="twins (a+b)")
    answer = hvsvc.hvctl_anywhere(
        "--cloud", "lab-admin", "--cloud-target", template, "-f", "json", "dominfo", "twins (a+b)"
    )
    assert answer.code == 2, answer
    error = answer.json["error"]
    assert error["reason"] == "AMBIGUOUS_NAME"
    assert first.id in error["metadata"]["candidates"]
    assert second.id in error["metadata"]["candidates"]
