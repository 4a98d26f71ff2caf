"""A way to the API server on which things happen: what is between a service and its API server in a large cluster."""
import collections
import http.client
import http.server
import json
import ssl
import threading

TOO_MANY = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "message": "The server has received too many requests and has asked us to try again later"}
PASSED_ON = ("Authorization", "Content-Type", "Accept")


class FaultyPath:
    """Hands requests on, but for those whose turn has come: `faults` counts, for each of these, what is left of it.

    lost_request      no write arrives, and none is answered
    lost_answer       a write is done, and never answered
    overload          any request is answered with 429
    """

    def __init__(self, cluster):
        self.faults = collections.Counter()
        self.happened = collections.Counter()
        self.lock = threading.Lock()
        self.upstream = ssl.create_default_context(cafile=str(cluster.ca))
        self.port = cluster.port
        path = self

        class Exchange(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path.serve(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cluster.ca, cluster.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def happens(self, fault):
        with self.lock:
            there = self.faults[fault] > 0
            self.faults[fault] -= there
            self.happened[fault] += there
            return there

    def serve(self, exchange):
        body = exchange.rfile.read(int(exchange.headers.get("Content-Length") or 0))
        writes = exchange.command != "GET"
        if self.happens("overload"):
            return self.answer(exchange, 429, json.dumps(TOO_MANY).encode(), {"Retry-After": "1"})
        if writes and self.happens("lost_request"):
            exchange.close_connection = True
            return None
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.upstream, timeout=30)
        try:
            headers = {name: exchange.headers[name] for name in PASSED_ON if name in exchange.headers}
            connection.request(exchange.command, exchange.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            exchange.close_connection = True
            return None
        finally:
            connection.close()
        if writes and self.happens("lost_answer"):
            exchange.close_connection = True
            return None
        return self.answer(exchange, answer.status, content, {"Content-Type": "application/json"})

    def answer(self, exchange, code, content, headers):
        exchange.send_response(code)
        for name, value in headers.items():
            exchange.send_header(name, value)
        exchange.send_header("Content-Length", str(len(content)))
        exchange.end_headers()
        exchange.wfile.write(content)
