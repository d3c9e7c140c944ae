"""The lab as the tests see it: a real Nova with one compute host, its users, and servers that come and go."""

import dataclasses
import json
import pathlib
import secrets
import shutil
import time
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import libvirt
import libvirt_qemu
import openstack.config
from openstack.compute.v2.server import Server as NovaServer
from openstack.connection import Connection

User = Literal["admin", "demo"]
T = TypeVar("T")


def wait_until(what: str, condition: Callable[[], T], timeout_s: float, interval_s: float = 0.25) -> T:
    """The first true result of `condition`. AssertionError, with the last result, when none comes in time."""
    print(f"lab: waiting up to {timeout_s:g} s for {what}", flush=True)
    end = time.monotonic() + timeout_s
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"no {what} within {timeout_s:g} s; last seen: {result!r}"
        time.sleep(interval_s)


@dataclasses.dataclass(frozen=True)
class Server:
    """A server of the lab. `console_log` is what the guest prints; QEMU begins it anew at every start."""

    id: str
    name: str
    libvirt_name: str
    project: str
    console_log: pathlib.Path


class Lab:
    """The running lab, which up.sh starts and down.sh stops. `close` deletes the servers made here."""

    libvirt_uri = "qemu:///system"

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.clouds_yaml = folder / "etc" / "clouds.yaml"
        self.guest_logs = folder / "log" / "guests"
        self.guest_logs.mkdir(exist_ok=True)
        self.servers: list[Server] = []
        self.libvirt = libvirt.open(self.libvirt_uri)
        self._clouds: dict[str, Connection] = {}

    def env(self, user: User = "admin") -> dict[str, str]:
        """The OS_* variables of a user: `admin` administers the cloud, `demo` is a member of its project."""
        return {
            "OS_AUTH_URL": "http://127.0.0.1:5000/v3",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": "RegionOne",
            "OS_USERNAME": user,
            "OS_PASSWORD": "lab",
            "OS_PROJECT_NAME": user,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
        }

    def cloud(self, user: User = "admin") -> Connection:
        """A connection as that user; one for each is kept."""
        if user not in self._clouds:
            config = openstack.config.OpenStackConfig(
                config_files=[str(self.clouds_yaml)], load_envvars=False
            )
            self._clouds[user] = Connection(config=config.get_one(f"lab-{user}"))
            self._clouds[user].compute.default_microversion = "2.90"
        return self._clouds[user]

    def create_server(
        self,
        name: str,
        flavor: str = "small",
        image: str = "lab",
        project: User = "demo",
        booted: bool = True,
    ) -> Server:
        """A server of its own name (`name` and four random digits), ACTIVE and, with `booted`, past its boot.

        Images: lab, lab-nocpuauto (hot-added CPUs stay offline), lab-noacpi (agent, but no shutdown works),
        lab-noga (no agent), lab-deaf (neither). Flavors: small 2 vCPUs/512 MiB, big 4/1024.
        """
        cloud = self.cloud(project)
        made = cloud.compute.create_server(
            name=f"{name}-{secrets.token_hex(2)}",
            image_id=cloud.image.find_image(image, ignore_missing=False).id,
            flavor_id=cloud.compute.find_flavor(flavor, ignore_missing=False).id,
            networks="none",
        )
        server = Server(
            id=made.id,
            name=made.name,
            libvirt_name=wait_until(
                f"libvirt name of {made.name}", lambda: self.nova_server(made.id).instance_name, timeout_s=30
            ),
            project=project,
            console_log=self.folder / "state/nova/instances" / made.id / "console.log",
        )
        self.servers.append(server)
        self.wait_active(server, timeout_s=90)
        if booted:
            self.wait_booted(server)
        return server

    def nova_server(self, server_id: str) -> NovaServer:
        """What Nova says of a server to the admin."""
        return self.cloud("admin").compute.get_server(server_id)

    def wait_active(self, server: Server, timeout_s: float = 90) -> NovaServer:
        """Until the server is ACTIVE with no task going on.

        Right after an action the old ACTIVE looks the same: wait for the action's own traces first.
        """

        def active() -> NovaServer | None:
            seen = self.nova_server(server.id)
            assert seen.status != "ERROR", f"{server.name} is in ERROR: {seen.fault}"
            return seen if seen.status == "ACTIVE" and seen.task_state is None else None

        seen = wait_until(f"{server.name} to be ACTIVE", active, timeout_s)
        assert seen is not None
        return seen

    def wait_booted(self, server: Server, timeout_s: float = 90) -> None:
        """Until the guest's init of this start has done its work; a guest that hangs is reset once."""
        self.wait_boots(server, 1, timeout_s)

    def wait_boots(self, server: Server, boots: int, timeout_s: float = 90) -> None:
        """Until the guest's init has done its work so many times since QEMU was started; as `wait_booted`."""
        what = f"boot {boots} of {server.name}" if boots > 1 else f"{server.name} to boot"
        self._wait_guest(server, what, lambda: self.console(server).count("BOOTED") >= boots, timeout_s)

    def has_booted(self, server: Server) -> bool:
        """Whether the guest's init has done its work since QEMU was started."""
        return "BOOTED" in self.console(server)

    def _wait_guest(self, server: Server, what: str, condition: Callable[[], bool], timeout_s: float) -> None:
        """About one boot in some hundred hangs in the guest's kernel under TCG. A reset of the same QEMU process
        boots it again and changes no definition and nothing that Nova knows."""
        try:
            wait_until(what, condition, timeout_s)
        except AssertionError:
            if not self._hangs(server) or self.domain_id(server) is None:
                raise
            print(f"lab: {server.name} hangs while it boots:\n{self.console(server)[-2000:]}")
            self.domain(server).reset()
            wait_until(what, condition, timeout_s)

    def _hangs(self, server: Server) -> bool:
        """Whether the last boot has not come to its end."""
        printed = self.console(server)
        return printed.rfind("BOOTED") <= printed.rfind("Linux version")

    def console(self, server: Server) -> str:
        """What the guest has printed since its last start; empty before it and after a delete."""
        try:
            return server.console_log.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def domain(self, server: Server) -> libvirt.virDomain:
        """The server's domain, looked up by its uuid, which is Nova's id."""
        return self.libvirt.lookupByUUIDString(server.id)

    def domain_id(self, server: Server) -> int | None:
        """The id of the running domain; None when it is off or, as in a hard reboot, not defined just now."""
        try:
            number = self.domain(server).ID()
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
            return None
        return number if number != -1 else None

    def agent(self, server: Server, command: str, *, timeout_s: int = 10, **arguments: Any) -> Any:
        """What the guest agent returns; libvirtError when it does not answer in time."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        reply = libvirt_qemu.qemuAgentCommand(self.domain(server), json.dumps(request), timeout_s, 0)
        return json.loads(reply)["return"]

    def guest_online(self, server: Server) -> int | None:
        """How many CPUs are online in the guest; None when nobody there answers within 10 s, as long as hvsvc waits."""
        try:
            return sum(bool(cpu["online"]) for cpu in self.agent(server, "guest-get-vcpus"))
        except libvirt.libvirtError:
            return None

    def agent_answers(self, server: Server) -> bool:
        """Whether the guest agent answers a ping."""
        try:
            return bool(self.agent(server, "guest-ping") == {})
        except libvirt.libvirtError:
            return False

    def wait_agent(self, server: Server, timeout_s: float = 90) -> None:
        """Until the guest agent answers a ping; a guest that hangs while it boots is reset once."""
        self._wait_guest(server, f"the agent of {server.name}", lambda: self.agent_answers(server), timeout_s)

    def delete_server(self, server: Server) -> None:
        """Deletes the server and waits until it is gone; its last console log stays in `guest_logs`."""
        if server.console_log.exists():
            shutil.copyfile(server.console_log, self.guest_logs / f"{server.name}.log")
        cloud = self.cloud("admin")
        cloud.compute.delete_server(server.id, force=True)
        wait_until(
            f"{server.name} to be gone",
            lambda: cloud.compute.find_server(server.id, all_projects=True) is None,
            timeout_s=90,
        )
        self.servers.remove(server)

    def close(self) -> None:
        """Deletes every server that was made here and not deleted yet."""
        for server in list(self.servers):
            self.delete_server(server)
        for cloud in self._clouds.values():
            cloud.close()
        self.libvirt.close()
