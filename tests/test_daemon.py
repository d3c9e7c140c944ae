"""The daemon as a process: start, stop, faults of its surroundings, and one change from end to end.

libvirt's test driver is enough for the life of the daemon; what is changed is changed on the QEMU driver.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from google.longrunning import operations_pb2
from google.longrunning.operations_pb2_grpc import OperationsStub
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from hvsvc.v1 import domain_pb2, scaling_pb2
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub
from tests.daemon_process import DaemonProcess
from tests.fakes.certificates import Authority, write_files
from tests.guest_domains import wait_for
from tests.private_libvirtd import PrivateLibvirtd
from tests.qemu_embed import EmbedRoot

HVSVC = (sys.executable, "-c", "from hvsvc.start import main; main()")
TEST_DRIVER = "test:///default"
SERVING, NOT_SERVING = 1, 2


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(TEST_DRIVER) as process:
        process.start()
        yield process


def hvsvc(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HVSVC, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def wait_health(channel: grpc.Channel, status: int) -> None:
    """Returns once the whole has this health."""
    for reply in HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=90):
        if reply.status == status:
            return
    raise AssertionError("the watch ended")


def test_it_serves_on_its_unix_socket_and_stops_in_order(daemon: DaemonProcess) -> None:
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o660
    with daemon.channel() as channel:
        wait_health(channel, SERVING)
        domains = DomainServiceStub(channel).ListDomains(domain_pb2.ListDomainsRequest()).domains
    assert [domain.libvirt_name for domain in domains] == ["test"]
    assert daemon.stop() == 0
    assert daemon.next_state() == "STOPPING=1"
    assert not daemon.socket.exists()
    assert [each["event"] for each in daemon.events() if each["logger"] == "hvsvc.daemon"] == [
        "serving",
        "stopping",
        "stopped",
    ]


def test_sigint_stops_it_too(daemon: DaemonProcess) -> None:
    assert daemon.stop(signal.SIGINT) == 0


def test_a_stop_ends_open_watches(daemon: DaemonProcess) -> None:
    with daemon.channel() as channel:
        watch = DomainServiceStub(channel).WatchDomains(domain_pb2.WatchDomainsRequest(), timeout=60)
        assert next(watch).domain.libvirt_name == "test"
        assert daemon.stop() == 0
        with pytest.raises(grpc.RpcError) as caught:
            list(watch)
    assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def test_a_second_signal_ends_it_at_once() -> None:
    endless = (
        "import asyncio; from hvsvc.operations.running import Operations; "
        "Operations.drain = lambda self, grace_s: asyncio.sleep(3600)"
    )
    with DaemonProcess(TEST_DRIVER, before=endless) as process:
        process.start()
        assert process.process is not None
        process.process.send_signal(signal.SIGTERM)
        assert process.next_state() == "STOPPING=1"
        with process.channel() as channel:
            wait_health(channel, NOT_SERVING)
        assert process.stop() == 128 + signal.SIGTERM
        assert process.event("ended_at_once")["signal"] == "SIGTERM"


def test_the_watchdog_is_fed() -> None:
    with DaemonProcess(TEST_DRIVER, environ={"WATCHDOG_USEC": "100000"}) as process:
        process.start()
        assert [process.next_state() for _ in range(3)] == ["WATCHDOG=1"] * 3


def test_it_starts_without_libvirt_and_follows_it() -> None:
    libvirtd = PrivateLibvirtd()
    try:
        with DaemonProcess(libvirtd.uri) as process:
            process.start()
            with process.channel() as channel:
                health = HealthStub(channel)
                assert health.Check(health_pb2.HealthCheckRequest()).status == NOT_SERVING
                always = health_pb2.HealthCheckRequest(service="google.longrunning.Operations")
                assert health.Check(always).status == SERVING
                operations: Any = OperationsStub(channel)  # type: ignore[no-untyped-call]
                assert not operations.ListOperations(operations_pb2.ListOperationsRequest()).operations
                with pytest.raises(grpc.RpcError) as caught:
                    DomainServiceStub(channel).ListDomains(domain_pb2.ListDomainsRequest())
                assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
                libvirtd.start()
                wait_health(channel, SERVING)
                assert not DomainServiceStub(channel).ListDomains(domain_pb2.ListDomainsRequest()).domains
                libvirtd.kill()
                wait_health(channel, NOT_SERVING)
                libvirtd.start()
                wait_health(channel, SERVING)
            assert process.stop() == 0
    finally:
        libvirtd.stop()


def test_a_second_daemon_takes_neither_socket_nor_journal(daemon: DaemonProcess) -> None:
    done = hvsvc("serve", "--config", daemon.config)
    assert done.returncode == 1
    assert "journal" in done.stderr
    other = daemon.path / "other.toml"
    other.write_text(daemon.config.read_text().replace("journal.db", "other.db"))
    done = hvsvc("serve", "--config", other)
    assert done.returncode == 1
    assert "another process listens" in done.stderr
    with daemon.channel() as channel:
        assert DomainServiceStub(channel).ListDomains(domain_pb2.ListDomainsRequest()).domains


def test_mutual_tls_and_metrics_as_configured(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    client = ca.sign(x509.DNSName("monitor.example"))
    sections = (
        f'[tls]\ncert = "{files.cert}"\nkey = "{files.key}"\nclient_ca = "{files.client_ca}"\n'
        '[access.sans]\n"monitor.example" = "reader"\n[metrics]\nlisten = "127.0.0.1:0"\n'
    )
    with DaemonProcess(TEST_DRIVER, sections, listen='tcp = "127.0.0.1:0"') as process:
        process.start()
        port = process.event("listening")["port"]
        credentials = grpc.ssl_channel_credentials(ca.pem, client.key, client.cert)
        with grpc.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
            domain = DomainServiceStub(channel).GetDomain(domain_pb2.GetDomainRequest(name="test"))
            assert domain.libvirt_name == "test"
            with pytest.raises(grpc.RpcError) as caught:
                ScalingServiceStub(channel).SetVcpus(scaling_pb2.SetVcpusRequest(name="test", vcpus=1))
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        url = f"http://127.0.0.1:{process.event('metrics')['port']}/metrics"
        refused = 'hvsvc_rpcs_total{code="PERMISSION_DENIED",method="/hvsvc.v1.ScalingService/SetVcpus"} 1.0'

        def is_counted() -> bool:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return refused in reply.read().decode()

        # a call is counted when it is over, which is after its caller has the answer
        wait_for(is_counted, refused, timeout_s=10)
        assert process.stop() == 0


def test_a_start_that_fails_leaves_no_socket_behind() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with DaemonProcess(TEST_DRIVER, listen=f'insecure_loopback_tcp = "{address}"') as process:
            assert process.spawn().wait(90) == 1
            assert f"cannot listen on {address}" in process.event("cannot_start")["error"]
            assert "Traceback" not in process.read_log()
            assert not process.socket.exists()


def test_plaintext_only_with_its_warning() -> None:
    with DaemonProcess(TEST_DRIVER, listen='insecure_loopback_tcp = "127.0.0.1:0"') as process:
        process.start()
        warning = process.event("plaintext_listener")
        assert (warning["level"], warning["role"]) == ("warning", "reader")
        with grpc.insecure_channel(f"127.0.0.1:{warning['port']}") as channel:
            assert DomainServiceStub(channel).ListDomains(domain_pb2.ListDomainsRequest()).domains


def test_openstacksdk_is_not_loaded_on_a_host_without_nova(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    loaded = hvsvc_modules()
    assert "hvsvc.adapters.libvirt_domains" in loaded
    assert not {each.split(".")[0] for each in loaded} & {"openstack", "keystoneauth1", "requests"}


def hvsvc_modules() -> set[str]:
    program = "import sys, hvsvc.daemon; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_an_unknown_cloud_is_said_after_the_start(tmp_path: Path) -> None:
    environ = {"OS_CLIENT_CONFIG_FILE": os.fspath(tmp_path / "clouds.yaml")}
    (tmp_path / "clouds.yaml").write_text("clouds: {}\n")
    with DaemonProcess(TEST_DRIVER, '[nova]\ncloud = "gone"', environ=environ) as process:
        process.start()
        with process.channel() as channel:
            wait_health(channel, SERVING)
        assert process.event("nova_not_usable")["reason"] == "NOVA_NOT_CONFIGURED"
        assert process.stop() == 0
        done = subprocess.run(
            [*HVSVC, "check", "--config", process.config],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "gone" in done.stderr


def test_check_and_version(daemon: DaemonProcess, tmp_path: Path) -> None:
    done = hvsvc("check", "--config", daemon.config)
    assert (done.returncode, done.stdout) == (0, f"{daemon.config}: ok\n")
    assert hvsvc("--version").stdout.startswith("hvsvc ")
    bad = tmp_path / "bad.toml"
    bad.write_text('[libvirt]\nurl = "x"\n')
    for command in ("check", "serve"):
        done = hvsvc(command, "--config", bad)
        assert done.returncode == 2
        assert "url is not known" in done.stderr


def test_check_reads_the_certificates(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    files.key.write_bytes(ca.sign_server().key)
    sections = f'[tls]\ncert = "{files.cert}"\nkey = "{files.key}"\nclient_ca = "{files.client_ca}"\n'
    with DaemonProcess(TEST_DRIVER, sections) as process:
        for command in ("check", "serve"):
            done = hvsvc(command, "--config", process.config)
            assert done.returncode == {"check": 2, "serve": 1}[command]
            assert "[tls]" in done.stderr


DEFINITION = """\
<domain type="qemu">
  <name>web</name>
  <uuid>11111111-2222-4333-8444-555555555555</uuid>
  <memory unit="MiB">128</memory>
  <vcpu current="1">2</vcpu>
  <os><type arch="x86_64" machine="pc-q35-7.2">hvm</type></os>
  <features><acpi/></features>
  <cpu><topology sockets="2" cores="1" threads="1"/></cpu>
  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices>
