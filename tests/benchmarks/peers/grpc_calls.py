"""Run by an interpreter that has grpcio: tries gRPC methods with an empty message. Standard input: an address on the first
line, then "METHOD TOKEN" on each line (no token: nothing is shown). Standard output: the status of each, by name."""
import sys

import grpc

LIMIT_S = 10
STREAMING = {"/espalier.v1.Tuner/Agent"}


def status_of(channel, method, token):
    metadata = [("authorization", f"Bearer {token}")] if token else []
    try:
        if method in STREAMING:
            for _ in channel.stream_stream(method)(iter(()), metadata=metadata, timeout=LIMIT_S):
                pass
        else:
            channel.unary_unary(method)(b"", metadata=metadata, timeout=LIMIT_S)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def main():
    address = sys.stdin.readline().strip()
    with grpc.insecure_channel(address) as channel:
        for line in sys.stdin:
            method, _, token = line.strip().partition(" ")
            print(status_of(channel, method, token), flush=True)


if __name__ == "__main__":
    main()
