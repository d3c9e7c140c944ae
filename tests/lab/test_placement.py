"""Placement's allocation kept at the truth, on a real Nova and Placement."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libvirt
import pytest
import yaml

from hvsvc.adapters.placement import PlacementAllocations
from hvsvc.domain.allocation import Size
from hvsvc.errors import NotPermittedError, Reason
from tests.hvsvc_process import HvsvcProcess
from tests.lab.books import Books
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.forwarder import Forwarder

GIB_KIB = 1024 * 1024


@pytest.fixture(scope="module")
def books(lab: Lab) -> Books:
    return Books(lab)


@contextmanager
def daemon(
    lab: Lab, policy: str, *, cloud: str = "lab-admin", clouds_yaml: Path | None = None, **keys: Any
) -> Any:
    """hvsvc with this policy."""
    settings = "".join(f"{key} = {value}\n" for key, value in keys.items())
    sections = f'[nova]\ncloud = "{cloud}"\n[placement]\npolicy = "{policy}"\n{settings}[drift]\nsweep_interval_s = 5'
    environ = {"OS_CLIENT_CONFIG_FILE": str(clouds_yaml or lab.clouds_yaml)}
    with HvsvcProcess(lab.libvirt_uri, sections, environ=environ) as process:
        yield process


@pytest.fixture(autouse=True)
def servers_go(lab: Lab) -> Iterator[None]:
    """The project's quota is 20 cores."""
    yield
    for server in list(lab.servers):
        lab.delete_server(server)


@pytest.fixture
def enforcing(lab: Lab) -> Iterator[HvsvcProcess]:
    with daemon(lab, "enforce") as process:
        yield process


def raised(lab: Lab, hvsvc: HvsvcProcess, name: str) -> Server:
    """A server with room to grow to 8 vCPUs and 2 GiB."""
    server = lab.create_server(name, image="lab-nocpuauto")
    lab.wait_agent(server)
    done = hvsvc.hvctl_json(
        "raise", server.name, "--max-vcpus", "8", "--max-memory", "2GiB", "--reboot", "soft"
    )
    assert done["outcome"] == "COMPLETE", done
    return server


def allocation(hvsvc: HvsvcProcess, server: Server) -> tuple[int, int]:
    shown = hvsvc.hvctl_json("dominfo", server.name)["allocation"]
    return shown["vcpus"], shown["memory_mib"]


def kinds(answer: dict[str, Any]) -> list[str]:
    return [step["kind"] for step in answer["steps"]]


def untouched(lab: Lab, server: Server) -> tuple[Any, ...]:
    domain = lab.domain(server)
    return (
        domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE),
        domain.ID(),
        domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_LIVE),
    )


def test_a_growth_is_allocated_first_and_a_refusal_by_max_unit_changes_nothing(
    lab: Lab, books: Books, enforcing: HvsvcProcess
) -> None:
    server = raised(lab, enforcing, "books")
    provider, before = books.provider(server), books.resources(server)
    assert books.size(server) == (2, 512), "a raised ceiling alone is not allocated"
    state = untouched(lab, server)

    with books.inventory(provider, max_unit=4):
        answer = enforcing.hvctl("scale", server.name, "--vcpus", "8", "--memory", "1GiB", "-f", "json")
        plan = enforcing.hvctl_json("plan", server.name, "--vcpus", "8")
    assert answer.code == 4, answer
    error = answer.json["error"]
    assert error["reason"] == "ALLOCATION_ABOVE_MAX_UNIT"
    assert (error["metadata"]["asked"], error["metadata"]["maxUnit"]) == ("8", "4")
    assert [blocker["reason"] for blocker in plan["blockers"]] == ["ALLOCATION_ABOVE_MAX_UNIT"]
    assert untouched(lab, server) == state
    assert books.resources(server) == before

    done = enforcing.hvctl_json("scale", server.name, "--vcpus", "8", "--memory", "1GiB")
    assert done["outcome"] == "COMPLETE", done
    assert kinds(done)[0] == "SET_ALLOCATION"
    assert done["steps"][0]["evidence"] == "Placement has 8 vCPUs and 1024 MiB allocated"
    assert books.resources(server) == before | {"VCPU": 8, "MEMORY_MB": 1024}, "DISK_GB survives"
    assert done["after"]["allocation"] == {"vcpus": 8, "memory_mib": 1024, "resource_provider": provider}
    wait_until("usage that is the sum of its consumers", lambda: books.usage_agrees(provider), 30)
    table = enforcing.hvctl("dominfo", server.name, "-f", "table").stdout
    assert "vCPUs    2         8            8" in table, table

    # a shrink of the memory gives back what was allocated for it
    shrunk = enforcing.hvctl_json("setmem", server.name, "768MiB")
    assert shrunk["outcome"] == "COMPLETE", shrunk
    assert kinds(shrunk)[-1] == "SET_ALLOCATION"
    assert books.size(server) == (8, 768)

    # a hard reboot by Nova makes the definition anew from the flavor: the books follow without being asked
    lab.cloud("admin").compute.reboot_server(server.id, "HARD")
    wait_until("allocation of the flavor's size", lambda: books.size(server) == (2, 512), 60)
    lab.wait_active(server)
    assert allocation(enforcing, server) == (2, 512)
    assert books.resources(server) == before


