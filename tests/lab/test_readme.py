"""The first use in the README, step by step on a real Nova, prints what the README shows."""

from __future__ import annotations

import shlex

from tests.documents import README, assert_fits, read_examples
from tests.hvsvc_process import HvsvcProcess
from tests.lab.cloud import Lab


def test_first_use(lab: Lab) -> None:
    server = lab.create_server("web", image="lab-nocpuauto")
    lab.wait_agent(server)
    environ = {"OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    examples = [example for example in read_examples("hvctl") if example.document == README]
    assert [example.command.split()[1] for example in examples] == ["list", "plan", "raise", "scale"]
    with HvsvcProcess(lab.libvirt_uri, '[nova]\ncloud = "lab-admin"', environ=environ) as hvsvc:
        for example in examples:
            _, *words = shlex.split(example.command)
            answer = hvsvc.hvctl(*(server.name if word == "web-1" else word for word in words))
            assert answer.code == 0, answer
            lines = answer.stdout.splitlines()
            if words[0] == "list":  # other tests have servers too
                lines = [line for line in lines if line.startswith("Id") or server.name in line]
            shown = "\n".join(lines).replace(server.name, "web-1")
            assert_fits(example.output, shown)
