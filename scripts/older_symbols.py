"""Has programs and libraries ask for the older of two versions of a symbol that libstdc++ has twice, so that they load
where only that one is.

    older_symbols.py FILE...                in each file
    older_symbols.py --copies DIR FILE...   and in copies, in DIR, of the libraries that the files load

GCC 12 gave std::condition_variable::wait a second version, which differs for threads that are cancelled alone. Whatever
is compiled by it asks for that one: Debian's libraries too, which a wheel brings. Rocky 9 and Ubuntu 22.04, which
manylinux_2_34 is for, have the older one."""
import pathlib
import re
import struct
import subprocess
import sys

SYMBOL = b"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
NEWER, OLDER = b"GLIBCXX_3.4.30", b"GLIBCXX_3.4.11"

_DYNSYM, _VERSIONS_NEEDED, _VERSIONS_OF_SYMBOLS = 11, 0x6ffffffe, 0x6fffffff  # types of sections
_SYMBOL_SIZE = 24


class _Elf:
    """What is needed of a 64-bit file in this machine's byte order: offsets in its bytes."""

    def __init__(self, content):
        self.content = content
        first, = struct.unpack_from("<Q", content, 0x28)
        size, count = struct.unpack_from("<HH", content, 0x3a)
        headers = [struct.unpack_from("<IIQQQQIIQQ", content, first + i * size) for i in range(count)]
        self._places = [(header[4], header[5]) for header in headers]  # offset, size
        self._sections = {header[1]: (header[4], header[5], header[6]) for header in headers}  # and which has its texts

    def text(self, section, at):
        start = self._places[section][0] + at
        return bytes(self.content[start:self.content.index(b"\0", start)])

    def versions_needed(self):
        """By name: the offset of its entry, and its index. Those of libstdc++ are of no other library."""
        at, _, texts = self._sections.get(_VERSIONS_NEEDED, (0, 0, 0))
        found, further = {}, 1 if at else 0
        while further:
            _, _, _, first, further = struct.unpack_from("<HHIII", self.content, at)
            entry, more = at + first, 1
            while more:
                _, _, index, name, more = struct.unpack_from("<IHHII", self.content, entry)
                found[self.text(texts, name)] = (entry, index)
                entry += more
            at += further
        return found

    def symbols_of(self, version):
        """The names of those that are asked for in the version of that index."""
        symbols, size, texts = self._sections[_DYNSYM]
        versions = self._sections[_VERSIONS_OF_SYMBOLS][0]
        return {self.text(texts, struct.unpack_from("<I", self.content, symbols + i * _SYMBOL_SIZE)[0])
                for i in range(size // _SYMBOL_SIZE)
                if struct.unpack_from("<H", self.content, versions + 2 * i)[0] & 0x7fff == version}


def with_older(content, name):
    """The file's content where it asks for the older version; None where it asks for neither."""
    elf = _Elf(bytearray(content))
    needed = elf.versions_needed()
    if NEWER not in needed:
        return None
    entry, index = needed[NEWER]
    if others := elf.symbols_of(index) - {SYMBOL}:
        raise SystemExit(f"older_symbols: {name} asks for {min(others).decode()} of {NEWER.decode()}, of which no older "
                         f"version is known: only {SYMBOL.decode()} may be of it")
    if OLDER not in needed:  # what waits for a condition has made one, which is of that version
        raise SystemExit(f"older_symbols: {name} asks for nothing of {OLDER.decode()}")
    older = needed[OLDER][0]
    for field in (0, 8):  # the hash, and where the name is
        elf.content[entry + field:entry + field + 4] = elf.content[older + field:older + field + 4]
    return bytes(elf.content)


def loaded_by(files):
    for line in subprocess.run(["ldd", *files], check=True, text=True, capture_output=True).stdout.splitlines():
        if found := re.match(r"\s+(\S+) => (/\S+) ", line):
            yield found.groups()


def main():
    arguments = sys.argv[1:]
    copies = pathlib.Path(arguments[1]) if arguments[:1] == ["--copies"] else None
    files = arguments[2:] if copies else arguments
    if not files:
        raise SystemExit(__doc__)
    if copies:
        copies.mkdir(parents=True, exist_ok=True)
        for name, path in sorted(set(loaded_by(files))):
            # The library that has both versions is no part of a wheel.
            changed = name != "libstdc++.so.6" and with_older(pathlib.Path(path).read_bytes(), path)
            if changed:
                (copies / name).write_bytes(changed)
    for path in map(pathlib.Path, files):
        if changed := with_older(path.read_bytes(), path):
            path.write_bytes(changed)


if __name__ == "__main__":
    main()
