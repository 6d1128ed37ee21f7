"""``make bench``: every case after the other, each printing its table."""

from bench import admission, streaming, turns


def main() -> None:
    print("Admission: POST to 201, 32 clients")
    admission.run()
    print("\nStreaming: sessions of 50 words, 100 ms each, one WebSocket reader per session, one worker")
    streaming.run()
    print("\nTurns: prompt, one tool call, 200 chunks, no delay")
    turns.run()


if __name__ == "__main__":
    main()
