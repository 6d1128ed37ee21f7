"""Reads the environment strictly: a value is what it says, or the start is refused in one line."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from schema.limits import Rate

Role = Literal["web", "worker"]
T = TypeVar("T")

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
LEASE_HEARTBEATS: Final = 3
"""A lease shorter than this many heartbeats would take a slow disk for a death."""

SHORTEST_SECRET_KEY: Final = 32
SHORTEST_TOKEN: Final = 20
_HIDDEN: Final = (
    "SECRET_KEY", "HOLDFAST_METRICS_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DATABASE_URL", "REDIS_URL",
    "HOLDFAST_LOCAL_KEY", "HOLDFAST_MCP_COMMANDS", "HOLDFAST_WEBHOOK_URLS",
)  # fmt: skip
_COMMAND_LINES: Final = ("manage.py", "django-admin", "django")
_SERVING_COMMANDS: Final[Mapping[str, Role]] = {"runserver": "web", "drain_worker": "worker"}
_HOST: Final = re.compile(r"\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?\Z|\[[0-9A-Fa-f:.]+\]\Z|\*\Z")
_MODEL: Final = re.compile(r"[a-z0-9][a-z0-9_-]*:\S+\Z")


class BadVariable(Exception):
    """A variable of the environment has a value that is not allowed.

    The text is one line for the operator. It does not show values that are or may hold secrets.
    """

    def __init__(self, *, name: str, value: str, allowed: str) -> None:
        self.name = name
        shown = "(not shown)" if name in _HIDDEN else repr(value)
        super().__init__(f"{name}: {shown} is not allowed. Allowed: {allowed}.")


@dataclass(frozen=True, kw_only=True)
class SQLite:
    path: Path


@dataclass(frozen=True, kw_only=True)
class PostgreSQL:
    name: str
    user: str
    password: str
    host: str
    port: str
    options: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Every variable of the environment that the product reads, parsed."""

    role: Role | None
    database: SQLite | PostgreSQL
    redis_url: str | None
    secret_key: str | None
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    debug: bool
    log_format: Literal["text", "json"]
    openai_api_key: str | None
    openai_base_url: str | None
    openai_responses_background: bool
    anthropic_api_key: str | None
    anthropic_base_url: str | None
    local_model: bool
    local_port: int | None
    local_key: str | None
    default_model: str
    recovery_policy: Literal["continue", "ask", "off"]
    recovery_budget: int
    heartbeat_seconds: float
    lease_seconds: float
    sweep_seconds: float
    run_dir: Path
    checkpoint_seconds: float
    grace_seconds: float
    drains_per_worker: int
    startup_recovery: bool
    tools: tuple[str, ...]
    webhook_urls: tuple[str, ...]
    mcp_commands: Mapping[str, tuple[str, ...]]
    metrics_token: str | None
    user_rate: Rate | None
    token_rate: Rate | None
    sign_in_failures: int
    sign_in_pause_seconds: int
    proxies: int
    hsts_seconds: int


def read(environ: Mapping[str, str], *, root: Path) -> Environment:
    """Parse everything at once. Relative paths are relative to ``root``.

    Raises BadVariable for the first value that is not allowed.
    """
    parsed = _read(_Reader(environ), root)
    _check_lease(parsed, environ)
    return parsed


