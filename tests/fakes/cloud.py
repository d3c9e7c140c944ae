"""A small Keystone and Nova on loopback, told by its `errors` table how to fail.

    with FakeCloud() as cloud:
        cloud.servers[SERVER_ID] = server()
        cloud.errors["server"] = Fault(status=503, times=1)

Places of the table: "discovery" and "auth" (Keystone), "server", "servers", "reboot", "resize",
"confirmResize", "revertResize", "action", "flavors", "access" (Nova);
"allocation", "allocate", "inventory", "usage" (Placement).
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.books import Books
from tests.fakes.flavors import answer_flavors, own_flavor
from tests.fakes.keystone import answer_keystone

SERVER_ID = "6b5f16a8-3a41-426d-8a29-7cd0beda2ea6"
OTHER_SERVER_ID = "00000000-0000-0000-0000-000000000000"
REQUEST_ID = "req-7d1c0f5e-0d2b-4a5e-9f7e-000000000001"


@dataclass
class Fault:
    """One way to fail. `body` replaces the answer's; `times` None means always."""

    status: int | None = None
    body: bytes | None = None
    #: headers that the answer leaves out
    without: tuple[str, ...] = ()
    #: no answer until `FakeCloud.release`
    hang: bool = False
    #: the answer comes byte by byte, one each 50 ms, until `FakeCloud.release`
    drip: bool = False
    #: the connection ends without an answer
    cut: bool = False
    times: int | None = None


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    place: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any


def server(changes: dict[str, Any] | None = None, *, admin: bool = True) -> dict[str, Any]:
    """The server as Nova shows it to an admin, or to a member of its project."""
    shown: dict[str, Any] = {
        "id": SERVER_ID,
        "name": "web-1",
        "status": "ACTIVE",
        "locked": False,
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:power_state": 1,
        "tenant_id": "p",
        "hostId": "h1",
        "image": {"id": "i"},
        "flavor": own_flavor("small", 2, 512),
    }
    if admin:
        shown["OS-EXT-SRV-ATTR:host"] = "cmp001"
        shown["OS-EXT-SRV-ATTR:instance_name"] = "instance-0000335c"
        shown["host_status"] = "UP"
    return shown | (changes or {})


@dataclass(frozen=True)
class CloudsYaml:
    """The file where openstacksdk looks for clouds."""

    path: Path

    def read(self) -> str:
        """What it says."""
        return self.path.read_text()

    def write(self, text: str) -> None:
        """Makes it say something else."""
        self.path.write_text(text)


