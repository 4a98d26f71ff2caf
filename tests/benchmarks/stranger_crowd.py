"""Strangers without a token at ports of ours: silent, slow, endless, packed, deaf, guessing and malformed. Told the kind,
how many connections and the addresses, HOST:PORT, or tls://HOST:PORT where TLS is spoken; says "ready" when all have been
opened once, and ends with its standard input. What is closed on it comes again."""
import gzip
import os
import select
import socket
import ssl
import struct
import sys
import time

TICK_S = 0.1
MOST_A_TICK = 50  # connections that are opened
PUT = b"PUT /nni/v1/channel/e/t/0123 HTTP/1.1\r\nHost: localhost\r\n"
BOMB = gzip.compress(b" " * (32 << 20))
DEEP = b"[" * 100_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5)
ACKNOWLEDGE = bytes(3) + b"\4\1" + bytes(4)
HEADERS, CONTINUATION, PING = 1, 9, 6


def frame(kind, payload, stream=1):
    """Of HTTP/2; a header block does not end with it."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, 0]) + struct.pack(">I", stream) + payload


LONG = b"\x7f\x81\xff\xff\x03"  # a text of 8 MiB
FIELD = b"\0\1a\1b"


def guess(shown):
    """Of what begins a session."""
    return b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nAuthorization: " + shown + b"\r\n\r\n"


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
    "guessed_tokens": (guess(b"Bearer esp1.01234567." + b"0f" * 32), b""),
    "guessed_codes": (guess(b"Espalier-Code " + b"0f" * 32), b""),
    "long_guesses": (guess(b"Bearer " + b"x" * (60 << 10)), b""),
    "http2": (PREFACE, b""),
    "continuations": (PREFACE + frame(HEADERS, FIELD), frame(CONTINUATION, FIELD * 1024) * 8),
    "huge_value": (PREFACE + frame(HEADERS, b"\0\1a" + LONG), frame(CONTINUATION, b"x" * 8192) * 8),
    "huge_name": (PREFACE + ACKNOWLEDGE + frame(HEADERS, b"\0" + LONG), frame(CONTINUATION, b"x" * 8192) * 8),
    "zeros": (PREFACE + ACKNOWLEDGE + frame(HEADERS, b"\xff"), frame(CONTINUATION, b"\x80" * 8192) * 8),
    "pings": (PREFACE, frame(PING, bytes(8), 0) * 1000),
    "slow_http2": (PREFACE + frame(HEADERS, b"\0\1a" + LONG), frame(CONTINUATION, b"x")),
}
HTTP2_KINDS = list(KINDS)[-7:]
BLIND = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BLIND.check_hostname = False
BLIND.verify_mode = ssl.CERT_NONE
BLIND.set_alpn_protocols(["h2"])


class Crowd:
    def __init__(self, kind, count, addresses):
        self.first, self.more = KINDS[kind]
        self.addresses = addresses
        self.wanted = count
        self.opened = 0
        self.sockets = set()
        self.shaking = set()

    def open(self):
        address = self.addresses[self.opened % len(self.addresses)]
        tls = address.startswith("tls://")
        host, port = address.removeprefix("tls://").rsplit(":", 1)
        self.opened += 1
        one = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        one.settimeout(10)
        try:
            one.connect((host.strip("[]"), int(port)))
            one.setblocking(False)
            if tls:
                one = BLIND.wrap_socket(one, do_handshake_on_connect=False)
            self.begin(one)
            self.sockets.add(one)
        except OSError:
            one.close()

    def begin(self, one):
        """Its first words, once a handshake is done."""
        try:
            if isinstance(one, ssl.SSLSocket):
                one.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self.shaking.add(one)
            return
        self.shaking.discard(one)
        self.say(one, self.first)

    def say(self, one, text):
        try:
            if text:
                one.send(text)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass

    def tick(self):
        watch = select.poll()
        by_number = {one.fileno(): one for one in self.sockets}
        for number in by_number:
            watch.register(number, select.POLLRDHUP)
        gone = {by_number[number] for number, _ in watch.poll(0)}
        for one in self.sockets - gone:
            try:
                if one in self.shaking:
                    self.begin(one)
                else:
                    self.say(one, self.more)
            except OSError:
                gone.add(one)
        for one in gone:
            self.sockets.discard(one)
            self.shaking.discard(one)
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
