"""Structured logs on standard error: one JSON object a line, or aligned text for a terminal."""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal

import structlog
import structlog.tracebacks

_SHARED: Final[list[structlog.typing.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


#: at debug they log what they send and get, roles and service catalogs among it
_TELL_TOO_MUCH: Final = ("keystoneauth", "openstack", "urllib3")


def _json() -> list[structlog.typing.Processor]:
    # never local variables: definitions are read with their secrets
    transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [structlog.processors.ExceptionRenderer(transform), structlog.processors.JSONRenderer()]


def _console() -> list[structlog.typing.Processor]:
    # Rich, where it is installed, would show local variables
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]


def configure(level: str, form: Literal["console", "json"]) -> None:
    """Sends everything, libraries' own lines included, through one formatter."""
    renderer = _json() if form == "json" else _console()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _TELL_TOO_MUCH:
        logging.getLogger(name).setLevel(max(logging.INFO, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
