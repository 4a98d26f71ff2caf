"""The command espalier-nni."""
import argparse
import json
import os
import pathlib
import ssl
import sys
import urllib.error
import urllib.request

from espalier_nni import registration, v1

_BROKEN_PIPE = 141  # what a shell says of a program that SIGPIPE has ended
PROTOCOL = 1  # of docs/nni_protocol.md, as in module/service_client.js


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="espalier-nni", description="NNI 3.0 experiments on an Espalier pool.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("register", help="let this NNI know the platforms espalier_nni and adl").set_defaults(run=_register)
    verbs.add_parser("unregister", help="take them out again, and every registered package that cannot be imported"
                     ).set_defaults(run=_unregister)
    check = verbs.add_parser("check", help="say what would keep experiments from running, and what to do about it")
    check.add_argument("--service", metavar="URL", help="also ask this service, such as http://127.0.0.1:7078")
    check.add_argument("--token-file", help="file with the service's token (default: ESPALIER_TOKEN_FILE)",
                       default=os.environ.get("ESPALIER_TOKEN_FILE"))
    check.add_argument("--tls-ca", help="certificates to trust, for a service that speaks TLS (default: ESPALIER_TLS_CA)",
                       default=os.environ.get("ESPALIER_TLS_CA"))
    check.set_defaults(run=_check)
    convert = verbs.add_parser("convert", help="write an AdaptDL experiment of NNI 2.x (YAML of version 1) anew for NNI 3.0")
    convert.add_argument("old", metavar="OLD.yml", type=pathlib.Path)
    convert.add_argument("-o", "--output", metavar="NEW.yml", type=pathlib.Path, help="a new file (default: standard output)")
    convert.add_argument("--platform", choices=registration.PACKAGES, default=registration.PACKAGES[0],
                         help="(default: %(default)s)")
    convert.add_argument("--service", metavar="URL", help="the service's address (default: the platform's)")
    convert.set_defaults(run=_convert)
    chosen = parser.parse_args(arguments)
    try:
        code = chosen.run(chosen)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (registration.RegistrationError, v1.ConversionError, OSError) as error:
        is_of_file = isinstance(error, OSError) and error.filename is not None
        told = f'"{error.filename}": {error.strerror}' if is_of_file else error
        print(f"espalier-nni {chosen.verb}: {told}", file=sys.stderr)
        return 1


def _register(_):
    registration.register(registration.PACKAGES)
    print(f'registered {" and ".join(registration.PACKAGES)} in "{registration.path()}"')
    return 0


def _unregister(_):
    gone = registration.unregister(registration.PACKAGES)
    for name, reason in gone.items():
        print(f"removed {name}: {reason}")
    if not gone:
        print(f'nothing to remove in "{registration.path()}"')
    return 0


def _check(chosen):
    problems = registration.problems()
    if chosen.service:
        try:
            print(_ask(chosen.service.rstrip("/"), chosen.token_file, chosen.tls_ca))
        except (OSError, ValueError) as error:
            problems.append(f"the service at {chosen.service}: {error}")
    for problem in problems:
        print(f"problem: {problem}")
    if not problems:
        print(f'registered in "{registration.path()}", nothing is wrong')
    return 1 if problems else 0


def _ask(address, token_file, tls_ca):
    if not address.startswith(("http://", "https://")):
        raise ValueError("want a URL, such as http://127.0.0.1:7078")
    request = urllib.request.Request(address + "/nni/v1/service")
    if token_file:
        request.add_header("Authorization", "Bearer " + pathlib.Path(token_file).read_text(encoding="utf-8").strip())
    context = ssl.create_default_context(cafile=tls_ca) if address.startswith("https:") else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                         *([urllib.request.HTTPSHandler(context=context)] if context else []))
    try:
        with opener.open(request, timeout=10) as answer:
            service = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise ValueError("it wants its token: --token-file FILE, and tokenFile in the experiment") from None
        raise ValueError(f"HTTP status {error.code}: is this the HTTP address that `tuner serve` prints, and is the service "
                         "as new as this package?") from None
    if service.get("protocol") != PROTOCOL:
        raise ValueError(f'Espalier {service.get("version")} speaks protocol {service.get("protocol")} with NNI, this package '
                         f"{PROTOCOL}: update the older of the two")
    return f'Espalier {service["version"]} at {address}: {service["slots"]} slots on {service["nodes"]} nodes'


def _convert(chosen):
    text, notes = v1.convert(chosen.old, (chosen.output or chosen.old).parent, chosen.platform, chosen.service)
    if chosen.output:
        with open(chosen.output, "x", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return 0
