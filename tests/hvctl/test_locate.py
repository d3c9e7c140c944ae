"""hvctl --cloud: which hvsvc is asked for a server, and what it says where that cannot be found out."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.cloud import OTHER_SERVER_ID, SERVER_ID, CloudsYaml, FakeCloud, server
from tests.fakes.hvsvc_server import FakeHvsvc, FakeServer
from tests.hvctl.conftest import HVCTL, clean_env

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def fake_cloud() -> Iterator[FakeCloud]:
    with FakeCloud(servers={SERVER_ID: server()}) as running:
        yield running


@pytest.fixture
def run(fake: FakeHvsvc, fake_cloud: FakeCloud) -> Iterator[Run]:
    """hvctl where only the cloud says where hvsvc is: at cmp001.sock for the host cmp001."""
    with tempfile.TemporaryDirectory(prefix="hvctl-", dir="/tmp") as name:
        folder = Path(name)
        fake_cloud.write_clouds_yaml(CloudsYaml(folder / "clouds.yaml"))
        env = {
            "OS_CLIENT_CONFIG_FILE": str(folder / "clouds.yaml"),
            "HVCTL_CLOUD": "fake",
            "XDG_CONFIG_HOME": str(folder),
            "HVCTL_CLOUD_TARGET": f"unix://{folder}/{{host}}.sock",
        }
        with FakeServer(fake, f"unix:{folder}/cmp001.sock"):

            def call(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
                wanted = {key: value for key, value in {**env, **more}.items() if value}
                return subprocess.run(
                    [*HVCTL, *args],
                    env=clean_env(**wanted),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )

            yield call


def test_the_hvsvc_of_the_servers_host_is_asked_by_id(run: Run, fake: FakeHvsvc) -> None:
    for name in ("web-1", SERVER_ID, f"domains/{SERVER_ID}"):
        assert run("dominfo", name).returncode == 0
    assert {request.name for request in fake.requests("GetDomain")} == {f"domains/{SERVER_ID}"}


def test_the_template_comes_from_the_option_the_environment_or_the_file(run: Run, tmp_path: Path) -> None:
    assert run("--cloud-target", "unix:///nowhere/{host}", "dominfo", "web-1").returncode == 6
    configured = tmp_path / "hvsvc" / "hvctl.toml"
    configured.parent.mkdir()
    configured.write_text('[cloud]\ntarget = "unix:///elsewhere/{host}"\n')
    done = run("dominfo", "web-1", HVCTL_CLOUD_TARGET="", XDG_CONFIG_HOME=str(tmp_path))
    assert "/elsewhere/cmp001" in done.stderr
    configured.write_text('[cloud]\nwhere = "x"\n')
    done = run("dominfo", "web-1", HVCTL_CLOUD_TARGET="", XDG_CONFIG_HOME=str(tmp_path))
    assert (done.returncode, "cloud.where" in done.stderr) == (2, True)
    configured.write_text("[cloud\n")
    assert run("dominfo", "web-1", HVCTL_CLOUD_TARGET="", XDG_CONFIG_HOME=str(tmp_path)).returncode == 2
    done = run("dominfo", "web-1", HVCTL_CLOUD_TARGET="", XDG_CONFIG_HOME="/nonexistent", http_proxy="")
    assert "cmp001:9443" in done.stderr, "the default"


@pytest.mark.parametrize("template", ["unix:///x.sock", "{hosts}:1", "{host:1", "{host!r}:1", ""])
def test_a_template_without_the_host_or_with_more_is_refused(run: Run, template: str) -> None:
    done = run("--cloud-target", template, "dominfo", "web-1")
    assert done.returncode == 2
    assert "--cloud-target" in done.stderr


def test_a_target_wins_over_the_cloud(run: Run, fake_cloud: FakeCloud) -> None:
    done = run("--target", "unix:///nowhere", "dominfo", "web-1")
    assert (done.returncode, fake_cloud.seen) == (6, [])


def test_a_cloud_on_the_command_line_wins_over_a_target_of_the_environment(
    run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud
) -> None:
    for args in (("--cloud", "fake", "dominfo", "web-1"), ("dominfo", "web-1", "--cloud", "fake")):
        done = run(*args, HVCTL_TARGET="unix:///nowhere")
        assert done.returncode == 0, done.stderr
    assert [request.name for request in fake.requests("GetDomain")] == [f"domains/{SERVER_ID}"] * 2
    fake_cloud.seen.clear()
    both = run("--cloud", "fake", "dominfo", "web-1", "--target", "unix:///nowhere")
    assert (both.returncode, fake_cloud.seen) == (6, []), "a target on the command line wins"
    assert run("dominfo", "web-1", HVCTL_TARGET="unix:///nowhere").returncode == 6, (
        "as one of the environment"
    )


def test_a_cloud_on_the_command_line_leaves_no_command_to_the_target_of_the_environment(
    run: Run, fake: FakeHvsvc
) -> None:
    done = run("list", "--cloud", "fake", HVCTL_TARGET="unix:///nowhere")
    assert (done.returncode, "give --target" in done.stderr, fake.seen) == (2, True, [])


def test_no_such_server_ends_with_3(run: Run) -> None:
    done = run("dominfo", "nope", "-f", "json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["reason"] == "SERVER_NOT_FOUND"


def test_several_servers_of_a_name_are_shown(run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud) -> None:
    fake_cloud.servers[OTHER_SERVER_ID] = server({"id": OTHER_SERVER_ID})
    done = run("scale", "web-1", "--vcpus", "2")
    assert done.returncode == 2
    assert SERVER_ID in done.stderr
    assert OTHER_SERVER_ID in done.stderr
    assert fake.seen == []


def test_without_admin_rights_it_says_what_to_pass(run: Run, fake_cloud: FakeCloud) -> None:
    fake_cloud.admin = False
    fake_cloud.servers[SERVER_ID] = server(admin=False)
    done = run("dominfo", "web-1")
    assert done.returncode == 8
    assert "--target HOST:9443" in done.stderr


@pytest.mark.parametrize("host", ["", "a b", "../../run/x", "-x", "cmp001/.."])
def test_a_host_that_is_no_name_becomes_no_address(
    run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud, host: str
) -> None:
    fake_cloud.servers[SERVER_ID] |= {"OS-EXT-SRV-ATTR:host": host}
    assert run("dominfo", "web-1").returncode == 4
    assert fake.seen == []


def test_a_server_on_no_host_is_no_lack_of_rights(run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud) -> None:
    shelved = {"status": "SHELVED_OFFLOADED", "hostId": ""}
    for shown in (server(shelved | {"OS-EXT-SRV-ATTR:host": None}), server(shelved, admin=False)):
        fake_cloud.servers[SERVER_ID] = shown
        done = run("dominfo", "web-1", "-f", "json")
        assert (done.returncode, json.loads(done.stdout)["error"]["reason"]) == (4, "SERVER_NOT_ACTIVE")
        assert "SHELVED_OFFLOADED" in done.stderr
    assert fake.seen == []


def test_no_hvsvc_where_the_cloud_says_names_the_template(run: Run) -> None:
    done = run("--cloud-target", "unix:///nowhere/{host}", "dominfo", "web-1")
    assert "check --cloud-target (unix:///nowhere/cmp001)" in done.stderr


def test_a_command_that_names_no_server_needs_a_target(run: Run) -> None:
    for command in (("list",), ("health",), ("operations", "show", "0b7c"), ("watch",)):
        done = run(*command)
        assert (done.returncode, "give --target" in done.stderr) == (2, True), command


def test_servers_of_several_hosts_are_not_watched_at_once(run: Run, fake_cloud: FakeCloud) -> None:
    other = {"id": OTHER_SERVER_ID, "name": "web-2", "OS-EXT-SRV-ATTR:host": "cmp002"}
    fake_cloud.servers[OTHER_SERVER_ID] = server(other)
    done = run("watch", "web-1", "web-2")
    assert (done.returncode, "several hosts" in done.stderr) == (2, True)


def test_a_cloud_that_is_away_ends_with_6(run: Run, fake_cloud: FakeCloud) -> None:
    fake_cloud.stop()
    assert run("dominfo", "web-1").returncode == 6


def test_what_to_do_next_names_the_same_hvsvc(run: Run, fake: FakeHvsvc) -> None:
    from tests.fakes.service_messages import growth_steps, running

    fake.reports = [running(growth_steps(0))]
    done = run("scale", "web-1", "--vcpus", "2", "--no-wait")
    assert done.returncode == 0, done.stderr
    assert "hvctl --target unix://" in done.stderr
    assert "cmp001.sock operations watch" in done.stderr
