"""A cloud that fails on demand, and Nova's adapter on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import stamina

from hvsvc.adapters.nova import NovaServers
from tests.fakes.cloud import SERVER_ID, CloudsYaml, FakeCloud, server


@pytest.fixture
def clouds_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CloudsYaml:
    """Where openstacksdk looks for clouds.yaml; nothing is there yet."""
    path = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    return CloudsYaml(path)


@pytest.fixture
def cloud(clouds_yaml: CloudsYaml) -> Iterator[FakeCloud]:
    """A cloud with one server, named "fake" in clouds.yaml; repetitions do not wait."""
    with stamina.set_testing(True, attempts=3, cap=True), FakeCloud(servers={SERVER_ID: server()}) as running:
        running.write_clouds_yaml(clouds_yaml)
        yield running


@pytest.fixture
async def nova(cloud: FakeCloud) -> AsyncIterator[NovaServers]:
    """The adapter, with a deadline that no test reaches."""
    servers = NovaServers("fake", call_timeout_s=8)
    yield servers
    servers.close()
