"""A proxy that adds a path, as those of JupyterHub, Open OnDemand and nginx do."""
import re
import socket
import socketserver
import threading

_MOST_HEAD = 1 << 16


class SmallProxy(socketserver.ThreadingTCPServer):
    """Hands what is asked for below `path` on to `service`, HOST:PORT, with the name under which the browser asked. It takes
    the path off, unless it `keeps` it. What is asked for beside it is kept in `strays`."""

    daemon_threads = True

    def __init__(self, path, keeps=False):
        super().__init__(("127.0.0.1", 0), _Connection)
        self.path, self.keeps, self.service = path, keeps, None
        self.port = self.server_address[1]
        self.strays = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def target(self, asked):
        """What the service is asked for; None if it is none of its pages."""
        if asked != self.path and not asked.startswith(self.path + "/"):
            self.strays.append(asked)
            return None
        return asked if self.keeps else asked.removeprefix(self.path) or "/"

    def handle_error(self, request, client_address):
        pass  # of a browser that has gone


class _Connection(socketserver.BaseRequestHandler):
    """One request, and its answer as it comes: it may be a stream."""

    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head and len(head) < _MOST_HEAD:
            piece = self.request.recv(4096)
            if not piece:
                return
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        first, *headers = head.decode("latin-1").split("\r\n")
        method, asked, version = first.split(" ")
        target = self.server.target(asked)
        if target is None:
            self.request.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        length = next((int(line.partition(":")[2]) for line in headers if re.match("content-length:", line, re.IGNORECASE)), 0)
        headers = [line for line in headers if not re.match("connection:", line, re.IGNORECASE)] + ["Connection: close"]
        host, _, port = self.server.service.rpartition(":")
        with socket.create_connection((host, int(port))) as service:
            service.sendall("\r\n".join([f"{method} {target} {version}", *headers, "", ""]).encode("latin-1") + body)
            while len(body) < length:
                piece = self.request.recv(4096)
                body += piece
                service.sendall(piece)
            while piece := service.recv(1 << 16):
                self.request.sendall(piece)
