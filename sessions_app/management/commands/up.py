"""``manage.py up``: the web server and the workers under one parent."""

import os
import secrets
import socket
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import Error

from schema.limits import MAX_FRAME_BYTES
from sessions_app import local_model
from sessions_app.execution import lineage
from sessions_app.management.commands import drain_worker
from sessions_app.supervisor import ground
from sessions_app.supervisor.child import Child
from sessions_app.supervisor.greeting import answers, greeting, public_url
from sessions_app.supervisor.supervise import Supervisor


class Command(BaseCommand):
    help = (
        "Start the web server and the workers. Ctrl-C or SIGTERM stops both within HOLDFAST_GRACE_SECONDS; "
        "one that dies is started again. A SQLite file is migrated first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
        parser.add_argument(
            "--port", type=_port, default=8000, help="0 takes a free one (default %(default)s)"
        )
        parser.add_argument(
            "--workers",
            type=drain_worker.number_of_workers,
            default=drain_worker.DEFAULT_WORKERS,
            help="number of worker processes; each hosts many sessions (default %(default)s)",
        )
        only = parser.add_mutually_exclusive_group()
        only.add_argument("--web-only", action="store_true", help="start the web server only")
        only.add_argument("--workers-only", action="store_true", help="start the workers only")

    def handle(self, *args: Any, **options: Any) -> None:
        self._began = time.monotonic()
        lineage.name_process("hf-up")
        try:
            sys.exit(self._run(**options))
        except ground.StartRefused as refused:
            self._say(str(refused), to=self.stderr)
            sys.exit(1)

    def _run(
        self, *, host: str, port: int, workers: int, web_only: bool, workers_only: bool, **_: Any
    ) -> int:
        parts = [part for part, left_out in (("web", workers_only), ("workers", web_only)) if not left_out]
        with ExitStack() as held:
            if "web" in parts:
                ground.require_secret(host=host, environ=os.environ)
            held.enter_context(ground.sole_use(*parts))
            listener = held.enter_context(ground.listen(host=host, port=port)) if "web" in parts else None
            ground.migrate_or_refuse()
            return self._supervise(host, listener, workers if "workers" in parts else 0)

    def _supervise(self, host: str, listener: socket.socket | None, workers: int) -> int:
        environ = {**os.environ, **_local_model_environ()}
        children = [_workers(workers, environ)] if workers else []
        if workers and _has_local_model():
            children.insert(0, _local_model(environ))
        if listener is None:
            greet, close = self._ready, _nothing
        else:
            children.append(_web(listener, environ))
            port = listener.getsockname()[1]
            greet, close = (lambda: self._greet(host, port)), listener.close
        grace = settings.HOLDFAST_GRACE_SECONDS
        return Supervisor(children=children, grace=grace, say=self._say, greet=greet, close=close).run()

    def _greet(self, host: str, port: int) -> bool:
        if not answers(host=host, port=port):
            return False
        url = public_url(host=host, port=port)
        try:
            lines = greeting(url=url)
        except Error as error:
            lines = [f"The database did not answer ({type(error).__name__}).", f"Open {url}/"]
        self._ready()
        for line in lines:
            self._say(line)
        return True

    def _ready(self) -> bool:
        self._say(f"Ready in {time.monotonic() - self._began:.1f} s. Ctrl-C stops.")
        return True

    def _say(self, line: str, *, to: Any = None) -> None:
        stream = to or self.stdout
        try:
            stream.write(f"holdfast: {line}")
            stream.flush()
        except BrokenPipeError:
            # Nobody reads any more; what runs goes on, and says the rest to nobody.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _nothing() -> None:
    """Without a web server there is no socket to close."""


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ArgumentTypeError(f"{text!r} is not a port: give 0 to 65535")
    return int(text)


def _has_local_model() -> bool:
    return settings.HOLDFAST_LOCAL_MODEL and local_model.is_installed()


def _local_model_environ() -> dict[str, str]:
    """Where the model is found, with a key that only what we start knows."""
    if not _has_local_model() or settings.HOLDFAST_LOCAL_PORT is not None:
        return {}
    return {
        "HOLDFAST_LOCAL_PORT": str(ground.free_port(local_model.HOST)),
        "HOLDFAST_LOCAL_KEY": settings.HOLDFAST_LOCAL_KEY or secrets.token_urlsafe(32),
    }


def _local_model(environ: Mapping[str, str]) -> Child:
    return Child(
        name="local model",
        command=[sys.executable, "manage.py", "local_model"],
        directory=settings.BASE_DIR,
        environ=environ,
        stops_last=True,
    )


def _workers(count: int, environ: Mapping[str, str]) -> Child:
    return Child(
        name="workers",
        command=[sys.executable, "manage.py", "drain_worker", "--workers", str(count)],
        directory=settings.BASE_DIR,
        environ={**environ, "HOLDFAST_ROLE": "worker"},
    )


def _web(listener: socket.socket, environ: Mapping[str, str]) -> Child:
    descriptor = listener.fileno()
    return Child(
        name="web",
        command=[
            *(sys.executable, "-m", "daphne", "--fd", str(descriptor), "-v", "0", "--no-server-name"),
            *("--websocket_timeout", "-1", "--websocket_connect_timeout", "20"),
            *("--websocket-max-message-size", str(MAX_FRAME_BYTES)),
            *("--websocket-max-frame-size", str(MAX_FRAME_BYTES), "config.asgi:application"),
        ],
        directory=settings.BASE_DIR,
        environ={**environ, "HOLDFAST_ROLE": "web"},
        descriptors=[descriptor],
    )