@pytest.mark.nova_long
def test_api_04_a_growth_that_fails_gives_its_allocation_back(
    lab: Lab, books: Books, enforcing: HvsvcProcess
) -> None:
    server = lab.create_server("undone", image="lab-deaf")
    answer = enforcing.hvctl(
        "scale", server.name, "--vcpus", "4", "--memory", "1GiB", "--reboot", "soft", "-f", "json"
    )
    assert answer.code == 4, answer
    assert answer.json["error"]["reason"] == "CEILING_LOST"
    steps = [(step["kind"], step["state"]) for step in answer.json["steps"]]
    assert steps[0] == ("SET_ALLOCATION", "DONE")
    assert steps[-1] == ("SET_ALLOCATION", "DONE"), steps
    assert books.size(server) == (2, 512)


@pytest.mark.nova_long
def test_without_capacity_nothing_changes(lab: Lab, books: Books, enforcing: HvsvcProcess) -> None:
    server = raised(lab, enforcing, "full")
    provider = books.provider(server)
    state = untouched(lab, server)
    # of 16 * 16 all but 4 reserved: the lab's other servers use them already
    with books.inventory(provider, reserved=15, max_unit=16, allocation_ratio=4):
        answer = enforcing.hvctl("setvcpus", server.name, "8", "-f", "json")
    assert answer.code == 4, answer
    assert answer.json["error"]["reason"] == "ALLOCATION_NO_CAPACITY", answer
    assert untouched(lab, server) == state
    assert books.size(server) == (2, 512)


@pytest.mark.nova_long
def test_report_warns_and_writes_nothing(lab: Lab, books: Books) -> None:
    with daemon(lab, "report") as hvsvc:
        server = raised(lab, hvsvc, "report")
        done = hvsvc.hvctl_json("setvcpus", server.name, "4")
        assert done["outcome"] == "COMPLETE", done
        assert [reason["reason"] for reason in done["reasons"]] == ["ALLOCATION_DIFFERS"]
        shown = hvsvc.hvctl_json("dominfo", server.name)
        assert (shown["allocation"]["vcpus"], shown["vcpus"]["current_live"]) == (2, 4)
        assert "ALLOCATION_DIFFERS" in [condition["reason"] for condition in shown["conditions"]]
    assert books.size(server) == (2, 512)
    # what was grown before is put right at the start of a daemon that may
    with daemon(lab, "enforce"):
        wait_until("allocation of what runs", lambda: books.size(server) == (4, 512), 30)


@pytest.mark.nova_long
def test_a_member_is_told_that_it_may_not(lab: Lab, books: Books) -> None:
    with daemon(lab, "report", cloud="lab-demo") as hvsvc:
        server = raised(lab, hvsvc, "member")
        shown = hvsvc.hvctl_json("dominfo", server.name)
        assert "allocation" not in shown
        assert "PLACEMENT_NOT_PERMITTED" in [condition["reason"] for condition in shown["conditions"]]
        grown = hvsvc.hvctl_json("setvcpus", server.name, "4")
        assert grown["outcome"] == "COMPLETE", grown
        assert [reason["reason"] for reason in grown["reasons"]] == ["PLACEMENT_NOT_PERMITTED"]
    with daemon(lab, "enforce", cloud="lab-demo") as hvsvc:
        state = untouched(lab, server)
        answer = hvsvc.hvctl("setvcpus", server.name, "8", "-f", "json")
        assert answer.code == 8, answer
        assert answer.json["error"]["reason"] == "PLACEMENT_NOT_PERMITTED"
        assert untouched(lab, server) == state


