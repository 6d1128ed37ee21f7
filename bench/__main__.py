"""``make bench``: every case after the other, each printing its table; or the cases that are named.

python -m bench [admission|streaming|turns|recovery]...
python -m bench load [options]                            the load proof, see its --help
"""

import argparse
import sys
from collections.abc import Callable
from typing import Final

from bench import admission, load, recovery, streaming, turns

CASES: Final[dict[str, tuple[str, Callable[[], None]]]] = {
    "admission": ("Admission: POST to 201, 32 clients", admission.run),
    "streaming": (
        "Streaming: sessions of 50 words, 100 ms each, one WebSocket reader per session, one worker",
        streaming.run,
    ),
    "turns": ("Turns: prompt, one tool call, 200 chunks, no delay", turns.run),
    "recovery": ("Recovery: a pass among 100,000 sessions, 1,000 of them orphans", recovery.run),
}


def main() -> None:
    if sys.argv[1:2] == ["load"]:
        load.main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", nargs="*", help="default: all")
    wanted = parser.parse_args().case or list(CASES)
    if unknown := sorted(set(wanted) - CASES.keys()):
        parser.error(f"no such case: {', '.join(unknown)} (choose from {', '.join(CASES)})")
    for name in wanted:
        title, run = CASES[name]
        print(f"\n{title}", flush=True)
        run()


if __name__ == "__main__":
    main()
