"""Image, compose file and units: there is no engine here to run them, so that what they say is held against the code."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from config import env
from tests.support.processes import PROJECT

UNITS = sorted((PROJECT / "deploy/systemd").glob("*.service"))
SERVICES: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "holdfast"}
FILLED = {
    "SECRET_KEY": "s" * 64,
    "POSTGRES_PASSWORD": "abc123",
    "ALLOWED_HOSTS": "chat.example.org",
}


def known(name: str) -> bool:
    return name in {variable.name for variable in env.listed({}, root=PROJECT)}


def example() -> dict[str, str]:
    """Every variable of the example, those in comments included."""
    text = (PROJECT / "deploy/holdfast.env.example").read_text()
    return dict(re.findall(r"^#?([A-Z_]+)=(.*)$", text, re.MULTILINE))


def parsed(arguments: list[str]) -> Any:
    """``manage.py`` and what follows, as the command understands it."""
    assert arguments[0] == "manage.py"
    name = arguments[1]
    command = load_command_class(get_commands()[name], name)
    return command.create_parser("manage.py", name).parse_args(arguments[2:])


@pytest.mark.parametrize("name", OURS)
def test_what_a_container_runs_is_a_command_with_arguments_that_it_takes(name: str) -> None:
    python, *arguments = OURS[name]["command"]

    assert python == "python"
    assert parsed(arguments)


def test_web_and_workers_of_the_compose_file_are_one_installation() -> None:
    web, workers = (parsed(OURS[name]["command"][1:]) for name in ("web", "workers"))

    assert (web.web_only, web.host, workers.workers_only) == (True, "0.0.0.0", True)
    assert OURS["web"]["volumes"] == OURS["workers"]["volumes"]
    assert OURS["web"]["environment"] == OURS["workers"]["environment"]


def test_the_environment_of_the_compose_file_is_one_that_the_settings_take() -> None:
    written = {
        name: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: FILLED[found[1]], value)
        for name, value in OURS["web"]["environment"].items()
    }

    read = env.read(written, root=PROJECT)

    assert all(known(name) for name in written)
    assert isinstance(read.database, env.PostgreSQL)
    assert read.redis_url == "redis://redis:6379/0"


def test_a_stop_takes_no_longer_than_it_is_given() -> None:
    grace = env.read({}, root=PROJECT).grace_seconds

    for service in OURS.values():
        assert int(service["stop_grace_period"].removesuffix("s")) > grace
    for unit in UNITS:
        found = re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.MULTILINE)
        assert found is None or int(found[1]) > grace


def test_every_variable_of_the_example_is_read_by_something() -> None:
    assert [name for name in example() if not known(name)] == ["POSTGRES_PASSWORD"]
    env.read({name: value for name, value in example().items() if value and known(name)}, root=PROJECT)


def test_what_the_image_copies_is_there_and_nothing_that_runs_is_left_out() -> None:
    text = (PROJECT / "Dockerfile").read_text()
    copied = {
        source
        for sources in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE)
        for source in sources.split()
    }
    let_in = set(re.findall(r"^!(.+)$", (PROJECT / ".dockerignore").read_text(), re.MULTILINE))

    assert copied == let_in
    assert all((PROJECT / source).exists() for source in copied)
    assert {"schema", "sessions_app", "recovery", "config", "templates", "manage.py"} <= copied


def test_the_image_has_the_browser_assets_that_make_setup_brings() -> None:
    pattern = re.compile(r"cp (node_modules/\S+) \S*?(\w+\.js)")

    assert pattern.findall((PROJECT / "Dockerfile").read_text()) == pattern.findall(
        (PROJECT / "Makefile").read_text()
    )


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_what_a_unit_runs_is_a_command_with_arguments_that_it_takes(unit: Path) -> None:
    text = unit.read_text()
    variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    lines = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)

    assert lines
    assert all(parsed(shlex.split(line)[1:]) for line in lines)
    assert all(known(name) for name in variables)
    env.read(variables, root=PROJECT)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_understands_the_unit(tmp_path: Path, unit: Path) -> None:
    """Of its program it wants to know that it is there, so that another stands for it."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/holdfast/.venv/bin/python", "/bin/true"))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )

    assert unit.name not in done.stderr, done.stderr
