"""Fixtures for the tests on a real Nova. The lab is started for the session and stopped after it.

HVSVC_LAB        where the lab writes; default /var/tmp/hvsvc-lab
HVSVC_LAB_KEEP   1: leave the lab running at the end. A lab that ran before is left running anyway
"""

import collections
import os
import pathlib
import subprocess
from collections.abc import Generator, Iterator

import pytest

from tests.lab.cloud import Lab
from tests.lab.outage import Cloud, Services, forwarded

HERE = pathlib.Path(__file__).parent
FOLDER = pathlib.Path(os.environ.get("HVSVC_LAB", "/var/tmp/hvsvc-lab"))
#: for one test: the first one starts the lab, for which up.sh has 1500 s
_TIMEOUT_S = 1800
LABS: list[Lab] = []  # the session's lab, for the report of a failed test


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs the lab, whether or not its author remembered the marker."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.nova)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def lab(pytestconfig: pytest.Config) -> Iterator[Lab]:
    """The running lab. A lab that cannot be started is a failure, never a skip."""
    terminal = pytestconfig.pluginmanager.getplugin("capturemanager")
    was_up = (
        subprocess.run([HERE / "status.sh"], capture_output=True, timeout=60, check=False).returncode == 0
    )
    with terminal.global_and_fixture_disabled():
        print("\nlab: up.sh: under 2 minutes, and 4 more when packages are missing", flush=True)
        subprocess.run([HERE / "up.sh"], timeout=1500, check=True)
    running = Lab(FOLDER)
    LABS.append(running)
    try:
        yield running
    finally:
        LABS.clear()
        running.close()
        if not was_up and os.environ.get("HVSVC_LAB_KEEP") != "1":
            with terminal.global_and_fixture_disabled():
                print(flush=True)
                subprocess.run([HERE / "down.sh"], timeout=300, check=True)


@pytest.fixture(autouse=True)
def servers_go(lab: Lab) -> Iterator[None]:
    """Deletes what the test made: the project has a quota of ten servers, and the host counts all that run."""
    before = list(lab.servers)
    yield
    for server in list(lab.servers):
        if server not in before:
            lab.delete_server(server)


@pytest.fixture(scope="module")
def cloud(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """The lab's APIs behind forwarders that act at a request, for the tests of outages."""
    with forwarded(lab, tmp_path_factory.mktemp("outages")) as running:
        yield running


@pytest.fixture
def services(lab: Lab) -> Iterator[Services]:
    """The lab's services, to be stopped; all are back after the test."""
    running = Services(lab)
    yield running
    running.all_back()


def last_lines(path: pathlib.Path, word: str) -> list[str]:
    """The last lines of a log that begin with a time and the word; none when there is no such log."""
    if not path.exists():
        return []
    with path.open(errors="replace") as lines:
        return list(collections.deque((line.rstrip() for line in lines if word in line[:70]), maxlen=10))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the end of what each guest printed, the errors of the host, and where the logs are."""
    report = yield
    if report.failed and HERE in item.path.parents:
        for running in LABS:
            for server in running.servers:
                tail = running.console(server).splitlines()[-25:]
                report.sections.append((f"guest log of {server.name}: {server.console_log}", "\n".join(tail)))
        for name, word in (("nova-compute.log", " ERROR "), ("libvirtd.out", "error :")):
            report.sections.append((f"errors in {name}", "\n".join(last_lines(FOLDER / "log" / name, word))))
        report.sections.append(("lab logs", f"{FOLDER}/log (guests already deleted: {FOLDER}/log/guests)"))
    return report
