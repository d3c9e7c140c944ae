"""Services of the lab taken away at a chosen moment and given back, and what must hold whatever was away."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libvirt
import yaml

from tests.hvsvc_process import Answer, HvsvcProcess
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.forwarder import Forwarder
from tests.lab.nova_acts import Sides, read_side, told

_SCRIPT = Path(__file__).parent / "service.sh"
_PORTS = {"nova-api": 8774, "placement": 8778}
#: Nova's and Placement's calls in hvsvc; and what it may take beyond its bounds to plan, judge and print
CALL_S, MARGIN_S = 4, 25
#: `POST /servers/ID/action`
ACTION = rb"POST /v2\.1/servers/[^/]+/action"
#: [nova] reboot_timeout_s where the reboot is not over within it
SHORT_S = 10
#: no ceiling asked for twice
CEILINGS = itertools.count(3)


class Services:
    """The lab's services by name, such as nova-api."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._away: set[str] = set()

    def stop(self, name: str) -> None:
        """Whoever connects is refused, or not heard."""
        self._away.add(name)
        self._run(name, "kill")

    def freeze(self, name: str) -> None:
        """Whoever connects waits in vain; what was sent meanwhile is read after the thaw."""
        self._away.add(name)
        self._run(name, "freeze")

    def back(self, name: str) -> None:
        """Starts it or thaws it, and waits until an API answers."""
        subprocess.run([_SCRIPT, name, "thaw"], timeout=60, check=False)
        self._run(name, "start")
        if name in _PORTS:
            wait_until(f"answer of {name}", lambda: _answers(_PORTS[name]), 60)
        self._away.discard(name)

    def all_back(self) -> None:
        """Gives back what a test left away."""
        for name in tuple(self._away):
            self.back(name)

    def wait_reported(self) -> None:
        """Until nova-compute has reported since it was started: a server built before that ends in ERROR."""
        pid = self._lab.folder / "run" / "nova-compute.pid"
        environ = {**self._lab.env(), "HVSVC_LAB": str(self._lab.folder), "PATH": "/usr/bin:/bin"}
        assert pid.exists()
        words = ["/usr/bin/python3", str(_SCRIPT.parent / "content.py"), "wait-services"]
        subprocess.run(words, env=environ, timeout=130, check=True)

    def _run(self, name: str, action: str) -> None:
        subprocess.run([_SCRIPT, name, action], timeout=60, check=True)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return bool(answer.status < 500)
    except OSError:
        return False


