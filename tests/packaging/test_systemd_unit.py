"""The unit as systemd itself reads it, and that it fits the daemon's defaults."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from hvsvc.config import Config

UNIT = Path("packaging/systemd/hvsvc.service")

needs_systemd_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def service() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False, comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser["Service"]


@needs_systemd_analyze
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/bin/hvsvc serve", "/bin/true serve"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line]
    assert complaints == []


@needs_systemd_analyze
def test_exposure_stays_low() -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Overall exposure level" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout[-200:]


def test_the_unit_fits_the_defaults_of_the_daemon() -> None:
    unit, config = service(), Config()
    assert unit["Type"] == "notify"
    assert int(unit["TimeoutStopSec"]) > config.shutdown.grace_s
    assert config.journal.path.parent == Path("/var/lib") / unit["StateDirectory"]
    assert Path(config.listen.unix).parent == Path("/run") / unit["RuntimeDirectory"]
    assert config.listen.unix_mode & ~int(unit["UMask"], 8) == config.listen.unix_mode


def test_polkit_and_sysusers_name_the_user_of_the_unit() -> None:
    user = service()["User"]
    assert f'subject.user == "{user}"' in Path("packaging/polkit/60-hvsvc.rules").read_text()
    assert f"\nu {user} - " in Path("packaging/systemd/hvsvc.sysusers.conf").read_text()


def test_the_drop_in_for_a_virtualenv_changes_the_program_alone() -> None:
    lines = Path("packaging/systemd/venv.conf").read_text().splitlines()
    assert lines[1:3] == ["[Service]", "ExecStart="]
    assert lines[3:] == ["ExecStart=" + service()["ExecStart"].replace("/usr/bin/", "/opt/hvsvc/bin/")]