def problems(environ: Mapping[str, str], *, root: Path) -> list[BadVariable]:
    """Everything that is not allowed, in the order in which it is read."""
    found: list[BadVariable] = []
    parsed = _read(_Reader(environ, found), root)
    try:
        _check_lease(parsed, environ)
    except BadVariable as bad:
        if bad.name not in {each.name for each in found}:
            found.append(bad)
    return found


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable as an operator wants to see it."""

    name: str
    shown: str
    is_set: bool


def listed(environ: Mapping[str, str], *, root: Path) -> list[Variable]:
    """Every variable that is read, with what holds; secrets are not shown."""
    reader = _Reader(environ, [])
    _read(reader, root)
    return [_variable(name, default, environ) for name, default in sorted(reader.asked.items())]


def _variable(name: str, default: str, environ: Mapping[str, str]) -> Variable:
    is_set = name in environ and (environ[name] != "" or default != "")
    value = environ[name] if is_set else default
    is_hidden = is_set and (name in _HIDDEN or "@" in value)
    return Variable(name=name, shown="(not shown)" if is_hidden else value, is_set=is_set)


def unknown(environ: Mapping[str, str], *, root: Path) -> list[str]:
    """Variables that look like ours and that nothing reads: misspelt, most likely."""
    known = {variable.name for variable in listed(environ, root=root)}
    ours = (
        name for name in environ if name.startswith("HOLDFAST_") and not name.startswith("HOLDFAST_TEST_")
    )
    return sorted(name for name in ours if name not in known)


def _read(reader: "_Reader", root: Path) -> Environment:
    return Environment(
        role=reader.optional("HOLDFAST_ROLE", _choice("web", "worker")),
        database=reader.required(
            "DATABASE_URL", "sqlite:///var/holdfast.sqlite3", lambda text: _database(text, root)
        ),
        redis_url=reader.optional("REDIS_URL", _redis_url),
        secret_key=reader.optional("SECRET_KEY", _secret_key),
        allowed_hosts=reader.required("ALLOWED_HOSTS", ",".join(LOOPBACK_HOSTS), _hosts),
        csrf_trusted_origins=reader.required("CSRF_TRUSTED_ORIGINS", "", _origins),
        debug=reader.required("DEBUG", "0", _flag),
        log_format=reader.required("LOG_FORMAT", "text", _choice("text", "json")),
        openai_api_key=reader.optional("OPENAI_API_KEY", _key),
        openai_base_url=reader.optional("OPENAI_BASE_URL", _base_url),
        openai_responses_background=reader.required("OPENAI_RESPONSES_BACKGROUND", "1", _flag),
        anthropic_api_key=reader.optional("ANTHROPIC_API_KEY", _key),
        anthropic_base_url=reader.optional("ANTHROPIC_BASE_URL", _base_url),
        local_model=reader.required("HOLDFAST_LOCAL_MODEL", "1", _flag),
        # What ``up`` tells its processes of the model that it runs itself.
        local_port=reader.optional("HOLDFAST_LOCAL_PORT", _whole(1, 65535)),
        local_key=reader.optional("HOLDFAST_LOCAL_KEY", _key),
        default_model=reader.required("HOLDFAST_DEFAULT_MODEL", "demo:scripted", _model),
        recovery_policy=reader.required(
            "HOLDFAST_RECOVERY_POLICY", "continue", _choice("continue", "ask", "off")
        ),
        recovery_budget=reader.required("HOLDFAST_RECOVERY_BUDGET", "3", _whole(0, 1000)),
        heartbeat_seconds=reader.required("HOLDFAST_HEARTBEAT_SECONDS", "5", _seconds(0.05, 3600)),
        lease_seconds=reader.required("HOLDFAST_LEASE_SECONDS", "20", _seconds(0.15, 86400)),
        sweep_seconds=reader.required("HOLDFAST_SWEEP_SECONDS", "10", _seconds(0.05, 86400)),
        run_dir=reader.required("HOLDFAST_RUN_DIR", "var/run", lambda text: _path(text, root)),
        checkpoint_seconds=reader.required("HOLDFAST_CHECKPOINT_SECONDS", "1", _seconds(0.05, 3600)),
        grace_seconds=reader.required("HOLDFAST_GRACE_SECONDS", "20", _seconds(0.5, 3600)),
        drains_per_worker=reader.required("HOLDFAST_DRAINS_PER_WORKER", "500", _whole(1, 100_000)),
        startup_recovery=reader.required("HOLDFAST_STARTUP_RECOVERY", "1", _flag),
        tools=reader.required("HOLDFAST_TOOLS", "", _dotted_names),
        webhook_urls=reader.required("HOLDFAST_WEBHOOK_URLS", "", _webhook_urls),
        mcp_commands=reader.required("HOLDFAST_MCP_COMMANDS", "", _commands),
        metrics_token=reader.optional("HOLDFAST_METRICS_TOKEN", _token),
        user_rate=reader.required("HOLDFAST_USER_RATE", "120000/minute", _rate),
        token_rate=reader.required("HOLDFAST_TOKEN_RATE", "60000/minute", _rate),
        sign_in_failures=reader.required("HOLDFAST_SIGN_IN_FAILURES", "10", _whole(1, 1000)),
        sign_in_pause_seconds=reader.required("HOLDFAST_SIGN_IN_PAUSE_SECONDS", "900", _whole(1, 86400)),
        proxies=reader.required("HOLDFAST_PROXIES", "0", _whole(0, 9)),
        hsts_seconds=reader.required("HOLDFAST_HSTS_SECONDS", "31536000", _whole(0, 100_000_000)),
    )


def _check_lease(parsed: Environment, environ: Mapping[str, str]) -> None:
    least = LEASE_HEARTBEATS * parsed.heartbeat_seconds
    if parsed.lease_seconds < least:
        raise BadVariable(
            name="HOLDFAST_LEASE_SECONDS",
            value=environ.get("HOLDFAST_LEASE_SECONDS", "20"),
            allowed=(
                f"at least {LEASE_HEARTBEATS} heartbeats, that is {least:g} "
                f"with HOLDFAST_HEARTBEAT_SECONDS={parsed.heartbeat_seconds:g}"
            ),
        )


class _Refused(Exception):
    """The parser's word for "not allowed"; its text says what is."""


