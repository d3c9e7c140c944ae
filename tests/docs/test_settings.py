"""Every TOML and YAML block is settings that the daemon takes, and together they fit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from tests.documents import README, Block, read_blocks
from tests.fakes.certificates import Authority

HVSVC = Path(sys.executable).with_name("hvsvc")


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """Stands in for /etc: certificates, and the clouds.yaml of the README."""
    authority = Authority("hvsvc CA")
    server = authority.sign(x509.DNSName("cmp001.example.org"))
    tls = tmp_path / "hvsvc" / "tls"
    tls.mkdir(parents=True)
    (tls / "server.pem").write_bytes(server.cert)
    (tls / "server.key").write_bytes(server.key)
    (tls / "clients-ca.pem").write_bytes(authority.pem)
    (clouds,) = (block for block in read_blocks("yaml") if block.document == README)
    (tmp_path / "clouds.yaml").write_text(clouds.text)
    return tmp_path


def check(etc: Path, text: str) -> None:
    config = etc / "hvsvc.toml"
    config.write_text(text.replace('"/etc/', f'"{etc}/'))
    environ = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(etc / "clouds.yaml")}
    done = subprocess.run(
        [HVSVC, "check", "--config", config],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{config}: ok\n"), done.stderr


@pytest.mark.parametrize("block", read_blocks("toml"), ids=str)
def test_settings_are_taken(etc: Path, block: Block) -> None:
    check(etc, block.text)


@pytest.mark.parametrize("block", read_blocks("yaml"), ids=str)
def test_clouds_can_be_used(etc: Path, block: Block) -> None:
    (etc / "clouds.yaml").write_text(block.text)
    clouds = yaml.safe_load(block.text)["clouds"]
    assert clouds
    for cloud in clouds:
        check(etc, f'[nova]\ncloud = "{cloud}"\n')


def test_a_cloud_that_is_not_there_is_noticed(etc: Path) -> None:
    with pytest.raises(AssertionError, match=re.escape("cloud other")):
        check(etc, '[nova]\ncloud = "other"\n')
