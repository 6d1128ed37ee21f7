"""Against a real MCP server, over both transports."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from django.test import override_settings

from sessions_app.models import McpServer
from sessions_app.tools import registry
from sessions_app.tools.declare import NAME
from sessions_app.tools.enter import Failed, Succeeded, enter
from sessions_app.tools.mcp import config, connection, names, servers, stdio
from sessions_app.tools.mcp.config import Server
from sessions_app.tools.mcp.connection import Connection
from sessions_app.tools.port import INTERRUPTED, BadArguments, Tool
from tests.support.processes import free_port
from tests.tools.calls import call, context, in_database
from tests.tools.raw_server import always, serving

SCRIPT: Final = str(Path(__file__).with_name("mcp_server.py"))
WITHIN: Final = 60.0


async def eventually(condition: Callable[[], Any], what: str) -> Any:
    async with asyncio.timeout(WITHIN):
        while not (value := condition()):  # noqa: ASYNC110  processes tell nobody
            await asyncio.sleep(0.01)
    return value


def processes(named: Path) -> list[int]:
    """The living processes that were started with this path."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(named).encode() in command:
                found.append(int(entry.name))
    return found


class World:
    """A server process and the journal it writes."""

    def __init__(self, directory: Path, *, transport: str) -> None:
        self.journal_file = directory / "journal"
        self.journal_file.touch()
        self.transport = transport
        self.port = free_port()
        self._begin = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Over HTTP the server is a process of its own; over stdio the connection starts it."""
        if self.transport != "stdio":
            self.process = subprocess.Popen(
                [sys.executable, SCRIPT, str(self.journal_file), self.transport, str(self.port)]
            )

    def server(self, **options: Any) -> Server:
        described: dict[str, Any] = {"name": "shop", "trusted": True, "timeout_seconds": 10.0}
        if self.transport == "stdio":
            described["command"] = (sys.executable, SCRIPT, str(self.journal_file), "stdio")
        else:
            described |= {"url": self.url, "headers": {"Authorization": "Bearer of-tests"}}
        return Server(**(described | options))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def journal(self, beginning: str = "") -> list[str]:
        lines = self.journal_file.read_text().splitlines()[self._begin :]
        return [line for line in lines if line.startswith(beginning)]

    def begin(self) -> None:
        """Forget what earlier tests left in the journal."""
        self._begin += len(self.journal())

    def kill(self) -> None:
        for pid in [self.process.pid] if self.process else self.children():
            os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def children(self) -> list[int]:
        return processes(self.journal_file)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], World]]:
    """Servers over HTTP that several tests may use, as long as nobody kills them."""
    made: dict[str, World] = {}

    def get(transport: str) -> World:
        if transport not in made:
            made[transport] = World(tmp_path_factory.mktemp(transport), transport=transport)
        made[transport].begin()
        return made[transport]

    yield get
    for world in made.values():
        world.stop()


@pytest.fixture(params=["stdio", "http", "json"])
def world(request: pytest.FixtureRequest, tmp_path: Path, running: Callable[[str], World]) -> World:
    if request.param == "stdio":
        return World(tmp_path, transport="stdio")
    return running(request.param)


@pytest.fixture(params=["http", "json"])
def http_world(request: pytest.FixtureRequest, running: Callable[[str], World]) -> World:
    return running(request.param)


@pytest.fixture(params=["stdio", "http"])
def own_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A server that this test may kill."""
    made = World(tmp_path, transport=request.param)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(connection, "LONGEST_PAUSE", 0.2)


