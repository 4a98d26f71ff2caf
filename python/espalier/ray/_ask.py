"""The program of `--engine command`: hands one question to the process that speaks with Ray, by its socket, and prints
the answer. It is started for each question, so it imports next to nothing.

usage: _ask.py SOCKET"""
import json
import socket
import sys


def main():
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(sys.argv[1])
            connection.sendall(sys.stdin.buffer.readline())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        except OSError as error:
            sys.exit(f"the process that speaks with Ray does not answer: {error.strerror}")
    if not answer:
        sys.exit("the process that speaks with Ray has ended")
    answer = json.loads(answer)
    if "error" in answer:
        sys.exit(answer["error"])
    for machine in answer["machines"]:
        print(json.dumps(machine))


if __name__ == "__main__":
    main()