class Cloud:
    """The lab's cloud as hvsvc finds it: with forwarders before nova-api and Placement."""

    def __init__(self, lab: Lab, folder: Path, nova: Forwarder, placement: Forwarder) -> None:
        self._lab = lab
        self.nova = nova
        self.placement = placement
        clouds = yaml.safe_load(lab.clouds_yaml.read_text())
        for user in ("admin", "demo"):
            clouds["clouds"][f"lab-{user}"] |= {
                "compute_endpoint_override": f"http://127.0.0.1:{nova.port}/v2.1",
                "placement_endpoint_override": f"http://127.0.0.1:{placement.port}",
            }
        self.clouds_yaml = folder / "clouds.yaml"
        self.clouds_yaml.write_text(yaml.safe_dump(clouds))

    @contextmanager
    def hvsvc(self, *, reboot_s: int = 60, policy: str = "off", drift: str = "") -> Iterator[HvsvcProcess]:
        """The daemon with short bounds; at the end nothing may be left of what it did."""
        sections = (
            f'[nova]\ncloud = "lab-admin"\ncall_timeout_s = {CALL_S}\nreboot_timeout_s = {reboot_s}\n'
            f'[placement]\npolicy = "{policy}"\ncall_timeout_s = {CALL_S}\n'
            f"[drift]\nsweep_interval_s = 2\nbackoff_s = 0.5\n{drift}\n"
        )
        environ = {"OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml)}
        with HvsvcProcess(self._lab.libvirt_uri, sections, environ=environ) as process:
            yield process
            assert process.hvctl_json("operations", "list", "--running") == []
            assert process.hvctl("health").code == 0
            assert "Traceback" not in process.read_log()


@contextmanager
def forwarded(lab: Lab, folder: Path) -> Iterator[Cloud]:
    with Forwarder(8774) as nova, Forwarder(8778) as placement:
        yield Cloud(lab, folder, nova, placement)


def bounded(hvsvc: HvsvcProcess, *words: str, wait_s: float = 0) -> Answer:
    """Runs hvctl, which must end within `wait_s`, the calls that time out, and a margin."""
    began_s = time.monotonic()
    answer = hvsvc.hvctl(*words, "-f", "json", timeout_s=wait_s + 3 * CALL_S + MARGIN_S)
    _print_figure(words, answer, time.monotonic() - began_s)
    return answer


class Started:
    """An hvctl that runs while the test does something else."""

    def __init__(self, hvsvc: HvsvcProcess, *words: str) -> None:
        self._words = words
        self._began_s = time.monotonic()
        self._process = hvsvc.hvctl_start(*words, "-f", "json")

    def ended(self, wait_s: float) -> Answer:
        """Its answer, bounded as in `bounded`."""
        stdout, stderr = self._process.communicate(timeout=wait_s + 3 * CALL_S + MARGIN_S)
        answer = Answer(self._process.returncode, stdout, stderr)
        _print_figure(self._words, answer, time.monotonic() - self._began_s)
        return answer


def _print_figure(words: tuple[str, ...], answer: Answer, took_s: float) -> None:
    document = json.loads(answer.stdout) if answer.stdout.startswith("{") else {}
    said = document.get("outcome") or document.get("error", {}).get("reason", "")
    print(f"figure: hvctl {' '.join(words)}: code {answer.code} {said} after {took_s:.1f} s", flush=True)


def reason_of(answer: Answer) -> str:
    """The reason of an answer that claims nothing to be done."""
    assert "outcome" not in answer.json, answer
    return str(answer.json["error"]["reason"])


def reasons_of(answer: Answer) -> list[str]:
    """The reasons of a change that is done and not proven."""
    assert answer.json["outcome"] == "UNCONFIRMED", answer
    return [each["reason"] for each in answer.json["reasons"]]


def libvirt_sides(lab: Lab, server: Server) -> Sides:
    """What libvirt says, asked directly."""
    domain = lab.domain(server)
    running = bool(domain.isActive())
    live = read_side(domain, 0) if running else None
    if live is not None:
        del live["current_kib"]  # moves after a start
    return {
        "config": read_side(domain, libvirt.VIR_DOMAIN_XML_INACTIVE),
        "live": live,
        "id": domain.ID() if running else None,
    }


def check_report(lab: Lab, hvsvc: HvsvcProcess, server: Server, status: str | None = None) -> Sides:
    """Dominfo, list and drift agree with libvirt, whoever of OpenStack is away."""
    for _ in range(20):
        before = libvirt_sides(lab, server)
        report = hvsvc.hvctl_json("dominfo", server.name)
        drift = hvsvc.hvctl_json("drift", server.name) if status else None
        listed = {each["uuid"]: each for each in hvsvc.hvctl_json("list")}
        if libvirt_sides(lab, server) == before:
            said = told(report)
            assert {key: said[key] for key in before} == before
            assert listed[server.id].get("id") == before["id"]
            if drift is not None:
                assert drift["status"] == report["drift"]["status"] == status, drift
            return before
    raise AssertionError(f"{server.name} never stands still")


def wait_task(lab: Lab, server: Server, wanted: Callable[[str | None], bool], timeout_s: float = 60) -> Any:
    """Until Nova's task on the server is such a one."""

    def seen() -> tuple[str | None] | None:
        state = lab.nova_server(server.id).task_state
        return (state,) if wanted(state) else None

    return wait_until(f"task of {server.name}", seen, timeout_s, interval_s=0.02)


def wait_drift(hvsvc: HvsvcProcess, server: Server, status: str, timeout_s: float = 30) -> None:
    """Until the drift is seen as this, without anybody's help."""
    began_s = time.monotonic()
    wait_until(
        f"drift {status}", lambda: hvsvc.hvctl_json("drift", server.name)["status"] == status, timeout_s
    )
    print(f"figure: drift {status} {time.monotonic() - began_s:.1f} s later", flush=True)


def settled(lab: Lab, server: Server) -> int:
    """Waits for a server that runs and a guest that is up; the id of its domain."""
    lab.wait_active(server)
    lab.wait_agent(server)
    number = lab.domain_id(server)
    assert number is not None
    return number


def ceilings(lab: Lab, server: Server) -> tuple[int, int | None]:
    """Maximum vCPUs stored and live; live is None where it is off."""
    sides = libvirt_sides(lab, server)
    return sides["config"]["maximum_vcpus"], sides["live"] and sides["live"]["maximum_vcpus"]
