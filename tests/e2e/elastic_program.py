"""An elastic program of one replica without LibTorch: it speaks the replica's side of control.proto over its socket.

    elastic_program.py EPOCHS SECONDS BYTES [EVERY [LAST]]

Each epoch takes so many seconds; after every EVERY-th, up to LAST, it saves a checkpoint of so many bytes, with the seal of the
trial runner's. It goes on from ESPALIER_CHECKPOINT, which it refuses if that is damaged, and prints from which epoch.
"""
import lzma
import os
import pathlib
import select
import socket
import struct
import sys
import time

EPOCHS, SECONDS, BYTES = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
EVERY = int(sys.argv[4]) if len(sys.argv) > 4 else 1
LAST = int(sys.argv[5]) if len(sys.argv) > 5 else EPOCHS
FOLDER = pathlib.Path(os.environ["ESPALIER_CHECKPOINT_DIR"])
SEAL = "espalier-checkpoint-1 %016x %016x"
NO_VALUE = 0x7ff8000000000000
SEAL_BYTES = len(SEAL % (0, 0))


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def message(field, body):
    return varint(field << 3 | 2) + varint(len(body)) + body


def fields(data):
    """(field, value) of a message whose fields are numbers and lengths."""
    at = 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = take()
        if key & 7 == 0:
            yield key >> 3, take()
        else:
            size = take()
            yield key >> 3, data[at:at + size]
            at += size


class Control:
    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["ESPALIER_CONTROL_FD"]))
        self.unread = b""

    def say(self, field, body):
        body = message(field, body)
        self.socket.sendall(struct.pack("<I", len(body)) + body)

    def hear(self, seconds):
        """The Regroup that comes within so many seconds, as (generation, its number of members); else None."""
        end = time.monotonic() + seconds
        while True:
            if len(self.unread) >= 4 and len(self.unread) >= 4 + (size := struct.unpack("<I", self.unread[:4])[0]):
                command, self.unread = self.unread[4:4 + size], self.unread[4 + size:]
                (kind, body), = fields(command)
                if kind == 1:
                    parts = list(fields(body))
                    return dict(p for p in parts if p[0] == 1).get(1, 0), sum(p[0] == 2 for p in parts)
            ready, _, _ = select.select([self.socket], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            data = self.socket.recv(65536)
            if not data:
                sys.exit(0)
            self.unread += data


def crc64(data):
    """CRC-64/XZ, which is what the xz format puts behind the data, before index and footer."""
    packed = lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=0)
    index_bytes = (struct.unpack("<I", packed[-8:-4])[0] + 1) * 4
    end = len(packed) - 12 - index_bytes
    return struct.unpack("<Q", packed[end - 8:end])[0]


def save(control, epoch):
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Repeated, as the checksum is quick of what packs well.
    content = epoch.to_bytes(8, "little") + (os.urandom(4096) * (BYTES // 4096 + 1))[:BYTES]
    path = FOLDER / f"step-{epoch}.pt"
    new = path.with_suffix(".new")
    with open(new, "wb") as file:
        file.write(content + (SEAL % (crc64(content), NO_VALUE)).encode())
        os.fsync(file.fileno())
    new.rename(path)
    kept = sorted(FOLDER.glob("step-*.pt"), key=lambda p: int(p.stem[5:]))
    for old in kept[:-2]:
        old.unlink()
    control.say(5, message(1, str(path).encode()) + number(2, epoch))


def load():
    path = os.environ.get("ESPALIER_CHECKPOINT")
    if not path:
        return 0
    data = pathlib.Path(path).read_bytes()
    content = data[:-SEAL_BYTES]
    if data[len(content):] != (SEAL % (crc64(content), NO_VALUE)).encode():
        sys.exit(f"checkpoint {path}: is damaged")
    return int.from_bytes(data[:8], "little")


def main():
    epoch = load()
    print(f"goes on from epoch {epoch}", flush=True)
    control = Control()
    # Address, and batch bounds of 64.
    control.say(1, message(1, b"127.0.0.1:1") + message(2, b"".join(number(i, 64) for i in (1, 2, 4)) + number(3, 1)))
    generation, members = None, 0
    while epoch < EPOCHS:
        word = control.hear(SECONDS if generation else 3600)
        if word:
            generation, members = word
            if not members:
                save(control, epoch)
                sys.exit(0)
            control.say(2, number(1, generation) + number(2, epoch))
            continue
        epoch += 1
        if epoch % EVERY == 0 and epoch <= LAST:
            save(control, epoch)
        control.say(3, number(1, epoch) + double(2, 1 / epoch))
    control.say(6, b"")


main()
