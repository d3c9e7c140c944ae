"""The four formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from hvsvc.hvctl.output import aligned, as_value, print_many, print_one, print_table
from hvsvc.hvctl.settings import Settings

DOCUMENT: dict[str, Any] = {
    "name": "web\x1b[2J",
    "size": 18446744073709551615,
    "on": False,
    "of": {"a": 1},
    "list": [],
}


def show(capsys: pytest.CaptureFixture[str], output_format: str, *columns: str) -> str:
    print_one(Settings(output_format=output_format, columns=columns), DOCUMENT, lambda: ["the table"])
    return capsys.readouterr().out


def test_json_and_yaml_hold_the_same_and_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    as_json, as_yaml = show(capsys, "json"), show(capsys, "yaml")
    assert json.loads(as_json) == yaml.safe_load(as_yaml) == DOCUMENT
    assert "\x1b" not in as_json + as_yaml
    assert "18446744073709551615," in as_json


def test_value_is_one_value_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, "value") == 'web\\x1b[2J\n18446744073709551615\nfalse\n{"a": 1}\n[]\n'
    assert show(capsys, "value", "of.a", "of.absent", "on") == "1\n\nfalse\n"


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, "table") == "the table\n"
    assert show(capsys, "table", "of.a", "name") == "of.a: 1\nname: web\\x1b[2J\n"


def test_a_single_text_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"xml_diff": "-a\n+\tb\x1b", "etag": "1\n2"}
    print_one(Settings(output_format="value", columns=("xml_diff",)), document, list)
    assert capsys.readouterr().out == "-a\n+\tb\\x1b\n"
    print_one(Settings(output_format="value", columns=("xml_diff", "etag")), document, list)
    assert capsys.readouterr().out == "-a\\n+\\tb\\x1b\n1\\n2\n"


def test_many_as_rows(capsys: pytest.CaptureFixture[str]) -> None:
    documents: list[dict[str, Any]] = [{"a": 1, "b": {"c": "x"}}, {"a": 2}]

    def show_many(output_format: str, *columns: str) -> str:
        settings = Settings(output_format=output_format, columns=columns)
        print_many(settings, documents, ("A",), lambda document: (f"[b]{document['a']}[/b]\x1b",))
        return capsys.readouterr().out

    assert show_many("value", "a", "b.c") == "1 x\n2 \n"
    assert json.loads(show_many("json", "b.c")) == [{"b": {"c": "x"}}, {}]
    assert show_many("table") == "A\n[b]1[/b]\\x1b\n[b]2[/b]\\x1b\n"
    assert show_many("table", "a", "b.c") == "a  b.c\n1  x\n2\n"


def test_off_a_terminal_no_cell_is_cut_or_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    print_table(("One", "Two"), [(long, long)])
    assert capsys.readouterr().out.splitlines()[1] == f"{long}  {long}"


def test_wide_characters_take_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [("東京", "1"), ("abcd", "2")])
    assert capsys.readouterr().out.splitlines()[1:] == ["東京  1", "abcd  2"]


def test_aligned() -> None:
    assert aligned([("Id", "7"), ("OS Type", "hvm"), ("Note", "")]) == ["Id:      7", "OS Type: hvm", "Note:"]
    assert aligned([]) == []


def test_as_value() -> None:
    assert [as_value(value) for value in (None, True, 0, "", {"k": "\x1b"})] == [
        "",
        "true",
        "0",
        "",
        '{"k": "\\u001b"}',
    ]
