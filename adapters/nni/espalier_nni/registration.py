"""Which training services this NNI knows: its file training_services.json, written, checked and repaired.

NNI imports every package of that file at every start, so one that cannot be imported breaks all experiments.
"""
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

PACKAGES = ("espalier_nni", "adl")
MODULE_PATH = pathlib.Path(__file__).resolve().parent / "module" / "espalier_training_service.js"
MODULE_CLASS = "EspalierTrainingService"
NNI_VERSION = "3.0"

# Prints why each package could not be imported, as NNI would.
_TRY = """
import importlib, json, sys
found = {}
for package in sys.argv[1:]:
    try:
        importlib.import_module(package).nni_training_service_info.config_class()
    except Exception as error:
        found[package] = f"{type(error).__name__}: {error}"
print()
print(json.dumps(found))
"""


class RegistrationError(Exception):
    """What is wrong with the registration, and what repairs it."""


def path():
    """NNI's file; NNI makes it when it looks for it. Does not import NNI, which takes seconds and may be what is broken."""
    if os.environ.get("NNI_CONFIG_DIR"):
        return pathlib.Path(os.environ["NNI_CONFIG_DIR"]) / "training_services.json"
    if sys.prefix != sys.base_prefix or pathlib.Path(sys.prefix, "conda-meta").is_dir():
        return pathlib.Path(sys.prefix, "nni", "training_services.json")
    return pathlib.Path.home() / ".config" / "nni" / "training_services.json"


def read():
    """The registered services by package name."""
    file = path()
    if not file.exists():
        return {}
    try:
        services = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RegistrationError(f'"{file}" is not JSON ({error}): `espalier-nni unregister` sets it aside, then '
                                "register again what you need") from None
    if not isinstance(services, dict):
        raise RegistrationError(f'"{file}" does not hold an object by package names: `espalier-nni unregister` sets it '
                                "aside, then register again what you need")
    return services


def write(services):
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps(services, indent=4) + "\n", encoding="utf-8")
    os.replace(fresh, file)


def entry():
    return {"nodeModulePath": str(MODULE_PATH), "nodeClassName": MODULE_CLASS}


def register(packages):
    services = read()
    services.update({package: entry() for package in packages})
    write(services)


def unregister(packages):
    """Takes them out, and whatever cannot be imported or read; returns what went, each with its reason."""
    try:
        services = read()
    except RegistrationError:
        aside = path().with_suffix(".broken")
        os.replace(path(), aside)
        write({})
        return {path().name: f"was not readable, and is now {aside}"}
    gone = {package: "as asked" for package in packages if package in services}
    gone.update(import_problems(sorted(set(services) - set(packages))))
    for package in gone:
        del services[package]
    write(services)
    return gone


def require(platform):
    """Refuses a registration that leads NNI's manager to another module than this package's."""
    found = read().get(platform)
    if found is None:
        raise RegistrationError(f'the training service "{platform}" is not registered in "{path()}": run '
                                "`espalier-nni register`")
    module = pathlib.Path(str(found.get("nodeModulePath"))) if isinstance(found, dict) else None
    if found != entry():
        raise RegistrationError(f'the training service "{platform}" is registered with the module "{module}", but this '
                                f'package\'s is "{MODULE_PATH}": run `espalier-nni register` again')


def import_problems(packages):
    """Why NNI could not import packages, by name. In a process of its own: an import may end the interpreter."""
    found = {package: "not a name of a package" for package in packages
             if not all(part.isidentifier() for part in package.split("."))}
    left = [package for package in packages if package not in found]
    done = _try_imports(left)
    if done.returncode == 0:
        return {**found, **json.loads(done.stdout.splitlines()[-1])}
    for package in left:
        done = _try_imports([package])
        if done.returncode != 0:
            found[package] = f"the import ends with status {done.returncode}"
        else:
            found.update(json.loads(done.stdout.splitlines()[-1]))
    return found


def _try_imports(packages):
    return subprocess.run([sys.executable, "-c", _TRY, *packages], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          cwd="/", check=False)


def problems():
    """What would keep experiments from running here, each with what to do; empty when all is well."""
    found = []
    try:
        nni = importlib.metadata.version("nni")
        if nni != NNI_VERSION:
            found.append(f"NNI {nni} is installed, this package is for {NNI_VERSION}: pip install nni=={NNI_VERSION}")
    except importlib.metadata.PackageNotFoundError:
        found.append(f'NNI is not installed here ("{sys.executable}"): pip install nni=={NNI_VERSION}')
    if importlib.util.find_spec("pkg_resources") is None:
        found.append('nnictl needs pkg_resources, which this setuptools no longer has: pip install "setuptools<81"')
    if not MODULE_PATH.is_file():
        found.append(f'"{MODULE_PATH}" is missing: install espalier-nni again')
    if "node_modules" in MODULE_PATH.parts:
        found.append(f'"{MODULE_PATH}" has a folder node_modules on its path, where NNI\'s own modules cannot be found: '
                     "install espalier-nni elsewhere")
    try:
        services = read()
    except RegistrationError as error:
        return found + [str(error)]
    for package in PACKAGES:
        if package in services or package == PACKAGES[0]:
            try:
                require(package)
            except RegistrationError as error:
                found.append(str(error))
    for package, problem in import_problems(sorted(services)).items():
        found.append(f'the registered package "{package}" cannot be imported ({problem}), which stops every experiment of '
                     "this NNI: install it again, or run `espalier-nni unregister`, which removes what is broken")
    return found
