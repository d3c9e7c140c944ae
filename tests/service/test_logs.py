"""Log lines as they leave the process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, structlog
from hvsvc.service import logs
logs.configure("info", {form!r})
log = structlog.stdlib.get_logger("hvsvc.test")
with structlog.contextvars.bound_contextvars(domain="web-1"):
    log.info("began", operation="operations/op-1")
    log.debug("hidden")
logging.getLogger("library").warning("said %s", "so")
try:
    1 / 0
except ZeroDivisionError as err:
    log.error("bug", exc_info=err)
"""


def run(form: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(form=form)], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    return done.stderr


def test_json_lines() -> None:
    first, library, bug = (json.loads(line) for line in run("json").splitlines())
    assert (first["event"], first["level"], first["logger"]) == ("began", "info", "hvsvc.test")
    assert (first["domain"], first["operation"]) == ("web-1", "operations/op-1")
    assert first["timestamp"].endswith("Z")
    assert (library["event"], library["logger"], library["level"]) == ("said so", "library", "warning")
    assert bug["exception"][0]["exc_type"] == "ZeroDivisionError"


def test_console_lines_without_colours_in_a_pipe() -> None:
    text = run("console")
    assert "\x1b" not in text
    assert "domain=web-1" in text
    assert "ZeroDivisionError" in text
    assert "hidden" not in text


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_bug_is_logged_without_what_it_had_in_hand(form: str) -> None:
    program = PROGRAM.format(form=form).replace(
        "    1 / 0", "    config_xml = 'passwd=' + 'sesame'\n    1 / 0"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "ZeroDivisionError" in done.stderr
    assert "sesame" not in done.stderr.replace("'passwd=' + 'sesame'", "")


def test_libraries_that_log_what_they_send_do_not_at_debug() -> None:
    program = PROGRAM.format(form="json").replace('"info"', '"debug"') + (
        'logging.getLogger("keystoneauth.session").debug("the service catalog")\n'
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "hidden" in done.stderr, "our own debug lines are shown"
    assert "catalog" not in done.stderr
