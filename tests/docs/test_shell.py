"""Every shell block of the documents, run in their order on a copy of the source.

/etc, /opt, /usr/local and /var stand in a folder of the test. Programs that would change the machine are replaced by
ones that check what they are asked: packages exist, units are installed, groups were made before they are used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from hvsvc.adapters.journal_schema import connect
from tests.documents import README, ROOT, Block, read_blocks

PROGRAMS = {
    "apt-get": """[[ $1 == install ]] && shift
for package; do apt-cache show "$package" >/dev/null || dpkg-query -W "$package" >/dev/null; done""",
    "systemctl": """[[ $1 == daemon-reload ]] || test -e "$ROOT/etc/systemd/system/${!#}.service" """,
    "systemd-sysusers": """awk '$1 == "u" {print $2}' "$1" >"$ROOT/groups"; test -s "$ROOT/groups" """,
    "chgrp": """grep -qx "$1" "$ROOT/groups" && test -e "$2" """,
    "install": """words=()
while (($#)); do
  if [[ $1 == -g ]]; then grep -qx "$2" "$ROOT/groups"; shift 2; else words+=("$1"); shift; fi
done
exec /usr/bin/install "${words[@]}" """,
    "sqlite3": f"""exec {sys.executable} -c '
import sqlite3, sys
option, path, sql = sys.argv[1:]
assert option == "-readonly"
for row in sqlite3.connect(f"file:{{path}}?mode=ro", uri=True).execute(sql):
    print(*row, sep="|")
' "$@" """,
}
_PLACES = re.compile(r"(?<![\w./])/(etc|opt|usr/local|var)/")
_TIMEOUT_S = 400


class Machine:
    """A folder that stands for the operator's machine, with a copy of the source as working directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "source"
        tracked = subprocess.run(
            [
                "git",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
                "hvsvc",
                "protos",
                "packaging",
                "pyproject.toml",
                "README.md",
                "LICENSE",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, tracked.stdout.split("\0")):
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.source / name)
        for folder in ("usr/local/bin", "var/backups", "var/lib/hvsvc", "etc/openstack", "etc/hvsvc", "bin"):
            (root / folder).mkdir(parents=True)
        for name, text in PROGRAMS.items():
            program = root / "bin" / name
            program.write_text(f"#!/bin/bash\nset -euo pipefail\n{text}\n")
            program.chmod(0o755)
        connect(root / "var/lib/hvsvc/journal.db", 1).close()
        for kind, name in (("toml", "etc/hvsvc/hvsvc.toml"), ("yaml", "etc/openstack/clouds.yaml")):
            (block,) = (block for block in read_blocks(kind) if block.document == README)
            (root / name).write_text(block.text)
        constraints = root / "constraints.txt"
        locked = re.findall(r"^[\w.\-]+==[^\s;\\]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
        assert len(locked) > 20
        constraints.write_text("\n".join(locked))
        self.environ = {
            **os.environ,
            "ROOT": str(root),
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "OS_CLIENT_CONFIG_FILE": str(root / "etc/openstack/clouds.yaml"),
            "PIP_CONSTRAINT": str(constraints),
        }

    def run(self, text: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs commands as one script that ends at the first failure."""
        return subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", _PLACES.sub(rf"{self.root}/\1/", text)],
            cwd=self.source,
            env={**self.environ, **more},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )


def test_the_blocks_work_in_the_order_of_the_documents(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    outputs: dict[Block, str] = {}
    for block in read_blocks("sh"):
        # what compiles is said where it is: only the daemon needs a compiler
        client = "hvctl-venv" in block.text
        done = machine.run(block.text, **({"CC": "/bin/false", "PKG_CONFIG": "/bin/false"} if client else {}))
        assert done.returncode == 0, f"{block}\n{block.text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        outputs[block] = done.stdout
    printed = "".join(outputs.values())
    assert f"hvctl {version('hvsvc')}\n" in printed
    assert f"hvsvc {version('hvsvc')}\n" in printed
    assert printed.count(f"{tmp_path}/etc/hvsvc/hvsvc.toml: ok\n") == 2

    programs = tmp_path / "source/hvctl-venv/bin"
    packages = subprocess.run([programs / "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    assert "grpcio==" in packages
    assert not re.search(r"^(libvirt|lxml|openstacksdk|pydantic)", packages, re.MULTILINE)
    refused = subprocess.run([programs / "hvsvc", "check"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "-py3-none-any.whl[daemon]'" in refused.stderr) == (1, True)

    assert (tmp_path / "var/backups/hvsvc-journal.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "source/build/stubs/hvsvc/v1/scaling_pb2_grpc.py").exists()
    chain = ["openssl", "verify", "-CAfile", "ca.pem", "cmp001.example.org.pem", "scaler.example.org.pem"]
    subprocess.run(chain, cwd=machine.source, check=True, capture_output=True)


@pytest.mark.parametrize(
    "text",
    [
        "apt-get install no-such-package-of-debian",
        "systemctl restart other",
        "chgrp hvsvc /etc/hvsvc/hvsvc.toml",
    ],
)
def test_what_would_fail_on_a_machine_fails_here(tmp_path: Path, text: str) -> None:
    assert Machine(tmp_path).run(text).returncode != 0
