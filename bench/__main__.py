"""``make bench``: every case after the other, each printing its table. ``python -m bench load``: the load proof."""

import sys

from bench import admission, load, recovery, streaming, turns


def main() -> None:
    if sys.argv[1:2] == ["load"]:
        load.main(sys.argv[2:])
    print("Admission: POST to 201, 32 clients")
    admission.run()
    print("\nStreaming: sessions of 50 words, 100 ms each, one WebSocket reader per session, one worker")
    streaming.run()
    print("\nTurns: prompt, one tool call, 200 chunks, no delay")
    turns.run()
    print("\nRecovery: a pass among 100,000 sessions, 1,000 of them orphans")
    recovery.run()


if __name__ == "__main__":
    main()