class _Reader:
    """With a list for what is not allowed, each such value is noted there and counts as unset."""

    def __init__(self, environ: Mapping[str, str], bad: list[BadVariable] | None = None) -> None:
        self._environ = environ
        self._bad = bad
        self.asked: dict[str, str] = {}
        """Every name with its default."""

    def required(self, name: str, default: str, parse: Callable[[str], T]) -> T:
        self.asked[name] = default
        try:
            return self._parse(name, self._environ.get(name, default), parse)
        except BadVariable as bad:
            self._note(bad)
            return parse(default)

    def optional(self, name: str, parse: Callable[[str], T]) -> T | None:
        """An empty value counts as unset: that is how compose files and units clear a variable."""
        self.asked[name] = ""
        text = self._environ.get(name, "")
        try:
            return self._parse(name, text, parse) if text else None
        except BadVariable as bad:
            self._note(bad)
            return None

    def _note(self, bad: BadVariable) -> None:
        if self._bad is None:
            raise bad
        self._bad.append(bad)

    def _parse(self, name: str, text: str, parse: Callable[[str], T]) -> T:
        try:
            return parse(text)
        except _Refused as refused:
            raise BadVariable(name=name, value=text, allowed=str(refused)) from None


def _refuse(allowed: str) -> NoReturn:
    raise _Refused(allowed)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        _refuse("0 or 1")
    return text == "1"


C = TypeVar("C", bound=str)


def _choice(*choices: C) -> Callable[[str], C]:
    def parse(text: str) -> C:
        for choice in choices:
            if text == choice:
                return choice
        _refuse(", ".join(choices))

    return parse


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            _refuse(f"a whole number from {least} to {most}")
        return int(text)

    return parse


def _seconds(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not least <= float(text) <= most:
            _refuse(f"seconds from {least:g} to {most:g}, such as 5 or 0.5")
        return float(text)

    return parse


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600}


def _rate(text: str) -> Rate | None:
    """None for ``off``."""
    if text == "off":
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8})/(second|minute|hour)", text)
    if found is None:
        _refuse("requests in a time, such as 100/second, 6000/minute or 1000/hour; or off")
    return Rate(requests=int(found[1]), seconds=_UNITS[found[2]])


def _path(text: str, root: Path) -> Path:
    if not text or "\0" in text:
        _refuse("a path of a directory, absolute or relative to the project")
    return root / text


def _secret_key(text: str) -> str:
    if len(text) < SHORTEST_SECRET_KEY:
        _refuse(f"at least {SHORTEST_SECRET_KEY} characters, kept secret and the same on every host")
    return text


