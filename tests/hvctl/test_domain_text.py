"""A domain for people."""

from __future__ import annotations

from hvsvc.hvctl.document import document_of
from hvsvc.hvctl.domain_text import dominfo_lines, label_of, sizes_grid, topology_text, vcpucount_lines
from hvsvc.v1 import domain_pb2
from tests.fakes.service_messages import GIB, MIB, domain, off_domain


def test_dominfo_has_virshs_labels_and_values() -> None:
    lines = dominfo_lines(document_of(domain(security_label="libvirt-1", security_enforcing=True)))
    assert lines[:14] == [
        "Id:             7",
        "Name:           instance-0000335c",
        "UUID:           6d0f2f04-3f4b-4a55-9b7f-9a4c8f0d1a11",
        "OS Type:        hvm",
        "State:          running",
        "CPU(s):         2",
        "CPU time:       12.5s",
        "Max memory:     1048576 KiB",
        "Used memory:    524288 KiB",
        "Persistent:     yes",
        "Autostart:      disable",
        "Managed save:   no",
        "Security model: apparmor",
        "Security DOI:   0",
    ]
    assert lines[14] == "Security label: libvirt-1 (enforcing)"
    assert "Flavor:         m1.small (2 vCPUs, 512 MiB)" in lines


def test_dominfo_of_a_domain_that_is_off() -> None:
    lines = dominfo_lines(document_of(off_domain()))
    assert lines[0] == "Id:             -"
    assert "State:          shut off" in lines
    assert "CPU(s):         1" in lines
    assert "Max memory:     1048576 KiB" in lines
    assert not [line for line in lines if line.startswith(("CPU time", "Security", "Nova", "Guest", "Etag"))]


def test_dominfo_shows_what_is_pending_and_the_conditions_made_safe() -> None:
    report = domain(
        pending_reboot=True,
        pending_reboot_reasons=["maximum vCPUs 8"],
        conditions=[domain_pb2.Condition(reason="AGENT_NOT_CONNECTED", message="\x1b]0;x\x07")],
    )
    report.nova.name = "evil\x1b[31m\u202e"
    lines = dominfo_lines(document_of(report))
    assert "Pending a reboot: maximum vCPUs 8" in lines
    assert "  AGENT_NOT_CONNECTED: \\x1b]0;x\\x07" in lines
    assert "Nova server:    evil\\x1b[31m\\u202e" in lines
    assert all(line.isprintable() for line in lines)


def test_config_and_live_stand_apart() -> None:
    report = domain()
    report.vcpus.maximum_config = 12
    rows = [line.split() for line in sizes_grid(document_of(report))]
    assert ["Maximum", "vCPUs", "12", "2"] in rows


def test_before_and_after() -> None:
    before = domain(max_vcpus=8)
    before.vcpus.ClearField("guest_online")
    after = domain(vcpus=8, max_vcpus=8, memory_kib=GIB)
    lines = sizes_grid(document_of(after), document_of(before))
    text = "\n".join(lines)
    assert "Current vCPUs        2 → 8             2 → 8" in lines
    assert "not reported → 8" in text
    assert "512 MiB → 1 GiB" in text
    assert [line for line in lines if line.startswith("Maximum vCPUs")] == [
        "Maximum vCPUs        8                 8"
    ]


def test_a_number_that_cannot_be_read_any_more_is_not_reported() -> None:
    after = domain()
    after.vcpus.ClearField("guest_online")
    assert "2 → not reported" in "\n".join(sizes_grid(document_of(after), document_of(domain())))


def test_vcpucount_is_virshs_table_and_the_guest() -> None:
    vcpus = document_of(domain(vcpus=8, max_vcpus=12).vcpus)
    assert [line.split() for line in vcpucount_lines(vcpus)] == [
        ["maximum", "config", "12"],
        ["maximum", "live", "12"],
        ["current", "config", "8"],
        ["current", "live", "8"],
        ["guest", "present", "8"],
        ["guest", "online", "8"],
    ]
    assert vcpucount_lines(vcpus)[0] == "maximum      config      12"
    assert len(vcpucount_lines(document_of(off_domain().vcpus))) == 2


def test_topology_text() -> None:
    assert topology_text({"sockets": 2, "dies": 1, "clusters": 1, "cores": 4, "threads": 2}) == (
        "2 sockets x 1 die x 1 cluster x 4 cores x 2 threads"
    )


def test_label() -> None:
    assert label_of(document_of(domain())) == "web-1 (instance-0000335c)"
    assert label_of(document_of(off_domain())) == "backup"
    assert label_of({"name": "domains/x"}) == "domains/x"


def test_memory_that_is_no_round_number_is_exact() -> None:
    report = domain(memory_kib=512 * MIB + 1)
    assert "524289 KiB" in "\n".join(sizes_grid(document_of(report)))
