"""Entry point `hvsvc`: the daemon, or what to install where only the client is there."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the daemon's command line; exit code 1 where the extra `daemon` is not installed."""
    try:
        from hvsvc.daemon import main as daemon  # noqa: PLC0415  the base install lacks what it imports
    except ModuleNotFoundError as err:
        if err.name is None or err.name.split(".")[0] == "hvsvc":
            raise
        sys.exit(
            f"hvsvc: {err.name} is missing: only the client is installed here; for the daemon install the wheel with "
            "its extra: pip install 'hvsvc-VERSION-py3-none-any.whl[daemon]'"
        )
    daemon()
