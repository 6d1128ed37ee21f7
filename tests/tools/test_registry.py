import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from sessions_app.tools import registry
from sessions_app.tools.declare import NAME, declare
from sessions_app.tools.port import Tool


@pytest.fixture(autouse=True)
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of a site, beside the product."""
    (tmp_path / "broken_tools.py").write_text("raise RuntimeError('line one\\nline two')\n")
    (tmp_path / "empty_tools.py").write_text("number = 3\n")
    (tmp_path / "needing_tools.py").write_text("import not_installed_here\n")
    (tmp_path / "second_calculator.py").write_text(
        "from sessions_app.tools.declare import tool\n@tool\ndef calculator() -> None:\n    '''Calculate.'''\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("broken_tools", "empty_tools", "needing_tools", "second_calculator"):
        sys.modules.pop(name, None)


def test_the_built_in_tools_are_there_and_declared_as_what_they_are() -> None:
    assert {tool.name: tool.effect for tool in registry.local().values()} == {
        "current_time": "read",
        "calculator": "read",
        "fetch_page": "read",
        "notebook": "idempotent",
    }
    for name, tool in registry.local().items():
        assert NAME.match(name)
        assert tool.definition.parameters["additionalProperties"] is False
        assert tool.description


def test_tools_of_the_site_are_added_by_module_or_one_by_one() -> None:
    with override_settings(HOLDFAST_TOOLS=("tests.tools.ledger",)):
        assert {"charge", "put", "look", "calculator"} <= registry.local().keys()
    with override_settings(HOLDFAST_TOOLS=("tests.tools.ledger.charge",)):
        assert registry.local().keys() >= {"charge"}
        assert "put" not in registry.local()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere", "No module named 'nowhere'"),
        ("nowhere.tools", "No module named"),
        ("tests.tools.nowhere", "has no attribute 'nowhere'"),
        ("tests.tools.ledger.nowhere", "has no attribute 'nowhere'"),
        ("empty_tools", "declares no tool"),
        ("empty_tools.number", "neither a module nor a declared tool"),
        ("needing_tools", "No module named 'not_installed_here'"),
        ("broken_tools", "line one"),
    ],
)
def test_a_name_that_leads_to_no_tool_is_told_in_one_line(path: str, why: str) -> None:
    with override_settings(HOLDFAST_TOOLS=(path,)), pytest.raises(registry.UnusableTool) as refused:
        registry.local()

    text = str(refused.value)
    assert text.startswith(f"HOLDFAST_TOOLS: {path!r} cannot be used: ")
    assert why in text
    assert "\n" not in text


def test_a_second_tool_of_one_name_is_refused() -> None:
    with override_settings(HOLDFAST_TOOLS=("second_calculator",)), pytest.raises(registry.DuplicateTool):
        registry.local()


def _remote(name: str) -> Tool:
    def act() -> str:
        """Act."""
        return ""

    return declare(act, name=name)


def test_a_tool_of_a_server_never_takes_the_place_of_one_of_ours() -> None:
    ours = registry.local()

    together = registry._together(ours, [_remote("calculator"), _remote("shop__buy"), _remote("shop__buy")])

    assert together["calculator"] is ours["calculator"]
    assert together.keys() - ours.keys() == {"shop__buy"}


@pytest.mark.django_db(transaction=True)
async def test_the_tools_of_two_moments_are_the_same_objects() -> None:
    try:
        first, second = await registry.toolset(), await registry.toolset()
    finally:
        await registry.aclose()

    assert first.find("calculator") is second.find("calculator")
    assert first.find("missing") is None


@pytest.mark.django_db(transaction=True)
async def test_without_a_server_the_protocol_is_not_even_imported() -> None:
    script = (
        "import os, sys, asyncio; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings';"
        "import django; django.setup();"
        "from sessions_app.tools import registry; registry.local(); print('mcp' in sys.modules)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()

    assert printed.strip() == b"False"
