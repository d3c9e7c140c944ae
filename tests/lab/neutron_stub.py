#!/usr/bin/python3
"""The least of Neutron that servers without ports need: every list is empty, every quota unlimited."""

import http.server
import json
import re
from typing import Any


class EmptyNeutron(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        resource = re.match(r"/v2\.0/([\w-]+)", self.path)
        name = resource.group(1).replace("-", "_") if resource else "versions"
        body: dict[str, Any] = {name: []}
        if name == "quotas":
            body = {"quota": dict.fromkeys(("network", "port", "security_group", "floatingip"), -1)}
        reply = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


http.server.ThreadingHTTPServer(("127.0.0.1", 9696), EmptyNeutron).serve_forever()