</domain>
"""


def test_a_ceiling_raised_on_the_qemu_driver_is_there_after_a_restart(
    new_embed_root: EmbedRoot,
) -> None:
    # The driver reads its stored definitions when it starts.
    stored = new_embed_root.path / "etc/qemu"
    stored.mkdir()
    (stored / "web.xml").write_text(DEFINITION)
    with DaemonProcess(new_embed_root.uri, '[metrics]\nlisten = "127.0.0.1:0"\n') as process:
        process.start()
        with process.channel() as channel:
            before = DomainServiceStub(channel).GetDomain(domain_pb2.GetDomainRequest(name="web"), timeout=60)
            operation = ScalingServiceStub(channel).RaiseCeiling(
                scaling_pb2.RaiseCeilingRequest(name=before.name, max_vcpus=6, etag=before.etag)
            )
            operations: Any = OperationsStub(channel)  # type: ignore[no-untyped-call]
            ended = operations.WaitOperation(
                operations_pb2.WaitOperationRequest(name=operation.name), timeout=60
            )
        result = scaling_pb2.ScaleResult()
        assert ended.response.Unpack(result), ended
        assert result.changed
        assert (before.vcpus.maximum_config, result.after.vcpus.maximum_config) == (2, 6)
        assert result.after.topology.config.sockets == 6
        url = f"http://127.0.0.1:{process.event('metrics')['port']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as reply:
            figures = reply.read().decode().splitlines()
        assert 'hvsvc_operations_total{method="RaiseCeiling",outcome="PENDING_REBOOT"} 1.0' in figures
        assert "hvsvc_ceilings_lost 0.0" in figures
        assert process.stop() == 0
        process.start_again()
        with process.channel() as channel:
            after = DomainServiceStub(channel).GetDomain(domain_pb2.GetDomainRequest(name="web"), timeout=60)
            assert (after.vcpus.maximum_config, after.etag) == (6, result.after.etag)
            operations = OperationsStub(channel)  # type: ignore[no-untyped-call]
            (kept,) = operations.ListOperations(
                operations_pb2.ListOperationsRequest(filter='domain = "web"')
            ).operations
        assert kept == ended
        assert process.stop() == 0
