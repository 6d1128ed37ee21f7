"""Another process on a channel layer, obeying one JSON command a line and telling what it receives.

Run as ``python -m tests.live.peer uds PATH hub|client`` or ``python -m tests.live.peer redis URL``.
Commands: ["join", group], ["leave", group], ["send", group, first, count], ["flood", group, bytes, count].
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from typing import Any

from tests.support.waiting import until


class Peer:
    """The test's end: starts the process, gives commands, collects what it heard."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.live.peer", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.heard: list[Any] = []
        self.answers: list[Any] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        until(lambda: self.answers, what="the peer's start")
        self.answers.clear()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            kind, value = json.loads(line)
            (self.heard if kind == "heard" else self.answers).append(value)

    def tell(self, *command: Any) -> Any:
        assert self.process.stdin is not None
        self.answers.clear()
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return until(lambda: self.answers, what=f"an answer to {command[0]}")[0]

    def wait_heard(self, value: Any, *, within: float = 10) -> None:
        until(lambda: value in self.heard, within=within, what=f"{value} at the peer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def _layer(arguments: list[str]) -> Any:
    if arguments[0] == "redis":
        from channels_redis.pubsub import RedisPubSubChannelLayer

        return RedisPubSubChannelLayer(hosts=[arguments[1]])
    from sessions_app.live.layer import UnixSocketChannelLayer

    return UnixSocketChannelLayer(path=arguments[1], hosts_hub=arguments[2] == "hub")


def _say(kind: str, value: Any) -> None:
    print(json.dumps([kind, value]), flush=True)


async def _hear(layer: Any, channel: str) -> None:
    while True:
        message = await layer.receive(channel)
        _say("heard", message.get("n", message["type"]))


async def _obey(layer: Any, channel: str, command: list[Any]) -> Any:
    match command:
        case ["join", group]:
            await layer.group_add(group, channel)
        case ["leave", group]:
            await layer.group_discard(group, channel)
        case ["send", group, first, count]:
            for n in range(first, first + count):
                await layer.group_send(group, {"type": "test", "n": n})
        case ["flood", group, size, count]:
            started = time.monotonic()
            for _ in range(count):
                await layer.group_send(group, {"type": "test", "n": -1, "bulk": "x" * size})
            return {"seconds": time.monotonic() - started, "dropped": layer.dropped.total}
    return "done"


async def _main(arguments: list[str]) -> None:
    layer = _layer(arguments)
    if hasattr(layer, "serve"):
        await layer.serve()
    channel = await layer.new_channel()
    hearing = asyncio.create_task(_hear(layer, channel))
    _say("answer", "ready")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        _say("answer", await _obey(layer, channel, json.loads(line)))
    hearing.cancel()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
