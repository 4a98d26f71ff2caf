"""Makes the wheel of torch importable where the CUDA libraries that it is linked with are not installed.

    torch_stubs.py [--remove] SITE_PACKAGES

LibTorch's CPU part needs two of them, `import torch` loads all. For each that is missing this makes a small library
of its name, with the functions that torch's own libraries look for, which end the process if they are called: what
runs on the CPU never does. They go to site-packages/nvidia/cu13/lib, where torch looks. Needs gcc and binutils.

--remove takes them away, before the libraries themselves are installed: those may go to other folders, and the stubs would
be found first."""
import collections
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import tempfile

_FOLDER = "nvidia/cu13/lib"


def output(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def needed_by(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library))


def versions_of(library):
    """Which library each version of a symbol is asked of."""
    of, file = {}, ""
    for line in output("readelf", "-VW", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            file = found.group(1)
        elif found := re.search(r"Name: (\S+)\s+Flags:", line):
            of[found.group(1)] = file
    return of


def undefined_in(library):
    """(symbol, version) of each that must come from elsewhere; weak ones need not."""
    for line in output("nm", "-D", "--undefined-only", library).splitlines():
        kind, symbol = line.split()[-2:]
        if kind == "U":
            name, _, version = symbol.partition("@")
            yield name, version


def defined_in(library):
    return {line.split()[-1].partition("@")[0]
            for line in output("nm", "-D", "--defined-only", library).splitlines()}


def missing(libraries, site_packages):
    """By name of each library that is not there: the (symbol, version) that are asked of it."""
    there = {p.name: p for folder in (libraries, *site_packages.glob("nvidia/*/lib")) for p in folder.glob("*.so*")}
    # Those of a toolkit that may be installed elsewhere are not looked for: torch's own folders come first.
    system = set(re.findall(r"^\s*(\S+) \(.*=> (?:/usr)?/lib/", output("/sbin/ldconfig", "-p"), re.MULTILINE))
    wanted = collections.defaultdict(set)
    known = None
    for library in sorted(libraries.glob("*.so")):
        absent = [name for name in needed_by(library) if name not in there and name not in system]
        for name in absent:
            wanted[name]  # also one of which nothing is asked
        if not absent:
            continue
        if known is None:
            own = set().union(*(defined_in(p) for p in there.values()))
            libc = set().union(*(defined_in(p) for p in system_libraries()))
            known = own | libc
        asked_of = versions_of(library)
        for symbol, version in undefined_in(library):
            if asked_of.get(version) in wanted:
                wanted[asked_of[version]].add((symbol, version))
            elif not version and symbol not in known:
                wanted[absent[0]].add((symbol, ""))
    return wanted


def system_libraries():
    listed = output("/sbin/ldconfig", "-p")
    for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1"):
        found = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)", listed, re.MULTILINE)
        if found:
            yield pathlib.Path(found.group(1))


def make_stub(name, symbols, folder):
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        lines = ["void abort(void);"]
        versions = collections.defaultdict(list)
        for symbol, version in sorted(symbols):
            lines.append(f"void {symbol}(void) {{ abort(); }}")
            versions[version].append(symbol)
        (work / "stub.c").write_text("\n".join(lines) + "\n")
        script = "".join(f"{version} {{ global: {'; '.join(of_it)}; }};\n"
                         for version, of_it in versions.items() if version)
        (work / "versions").write_text(script)
        command = ["gcc", "-shared", "-fPIC", "-nostartfiles", "-w", f"-Wl,-soname,{name}", "-o", str(folder / name),
                   str(work / "stub.c")]
        if script:
            command.append(f"-Wl,--version-script={work / 'versions'}")
        subprocess.run(command, check=True)


def remove(folder, site_packages):
    """What no package has put there."""
    owned = {pathlib.Path(file.locate()).resolve() for package in importlib.metadata.distributions(path=[str(site_packages)])
             for file in package.files or ()}
    stubs = [path for path in folder.glob("*.so*") if path.resolve() not in owned]
    for path in stubs:
        path.unlink()
    print(f"torch_stubs: {len(stubs)} libraries removed")


def main():
    *options, site_packages = sys.argv[1:]
    site_packages = pathlib.Path(site_packages)
    folder = site_packages / _FOLDER
    if options == ["--remove"]:
        return remove(folder, site_packages)
    wanted = missing(site_packages / "torch/lib", site_packages)
    wanted.pop("libcuda.so.1", None)  # the driver's, which is loaded only where there is one
    folder.mkdir(parents=True, exist_ok=True)
    for name, symbols in wanted.items():
        make_stub(name, symbols, folder)
    print(f"torch_stubs: {len(wanted)} libraries with {sum(map(len, wanted.values()))} functions")


if __name__ == "__main__":
    main()