@pytest.fixture
def forwarder(lab: Lab, tmp_path: Path) -> Iterator[tuple[Forwarder, Path]]:
    """A forwarder before Placement, and a clouds.yaml that goes through it."""
    with Forwarder(8778) as running:
        clouds = yaml.safe_load(lab.clouds_yaml.read_text())
        endpoint = str(lab.cloud("admin").placement.get_endpoint()).replace(":8778", f":{running.port}")
        clouds["clouds"]["lab-admin"]["placement_endpoint_override"] = endpoint
        path = tmp_path / "clouds.yaml"
        path.write_text(yaml.safe_dump(clouds))
        yield running, path


@pytest.mark.nova_long
@pytest.mark.parametrize(("how", "reason"), [("cut", "PLACEMENT_UNAVAILABLE"), ("hang", "CALL_TIMED_OUT")])
def test_without_placement_a_growth_is_refused_and_a_report_still_comes(
    lab: Lab, books: Books, forwarder: tuple[Forwarder, Path], how: str, reason: str
) -> None:
    forward, clouds_yaml = forwarder
    with daemon(lab, "enforce", clouds_yaml=clouds_yaml, call_timeout_s=8) as hvsvc:
        server = raised(lab, hvsvc, "alone")
        state = untouched(lab, server)
        getattr(forward, how)()
        answer = hvsvc.hvctl("setvcpus", server.name, "4", "-f", "json")
        assert answer.code == 6, answer
        assert answer.json["error"]["reason"] == reason
        assert untouched(lab, server) == state
        shown = hvsvc.hvctl_json("dominfo", server.name)
        assert "allocation" not in shown
        assert shown["vcpus"]["guest_online"] == 2
        assert reason in [condition["reason"] for condition in shown["conditions"]]
        # not a growth: it is done, and says that its books could not be read
        lowered = hvsvc.hvctl("setmem", server.name, "512MiB", "-f", "json")
        assert lowered.code == 7, lowered
        assert lowered.json["outcome"] == "UNCONFIRMED"
        assert reason in [each["reason"] for each in lowered.json["reasons"]]
        forward.mend()
        done = hvsvc.hvctl_json("setvcpus", server.name, "4")
        assert done["outcome"] == "COMPLETE", done
        assert books.size(server) == (4, 512)

        # what Nova does meanwhile is put right when Placement is back
        getattr(forward, how)()
        before = lab.domain_id(server)
        lab.cloud("admin").compute.reboot_server(server.id, "HARD")
        wait_until("hard reboot", lambda: lab.domain_id(server) not in {before, None}, 60)
        lab.wait_active(server)
        assert books.size(server) == (4, 512)
        forward.mend()
        wait_until("allocation of the flavor's size", lambda: books.size(server) == (2, 512), 60)


@pytest.mark.nova_long
async def test_other_writers_of_the_same_allocation_are_not_overwritten(
    lab: Lab, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(lab.clouds_yaml))
    server = lab.create_server("contended", booted=False)
    placement = PlacementAllocations("lab-admin", call_timeout_s=30)
    stop, taken = threading.Event(), [books.resources(server)["DISK_GB"]]

    def write_disks() -> None:
        while not stop.is_set():
            wanted = 1 + len(taken) % 3
            if books.put(server, DISK_GB=wanted) == 204:
                taken.append(wanted)
            stop.wait(0.02)

    writer = threading.Thread(target=write_disks)
    writer.start()
    try:
        seen = await placement.read_allocation(server.id)
        for vcpus in (4, 2, 5, 3, 6):
            wanted = Size(vcpus, 512 + vcpus)
            seen = await placement.set_allocation(server.id, seen, wanted)
            assert seen.size == wanted
    finally:
        stop.set()
        writer.join()
        placement.close()
    assert len(taken) > 3, "the other one was never heard"
    assert books.resources(server) == {"VCPU": 6, "MEMORY_MB": 518, "DISK_GB": taken[-1]}


@pytest.mark.nova_long
async def test_a_plain_member_may_not_even_read(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(lab.clouds_yaml))
    server = lab.create_server("shy", booted=False)
    placement = PlacementAllocations("lab-demo", call_timeout_s=30)
    with pytest.raises(NotPermittedError) as caught:
        await placement.read_allocation(server.id)
    placement.close()
    assert caught.value.reason is Reason.PLACEMENT_NOT_PERMITTED
