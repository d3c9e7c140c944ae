"""The least a gRPC call can cost here: a grpc.aio server with one handler that returns nothing, and no interceptor.

Run as a process, since the daemon is one too; it prints its TCP port when it serves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import grpc

METHOD = "/hvsvc.bench.Empty/Call"


async def _call(_request: bytes, _context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    return b""


async def serve(socket: str, directory: Path) -> None:
    """Serves on a unix socket, and over mutual TLS with the daemon's own files."""
    server = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler(
        "hvsvc.bench.Empty", {"Call": grpc.unary_unary_rpc_method_handler(_call)}
    )
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{socket}")
    key, cert, ca = ((directory / name).read_bytes() for name in ("server.key", "server.pem", "clients.pem"))
    credentials = grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