@dataclass
class FakeCloud:
    """Listens from entering to leaving; `stop` and `start` in between make it go and come back."""

    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: events of the instance action of each reboot, by request id
    actions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    books: Books = field(default_factory=Books)
    #: the services of the catalog
    services: tuple[str, ...] = ("compute", "placement")
    #: events of the next action
    events: list[dict[str, Any]] = field(default_factory=list)
    #: pages of flavors, and the projects that have access to one
    flavors: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])
    flavor_projects: dict[str, list[str]] = field(default_factory=dict)
    #: what each look at a server shows after an action, in order; the last stays
    then: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: whether the credential sees the servers of all projects
    admin: bool = True
    errors: dict[str, Fault] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    #: what the cloud takes as a token that is still valid
    token: str = "token-1"
    port: int = 0

    def __post_init__(self) -> None:
        self._released = threading.Event()
        self._http: ThreadingHTTPServer | None = None
        self._connections: set[socket.socket] = set()
        self.coming: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self.stop()

    def start(self) -> None:
        """Listens, on the same port as before where there was one."""
        cloud = self

        class Handler(_Handler):
            pass

        Handler.cloud = cloud
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Stops listening and ends the connections: new ones are refused."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None
            for connection in tuple(self._connections):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Lets everything that hangs or drips go on."""
        self._released.set()

    def wait_released(self, timeout_s: float) -> bool:
        """Whether `release` was called, within so long."""
        return self._released.wait(timeout_s)

    def requests(self, place: str) -> list[Seen]:
        """The requests of one place, in order."""
        return [seen for seen in self.seen if seen.place == place]

    def wait_for(self, place: str) -> None:
        """Waits for the first request of a place."""
        end = time.monotonic() + 20
        while not self.requests(place):
            assert time.monotonic() < end, f"no request for {place} came"
            time.sleep(0.01)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def write_clouds_yaml(self, file: CloudsYaml, name: str = "fake") -> None:
        """Makes the file that names this cloud."""
        auth = {
            "auth_url": f"{self.url}/identity/v3",
            "username": "u",
            "password": "not-to-be-shown",
            "project_name": "p",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        file.write(json.dumps({"clouds": {name: {"auth": auth, "region_name": "RegionOne"}}}))


class _Handler(BaseHTTPRequestHandler):
    cloud: FakeCloud
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def setup(self) -> None:
        super().setup()
        self.cloud._connections.add(self.connection)

    def finish(self) -> None:
        self.cloud._connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        cloud = self.cloud
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        place, (status, answer, headers) = self._route(body)
        cloud.seen.append(Seen(place, self.command, self.path, dict(self.headers.items()), body))
        content = json.dumps(answer).encode()
        fault = cloud.errors.get(place, Fault())
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                del cloud.errors[place]
        if fault.hang:
            cloud.wait_released(30)
        if fault.cut:
            self.close_connection = True
            return
        if fault.status is not None:
            # Nova's own 404 is known by its name
            name = b"itemNotFound" if fault.status == 404 else b"fault"
            status, content = fault.status, b'{"%s": {"message": "words that must not matter"}}' % name
        if fault.body is not None:
            content = fault.body
        try:
            self._answer(
                status, content, {k: v for k, v in headers.items() if k not in fault.without}, fault.drip
            )
        except OSError:
            self.close_connection = True  # the client gave up

    def _answer(self, status: int, content: bytes, headers: dict[str, str], drip: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content) + (1000 if drip else 0)))
        self.end_headers()
        self.wfile.write(content)
        for _ in range(1000 if drip else 0):
            self.cloud.wait_released(0.05)
            self.wfile.write(b" ")
            self.wfile.flush()

    def _route(self, body: Any) -> tuple[str, tuple[int, Any, dict[str, str]]]:
        path = self.path
        if path.startswith("/identity"):
            return answer_keystone(path, self.cloud.url, self.cloud.token, self.cloud.services)
        place = self._place(path, body)
        if self.headers.get("X-Auth-Token") != self.cloud.token:
            return place, (401, {}, {})
        if path.startswith("/placement"):
            return self.cloud.books.answer(self.command, path, body)
        return place, self._nova(path, body)

    @staticmethod
    def _place(path: str, body: Any) -> str:
        if path.endswith("/action"):
            return str(next(iter(body)))
        parts = {
            "/os-flavor-access": "access",
            "/os-instance-actions/": "action",
            "/flavors/detail": "flavors",
        }
        found = next((place for part, place in parts.items() if part in path), None)
        return found or ("servers" if "/servers/detail" in path else "server")

    def _nova(self, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        headers = {"x-openstack-request-id": REQUEST_ID, "x-compute-request-id": REQUEST_ID}
        url = urlsplit(path)
        query = dict(parse_qsl(url.query))
        if url.path.startswith("/compute/v2.1/flavors/"):
            cloud = self.cloud
            projects = cloud.flavor_projects if cloud.admin else None
            return *answer_flavors(url.path, query, cloud.flavors, projects), headers
        if url.path == "/compute/v2.1/servers/detail":
            if "all_tenants" in query and not self.cloud.admin:
                return 403, {"forbidden": {"code": 403}}, headers
            shown = [item for item in self.cloud.servers.values() if re.search(query["name"], item["name"])]
            return 200, {"servers": shown}, headers
        found = re.fullmatch(r"/compute/v2\.1/servers/([^/]+)(/action|/os-instance-actions/([^/]+))?", path)
        if not found or found[1] not in self.cloud.servers:
            return 404, {"itemNotFound": {"code": 404}}, headers
        if found[3]:
            if found[3] not in self.cloud.actions:
                return 404, {"itemNotFound": {"code": 404}}, headers
            action = {"action": "reboot", "request_id": found[3], "events": self.cloud.actions[found[3]]}
            return 200, {"instanceAction": action}, headers
        if found[2]:
            self.cloud.actions[REQUEST_ID] = list(self.cloud.events)
            self.cloud.coming[found[1]] = list(self.cloud.then.get(next(iter(body)), []))
            return 202, None, headers
        if coming := self.cloud.coming.get(found[1]):
            self.cloud.servers[found[1]] |= coming.pop(0)
        return 200, {"server": self.cloud.servers[found[1]]}, headers