def _key(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        _refuse("the key as the provider shows it: printable ASCII without spaces")
    return text


def _token(text: str) -> str:
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        _refuse(f"at least {SHORTEST_TOKEN} printable ASCII characters without spaces")
    return text


def _model(text: str) -> str:
    if not _MODEL.match(text):
        _refuse("provider:model, such as demo:scripted")
    return text


def _items(text: str) -> tuple[str, ...]:
    return tuple(item for part in text.split(",") if (item := part.strip()))


def _hosts(text: str) -> tuple[str, ...]:
    hosts = _items(text)
    if not hosts or not all(_HOST.match(host) for host in hosts):
        _refuse("host names separated by commas, without scheme or port, such as chat.example.org")
    return hosts


def _origins(text: str) -> tuple[str, ...]:
    origins = _items(text)
    if not all(re.match(r"https?://[^/\s]+\Z", origin) for origin in origins):
        _refuse("origins separated by commas, such as https://chat.example.org")
    return origins


def _split(text: str, allowed: str) -> SplitResult:
    """Raises _Refused where the standard library would raise ValueError (a bad port or bracket)."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        _refuse(allowed)
    return parts


def _base_url(text: str) -> str:
    allowed = "an http or https URL without query or fragment"
    parts = _split(text, allowed)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        _refuse(allowed)
    return text.rstrip("/")


def _dotted_names(text: str) -> tuple[str, ...]:
    names = _items(text)
    if not all(re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name) for name in names):
        _refuse("dotted names of modules or tools separated by commas, such as shop.tools,shop.mail.send")
    return names


def _webhook_urls(text: str) -> tuple[str, ...]:
    allowed = (
        "http or https URLs separated by commas, without user or fragment; "
        "one that ends with / allows every URL below it"
    )
    urls = _items(text)
    for url in urls:
        parts = _split(url, allowed)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path:
            _refuse(allowed)
        if parts.username is not None or parts.fragment or "/." in parts.path or not url.isascii():
            _refuse(allowed)
    return urls


_COMMANDS: Final = (
    'NAME=command line, several separated by commas, or JSON such as {"files": ["mcp-files", "/srv/files"]}'
)


def _commands(text: str) -> dict[str, tuple[str, ...]]:
    """JSON is for what a comma or a shell's quotes cannot say."""
    given = _json_commands(text) if text.lstrip().startswith("{") else _listed_commands(text)
    commands: dict[str, tuple[str, ...]] = {}
    for name, words in given:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) or name in commands or not words:
            _refuse(_COMMANDS)
        commands[name] = words
    return commands


def _json_commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        given = json.loads(text, object_pairs_hook=list)
    except ValueError:
        _refuse(_COMMANDS)
    for name, line in given:
        if isinstance(line, str):
            yield name, _words(line)
        elif isinstance(line, list) and all(isinstance(word, str) for word in line):
            yield name, tuple(line)
        else:
            _refuse(_COMMANDS)


def _listed_commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for item in _items(text):
        name, _, line = item.partition("=")
        yield name.strip(), _words(line)


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        _refuse(_COMMANDS)


def _redis_url(text: str) -> str:
    allowed = "redis://, rediss:// or unix:// URL of one Redis server"
    parts = _split(text, allowed)
    if parts.scheme not in ("redis", "rediss", "unix"):
        _refuse(allowed)
    if not (parts.path if parts.scheme == "unix" else parts.hostname):
        _refuse(allowed)
    return text


_DATABASES: Final = (
    "sqlite:///relative/path, sqlite:////absolute/path "
    "or postgres://user:password@host:port/name (also postgresql://)"
)


def _database(text: str, root: Path) -> SQLite | PostgreSQL:
    parts = _split(text, _DATABASES)
    if parts.scheme == "sqlite":
        return _sqlite(parts, root)
    if parts.scheme in ("postgres", "postgresql"):
        return _postgresql(parts)
    _refuse(_DATABASES)


def _sqlite(parts: SplitResult, root: Path) -> SQLite:
    # Three slashes are an empty host and the slash in front of a relative path; a fourth makes it absolute.
    path = unquote(parts.path)[1:]
    if parts.netloc or not path or path.endswith("/") or parts.query or parts.fragment:
        _refuse(_DATABASES)
    if path == ":memory:":
        _refuse("a SQLite file: a database in memory would not reach the workers, nor survive")
    return SQLite(path=root / path)


def _postgresql(parts: SplitResult) -> PostgreSQL:
    name = unquote(parts.path)[1:]
    if not name or "/" in name or parts.fragment:
        _refuse(_DATABASES)
    options = _postgresql_options(parts.query)
    return PostgreSQL(
        name=name,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        host=options.pop("host", unquote(parts.hostname or "")),
        port=str(parts.port or ""),
        options=options,
    )


_POSTGRESQL_OPTIONS: Final = (
    "host", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name",
)  # fmt: skip


def _postgresql_options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in query.split("&") if query else ():
        name, equals, value = item.partition("=")
        if not equals or name not in _POSTGRESQL_OPTIONS:
            _refuse(f"{_DATABASES}; after ? only {', '.join(_POSTGRESQL_OPTIONS)}")
        options[name] = unquote(value)
    return options


def serving_role(argv: list[str]) -> Role | None:
    """What a process started without HOLDFAST_ROLE serves, told from its command line; None for commands."""
    program, *arguments = [*argv, ""]
    name = Path(program).parent.name if program.endswith("__main__.py") else Path(program).name
    if name == "daphne":
        return "web"
    return _SERVING_COMMANDS.get(arguments[0]) if name in _COMMAND_LINES else None
