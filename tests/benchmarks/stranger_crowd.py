"""Strangers without a token at a service's ports: silent, slow, endless, packed, deaf and malformed. Told the kind, how
many connections and the addresses; says "ready" when all have been opened once, and ends with its standard input. What is
closed on it comes again."""
import gzip
import os
import select
import socket
import sys
import time

TICK_S = 0.1
MOST_A_TICK = 50  # connections that are opened
PUT = b"PUT /nni/v1/channel/e/t/0123 HTTP/1.1\r\nHost: localhost\r\n"
BOMB = gzip.compress(b" " * (32 << 20))
DEEP = b"[" * 100_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5)
# By kind: what a connection says first, and what it goes on to say.
KINDS = {
    "silent": (b"", b""),
    "slow_heads": (b"GET /healthz HT", b"X"),
    "endless_heads": (b"GET /healthz HTTP/1.1\r\nX: ", b"x" * 4096),
    "bodies": (PUT + b"Content-Length: 1000000\r\n\r\n{", b" "),
    "endless_bodies": (PUT + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b" " * 4096 + b"\r\n"),
    "packed": (PUT + f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}\r\n\r\n".encode() + BOMB, b""),
    "deep": (PUT + f"Content-Length: {len(DEEP)}\r\n\r\n".encode() + DEEP, b""),
    "ranges": (b"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-" + b",0-" * 300 + b"\r\n\r\n", b""),
    "deaf": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50, b""),
    "malformed": (os.urandom(512), b"\0"),
    "http2": (PREFACE, b""),
}


class Crowd:
    def __init__(self, kind, count, addresses):
        self.first, self.more = KINDS[kind]
        self.addresses = addresses
        self.wanted = count
        self.opened = 0
        self.sockets = set()

    def open(self):
        host, port = self.addresses[self.opened % len(self.addresses)].rsplit(":", 1)
        self.opened += 1
        one = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        one.settimeout(10)
        try:
            one.connect((host.strip("[]"), int(port)))
            one.setblocking(False)
            self.say(one, self.first)
            self.sockets.add(one)
        except OSError:
            one.close()

    def say(self, one, text):
        try:
            if text:
                one.send(text)
        except BlockingIOError:
            pass

    def tick(self):
        watch = select.poll()
        by_number = {one.fileno(): one for one in self.sockets}
        for number in by_number:
            watch.register(number, select.POLLRDHUP)
        gone = {by_number[number] for number, _ in watch.poll(0)}
        for one in self.sockets - gone:
            try:
                self.say(one, self.more)
            except OSError:
                gone.add(one)
        for one in gone:
            self.sockets.discard(one)
            one.close()
        for _ in range(min(MOST_A_TICK, self.wanted - len(self.sockets))):
            self.open()


def main():
    kind, count, *addresses = sys.argv[1:]
    os.nice(19)
    crowd = Crowd(kind, int(count), addresses)
    ready = False
    while not select.select([sys.stdin], [], [], TICK_S)[0]:
        crowd.tick()
        if not ready and crowd.opened >= crowd.wanted:
            ready = True
            print("ready", flush=True)


if __name__ == "__main__":
    main()