Connect = Callable[[Server], Awaitable[dict[str, Tool]]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Connects to a server and waits for its tools, by their names on the server."""
    made: list[Connection] = []

    async def to(server: Server) -> dict[str, Tool]:
        made.append(Connection(server))
        await eventually(lambda: made[-1].tools, "tools")
        return tools_of(made[-1])

    yield to
    for each in made:
        await each.aclose()


def tools_of(one: Connection) -> dict[str, Tool]:
    return {str((tool.annotations or {})["tool"]): tool for tool in one.tools}


# What is offered


async def test_the_tools_of_a_server_are_offered_under_its_name(world: World, connect: Connect) -> None:
    tools = await connect(world.server())

    assert tools["echo"].name == "shop__echo"
    assert tools["echo"].description == "Say it again."
    assert tools["charge"].parameters["required"] == ["amount"]
    assert tools["odd.name/with signs"].name == "shop__odd_name_with_signs_afbedfac"
    assert all(tool.timeout_seconds == 10 for tool in tools.values())


async def test_hints_are_believed_only_of_a_trusted_server_and_are_kept_either_way(
    world: World, connect: Connect
) -> None:
    trusted = await connect(world.server())
    stranger = await connect(world.server(trusted=False))

    effects = {name: tool.effect for name, tool in trusted.items()}
    assert effects == dict.fromkeys(effects, "side_effect") | {
        "echo": "read",
        "hang_reading": "read",
        "note": "idempotent",
    }
    assert {tool.effect for tool in stranger.values()} == {"side_effect"}
    assert trusted["echo"].annotations == {
        "readOnlyHint": True, "title": "Echo", "server": "shop", "tool": "echo", "trusted": True,
    }  # fmt: skip
    assert (stranger["echo"].annotations or {})["readOnlyHint"] is True
    assert (stranger["echo"].annotations or {})["trusted"] is False


# Calls that end by themselves


async def test_a_call_is_sent_once_with_its_key(world: World, connect: Connect) -> None:
    tools = await connect(world.server())

    entered = await call(tools["charge"], amount=5)

    assert isinstance(entered, Succeeded)
    assert entered.output.content == "charged 5"
    assert world.journal("charge") == ["charge 5 key-1"]


async def test_each_call_is_one_request(http_world: World, connect: Connect) -> None:
    tools = await connect(http_world.server())

    for name, arguments in (("charge", {"amount": 5}), ("fail", {}), ("ask", {}), ("echo", {"text": "x"})):
        await call(tools[name], **arguments)

    assert len(http_world.journal("POST tools/call")) == 4
    assert set(http_world.journal("POST tools/call")) == {"POST tools/call Bearer of-tests"}


async def test_an_error_of_the_tool_is_known_and_told(world: World, connect: Connect) -> None:
    tools = await connect(world.server())

    entered = await call(tools["fail"])

    assert isinstance(entered, Failed)
    assert entered.known
    assert "fail" in entered.error


async def test_a_request_for_more_input_is_an_error_and_nothing_is_asked_again(
    world: World, connect: Connect
) -> None:
    tools = await connect(world.server())

    entered = await call(tools["ask"])

    assert isinstance(entered, Failed)
    assert entered.known
    assert "asks for more input" in entered.error
    assert world.journal("ask") == ["ask"]


async def test_what_is_no_text_is_kept_as_bytes_or_beside_the_text(world: World, connect: Connect) -> None:
    tools = await connect(world.server())

    picture, mixed = await call(tools["picture"]), await call(tools["mixed"])

    assert isinstance(picture, Succeeded)
    assert picture.output.content == b"\x89PNG\x00\xff" * 100
    assert isinstance(mixed, Succeeded)
    assert mixed.output.content == "a cat\n\n[image/png, about 600 bytes, stored]"
    assert b"iVBORw" in (mixed.output.whole or b"") or b"iVBO" in (mixed.output.whole or b"")


async def test_progress_is_passed_on(world: World, connect: Connect) -> None:
    if world.transport == "json":
        pytest.skip("a single JSON answer has no room for progress")
    tools = await connect(world.server())
    told: list[str] = []

    await enter(tools["slowly"], {}, context(progress=told.append))

    assert told == ["half (1 of 2)"]


async def test_an_answer_over_the_limit_is_unknown_and_other_calls_go_on(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = await connect(world.server())
    waiting = asyncio.create_task(call(tools["hang_reading"]))
    await eventually(lambda: world.journal("hang_reading"), "the other call")

    assert await call(tools["big"], size=17 * 1024 * 1024) == Failed(error=INTERRUPTED, known=False)

    entered = await call(tools["echo"], text="still here")
    assert isinstance(entered, Succeeded)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "amount: is required"),
        ({"amount": float("inf")}, "plain JSON"),
    ],
)
async def test_arguments_that_do_not_fit_are_not_sent(
    world: World, connect: Connect, arguments: dict[str, Any], told: str
) -> None:
    tools = await connect(world.server())

    with pytest.raises(BadArguments, match=told):
        tools["charge"].normalise(arguments)


# Calls that do not


@pytest.mark.parametrize(("name", "known"), [("hang", False), ("hang_reading", True)])
async def test_a_call_over_its_time_is_unknown_unless_it_reads_and_is_not_sent_again(
    world: World, connect: Connect, name: str, known: bool
) -> None:
    tools = await connect(world.server(timeout_seconds=0.5))

    entered = await call(tools[name])

    assert entered == Failed(error="Tool execution timed out after 0.5 seconds", known=known)
    assert [line for line in world.journal(name) if line == name] == [name]


async def test_a_cancelled_call_is_cancelled_at_the_server(world: World, connect: Connect) -> None:
    if world.transport == "json":
        pytest.skip("a server that answers with one JSON document does not notice")
    tools = await connect(world.server())
    calling = asyncio.create_task(call(tools["hang"]))
    await eventually(lambda: world.journal("hang"), "the call at the server")

    calling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await calling
    await eventually(lambda: world.journal("hang cancelled"), "the cancellation at the server")


@pytest.mark.parametrize("name", ["hang", "hang_reading"])
async def test_a_server_killed_in_the_middle_of_a_call_leaves_it_unknown_unless_it_reads(
    own_world: World, connect: Connect, name: str
) -> None:
    tools = await connect(own_world.server())
    calling = asyncio.create_task(call(tools[name]))
    await eventually(lambda: own_world.journal(name), "the call at the server")

    own_world.kill()

    assert await calling == Failed(error=INTERRUPTED, known=name == "hang_reading")
    assert own_world.journal(name) == [name]


async def test_a_server_that_dies_of_a_call_leaves_it_unknown_and_comes_back(
    own_world: World, connect: Connect
) -> None:
    tools = await connect(own_world.server())

    assert await call(tools["die"]) == Failed(error=INTERRUPTED, known=False)

    own_world.stop()
    own_world.start()

    async with asyncio.timeout(WITHIN):
        while not isinstance(await call(tools["echo"], text="back"), Succeeded):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert own_world.journal("die") == ["die"]


async def test_a_call_to_a_server_that_is_away_is_known_not_to_have_run(
    own_world: World, connect: Connect
) -> None:
    tools = await connect(own_world.server())
    own_world.kill()
    if own_world.transport == "stdio":
        await eventually(lambda: not own_world.children(), "the end of the server")

    async with asyncio.timeout(WITHIN):
        while True:
            entered = await call(tools["charge"], amount=7)
            if isinstance(entered, Failed) and entered.known:
                break
            # Bytes may have gone into a connection whose other end was just dying.
            assert entered == Failed(error=INTERRUPTED, known=False) or own_world.transport == "stdio"

    assert isinstance(entered, Failed)
    assert "not run" in entered.error
    assert not own_world.journal("charge 7") or own_world.transport == "stdio"


ANSWERS = [
    (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", None),
    (b"HTTP/1.1 504 Late\r\nContent-Length: 0\r\n\r\n", None),
    (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", None),
    (b"HTTP/1.1 303 See\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", None),
    (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", None),
    (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{", None),
    (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: message\ndata: {no\n\n", None),
    (b"", None),
    (b"HTTP/1.1 200", None),
    (b"HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n", "HTTP status 401"),
    (b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n", "HTTP status 404"),
    (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", "HTTP status 429"),
    (b"HTTP/1.1 307 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "HTTP status 307"),
    (b"HTTP/1.1 308 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "HTTP status 308"),
]


@pytest.mark.parametrize(("answer", "told"), ANSWERS)
async def test_an_answer_counts_by_what_it_proves_and_no_message_is_sent_twice(
    answer: bytes, told: str | None, http_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is replaced behind the back of a session that is up."""
    one = Connection(http_world.server())
    try:
        await eventually(lambda: one.tools, "tools")
        tool = tools_of(one)["charge"]
        async with serving(always(answer)) as raw:
            monkeypatch.setattr(
                "httpx2.AsyncHTTPTransport.handle_async_request", _to_another_port(raw.port, "tools/call")
            )
            entered = await call(tool, amount=1)
            calls = [request for request in raw.requests if b'"tools/call"' in request]
    finally:
        await one.aclose()

    assert len(calls) == 1
    assert isinstance(entered, Failed)
    assert entered.known is (told is not None)
    assert (told or INTERRUPTED) in entered.error


def _to_another_port(port: int, method: str) -> Callable[..., Awaitable[Any]]:
    real = httpx2.AsyncHTTPTransport.handle_async_request

    async def send(self: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        if method.encode() in (request.content if request.method == "POST" else b""):
            request.url = request.url.copy_with(port=port)
        return await real(self, request)

    return send


# The connection


async def test_a_server_that_comes_back_gets_its_tools_back(own_world: World) -> None:
    one = Connection(own_world.server())
    try:
        first = await eventually(lambda: one.tools, "tools")
        own_world.kill()
        if own_world.transport != "stdio":
            await call(first[0], text="x")  # who asks learns that it is away
        await eventually(lambda: one.tools is not first, "away")
        own_world.stop()
        own_world.start()
        again = await eventually(lambda: one.tools, "tools again")
    finally:
        await one.aclose()

    assert [tool.name for tool in again] == [tool.name for tool in first]


async def test_closing_ends_the_process_and_its_children(tmp_path: Path) -> None:
    world = World(tmp_path, transport="stdio")
    command = ("sh", "-c", f"sleep 300 & exec {sys.executable} {SCRIPT} {world.journal_file} stdio")
    one = Connection(world.server(command=command))
    await eventually(lambda: one.tools, "tools")
    (pid,) = world.children()
    group = os.getpgid(pid)

    await one.aclose()

    await eventually(lambda: not _is_there(group), "the end of the group")


def _is_there(group: int) -> bool:
    """Whether a process of the group lives; what is dead and not reaped yet does not count."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(its_group) == group and state not in "ZX":
                return True
    return False


async def test_a_process_is_ended_whole_also_when_its_end_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "END_SECONDS", 0.3)
    ending = asyncio.Event()
    real = stdio._is_gone

    async def is_gone(process: asyncio.subprocess.Process) -> bool:
        ending.set()
        return await real(process)

    monkeypatch.setattr(stdio, "_is_gone", is_gone)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"

    async def use() -> None:
        async with stdio.connect((sys.executable, "-c", deaf, str(tmp_path)), on_end=lambda: None):
            await eventually(lambda: processes(tmp_path), "the process")

    using = asyncio.create_task(use())
    await ending.wait()
    using.cancel()

    with pytest.raises(asyncio.CancelledError):
        await using
    assert not processes(tmp_path)


async def test_a_child_gets_none_of_our_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_TESTS", "value")
    world = World(tmp_path, transport="stdio")
    one = Connection(world.server())
    try:
        await eventually(lambda: one.tools, "tools")
        (pid,) = world.children()
        environ = Path(f"/proc/{pid}/environ").read_bytes()  # noqa: ASYNC240
    finally:
        await one.aclose()

    assert b"SECRET_OF_TESTS" not in environ
    assert b"SECRET_KEY" not in environ
    assert b"PATH=" in environ


@pytest.mark.parametrize(
    "command",
    [
        ("/nowhere/at-all",),
        ("true",),
        ("cat",),
        ("sh", "-c", "echo no json; cat"),
        ("sh", "-c", "head -c 20000000 /dev/zero; cat"),
    ],
)
async def test_a_command_that_is_no_server_costs_its_tools_only_and_is_told_once(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(stdio, "END_SECONDS", 0.2)
    one = Connection(Server(name="odd", trusted=True, timeout_seconds=1, command=command))
    await asyncio.wait_for(one.settled.wait(), WITHIN)
    await eventually(lambda: one._failures >= 3, "three tries")
    await one.aclose()

    assert one.tools == ()
    told = [record for record in caplog.records if record.getMessage() == "tools.mcp.away"]
    assert len(told) == 1


async def test_it_works_on_a_loop_of_another_thread(world: World) -> None:
    """The coordinator's loop is not on the main thread, where a child's end is told of."""
    ended: list[Any] = []

    async def use() -> None:
        one = Connection(world.server())
        await eventually(lambda: one.tools, "tools")
        ended.append(await call(tools_of(one)["echo"], text="hello"))
        await one.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    await asyncio.to_thread(thread.join, WITHIN)

    (entered,) = ended
    assert isinstance(entered, Succeeded)


async def test_secrets_are_neither_logged_nor_shown(
    own_world: World, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_world.server()
    with caplog.at_level("DEBUG"):
        tools = await connect(server)
        await call(tools["charge"], amount=1)
        await call(tools["die"])

    ours = [record for record in caplog.records if record.name.startswith("sessions_app")]
    assert ours
    assert "of-tests" not in repr(server)
    assert all("of-tests" not in str(vars(record)) for record in ours)


# Rows


def row(own_world: World, **columns: Any) -> McpServer:
    described: dict[str, Any] = {"name": "shop", "trusted": True, "timeout_seconds": 5}
    if own_world.transport == "stdio":
        described |= {"transport": "stdio", "command": "tests"}
    else:
        described |= {"transport": "http", "url": own_world.url}
    return McpServer.objects.create(**(described | columns))


@pytest.mark.django_db(transaction=True)
async def test_an_enabled_row_brings_tools_and_a_disabled_one_takes_them_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "LOOK_SECONDS", 0.05)
    command = (sys.executable, SCRIPT, str(world.journal_file), "stdio")
    with override_settings(HOLDFAST_MCP_COMMANDS={"tests": command}):
        made = servers.Servers(look_seconds=0.05)
        try:
            assert await made.tools() == []
            await in_database(lambda: row(world))
            await eventually(lambda: any(c.tools for c in made._connections.values()), "tools")
            assert "shop__echo" in {tool.name for tool in await made.tools()}
            await in_database(lambda: McpServer.objects.update(enabled=False))
            await eventually(lambda: not made._connections, "no server")
            assert await made.tools() == []
        finally:
            await made.aclose()
    assert world.transport != "stdio" or not world.children()


@pytest.mark.django_db(transaction=True)
async def test_the_toolset_holds_ours_and_theirs_and_closing_ends_the_servers(tmp_path: Path) -> None:
    world = World(tmp_path, transport="stdio")
    await in_database(lambda: row(world))
    command = (sys.executable, SCRIPT, str(world.journal_file), "stdio")
    with override_settings(HOLDFAST_MCP_COMMANDS={"tests": command}):
        try:
            first = await registry.toolset()
            second = await registry.toolset()
        finally:
            await registry.aclose()

    assert {"calculator", "shop__echo"} <= first.tools.keys()
    assert first.find("shop__echo") is second.find("shop__echo")
    assert not world.children()


@pytest.mark.django_db(transaction=True)
async def test_a_server_that_hangs_delays_the_first_toolset_a_little_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "FIRST_WAIT_SECONDS", 0.3)
    world = World(tmp_path, transport="stdio")
    await in_database(lambda: row(world))
    with override_settings(HOLDFAST_MCP_COMMANDS={"tests": ("sleep", "300")}):
        try:
            await registry.toolset()
            started = time.monotonic()
            tools = await registry.toolset()
            took = time.monotonic() - started
        finally:
            await registry.aclose()

    assert took < 0.2
    assert "calculator" in tools.tools


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"transport": "stdio", "command": "rm -rf /"}, "HOLDFAST_MCP_COMMANDS allows no command"),
        ({"transport": "stdio", "command": ""}, "HOLDFAST_MCP_COMMANDS allows no command"),
        ({"transport": "http", "url": "file:///etc/passwd"}, "http or https"),
        ({"transport": "http", "url": "http://u:p@example.com/"}, "without user and password"),
        ({"transport": "http", "url": "http://[::1"}, "malformed"),
        ({"transport": "http", "url": "http://example.com/", "authorization_variable": "SECRET_KEY"}, "is sent to nobody"),
        ({"transport": "http", "url": "http://example.com/", "authorization_variable": "NOT_SET"}, "NOT_SET is not set"),
        ({"transport": "http", "url": "http://example.com/", "authorization_variable": "BROKEN"}, "BROKEN is not set"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_told_with_what_to_change(
    columns: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "a\r\nX-Evil: secret")
    McpServer.objects.create(name="shop", **columns)

    (reason,) = config.enabled().values()

    assert isinstance(reason, config.Unusable)
    assert told in str(reason)
    assert "secret" not in str(reason).replace("is a secret of", "")


@pytest.mark.django_db(transaction=True)
def test_the_authorization_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_AUTHORIZATION", "Bearer abc")
    McpServer.objects.create(
        name="shop", transport="http", url="http://example.com/", authorization_variable="SHOP_AUTHORIZATION"
    )

    (server,) = config.enabled().values()

    assert isinstance(server, Server)
    assert server.headers == {"Authorization": "Bearer abc"}
    assert "abc" not in repr(server)


# Names


def test_names_fit_every_provider_and_never_collide_by_being_cut() -> None:
    given = ["echo", "a.b", "a_b", "a/b", "x" * 200, "x" * 201, "", "ä", "\ud800", "a__b", "_"]

    named = [names.tool_name(server="shop", tool=tool) for tool in given]

    assert len(set(named)) == len(given)
    assert named == [names.tool_name(server="shop", tool=tool) for tool in given]
    for name in [*named, names.tool_name(server="1 shop", tool="x")]:
        assert NAME.match(name), name
