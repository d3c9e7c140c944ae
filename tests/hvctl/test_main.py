"""The command itself: what it loads, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from hvsvc.hvctl.main import COMMANDS, cli, run
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import domain
from tests.hvctl.conftest import HVCTL, Hvctl, clean_env


def loaded_after(code: str) -> set[str]:
    """Top modules in memory after the code ran in a process of its own."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.__stdout__)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=clean_env(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_version_needs_no_grpc_and_no_rich() -> None:
    code = "from hvsvc.hvctl.main import run\nrun(['--version'])"
    assert not {"grpc", "rich", "yaml", "google.protobuf"} & loaded_after(code)


@pytest.mark.parametrize("command", ["health", "dominfo x", "vcpucount x", "scale x --vcpus 2"])
def test_a_call_needs_no_rich_no_yaml_and_nothing_of_the_daemon(command: str) -> None:
    code = f"from hvsvc.hvctl.main import run\nrun({['--target', 'unix:///nonexistent', *command.split()]!r})"
    loaded = loaded_after(code)
    assert "grpc" in loaded
    for name in loaded:
        top = name.split(".")[0]
        assert top not in {
            "rich",
            "yaml",
            "libvirt",
            "lxml",
            "openstack",
            "pydantic",
            "structlog",
            "sqlite3",
        }, name
        assert not name.startswith(
            ("hvsvc.domain", "hvsvc.adapters", "hvsvc.operations", "hvsvc.service", "hvsvc.daemon")
        )


def test_every_command_of_the_contract_is_there_with_help(hvctl: Hvctl) -> None:
    names = [
        "list",
        "dominfo",
        "vcpucount",
        "host",
        "plan",
        "raise",
        "headroom",
        "setvcpus",
        "setmem",
        "scale",
        "reboot",
        "drift",
        "forget",
        "watch",
        "operations",
        "health",
    ]
    assert list(COMMANDS) == [*names, "completion"]
    text = hvctl("--help").stdout
    listed = [line.split() for line in text[text.index("Commands:") :].splitlines()[1:]]
    assert [words[0] for words in listed] == list(COMMANDS)
    assert not [words for words in listed if words[-1].endswith("...")], "a summary is cut"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts}"


def test_version_and_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hvctl ")
    assert run(["undefine", "web-1"]) == 2
    assert "no command 'undefine'; there are: list, dominfo, " in capsys.readouterr().err
    assert run(["sclae", "web-1"]) == 2
    assert "no command 'sclae'; did you mean scale?" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_traceback(fake: FakeHvsvc, target: str) -> None:
    fake.domains = [domain(libvirt_name="x" * 5000) for _ in range(300)]
    fake.page_size = 300
    process = subprocess.Popen(
        [*HVCTL, "list", "-f", "value"],
        env=clean_env(HVCTL_TARGET=target),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 141
    assert err == b""


def test_a_terminal_without_unicode_still_gets_the_numbers(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.domains[0].nova.name = "東京"
    done = hvctl("dominfo", "web-1", "-c", "nova.name", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stdout) == (0, "nova.name: \\u6771\\u4eac\n")


@pytest.mark.parametrize(
    "words", [["list"], ["list", "-f", "json"], ["dominfo", "web-1"], ["dominfo", "web-1", "-f", "yaml"]]
)
def test_a_disk_that_is_full_is_no_traceback(target: str, words: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 a device
        done = subprocess.run(
            [*HVCTL, *words],
            env=clean_env(HVCTL_TARGET=target),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "hvctl: writing its output: No space left on device\n")


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_a_name_is_utf_8_whatever_the_locale(hvctl: Hvctl, fake: FakeHvsvc, locale: dict[str, str]) -> None:
    fake.domains[0].nova.name = "\u6771\u4eac"
    done = hvctl("dominfo", "\u6771\u4eac", "-c", "nova.name", **locale)
    assert (done.returncode, done.stderr) == (0, "")
    refused = hvctl("dominfo", "\udcff", **locale)
    assert (refused.returncode, refused.stderr) == (
        2,
        "hvctl: '\\udcff' is not UTF-8, as names have to be\n",
    )


@pytest.mark.parametrize("words", [["--timeout", "nan", "list"], ["headroom", "web-1", "--factor", "nan"]])
def test_nan_is_no_number(hvctl: Hvctl, words: list[str]) -> None:
    done = hvctl(*words)
    assert done.returncode == 2
    assert "'nan' is not a number" in done.stderr
