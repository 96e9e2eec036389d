"""A client of voxeld's HTTP API for services (docs/services.md), with the standard library only.

    world = voxeld.Client(["https://a.example.org", "https://b.example.org"], key)
    world.edit([((5, 80, 5), "brick")])
    for event in world.events():
        print(event.kind, event.data)
"""

import collections
import http.client
import ipaddress
import json
import time
import urllib.error
import urllib.parse
import urllib.request

__all__ = ["Client", "Error", "Event"]

#: The most blocks of one request.
BATCH = 64

#: What is sent again, with the same numbers: the land or the node did not answer, or it was too much at once.
AGAIN = {429, 503, 504}

#: An event of a stream. Cursor is from where another stream goes on.
Event = collections.namedtuple("Event", "kind data cursor")


class Error(Exception):
    """Why a request was refused: a code of docs/services.md, and a message. Status is that of HTTP."""

    def __init__(self, status, code, message):
        super().__init__(f"{code}: {message}")
        self.status, self.code = status, code


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would have the key sent to another host."""

    def redirect_request(self, *args):
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def _secure(node):
    """Reports whether a key may be sent to a node: over https, or on this machine."""
    url = urllib.parse.urlsplit(node)
    try:
        return url.scheme == "https" or url.hostname == "localhost" or ipaddress.ip_address(url.hostname).is_loopback
    except ValueError:
        return False


class Client:
    """A service at one or more nodes of a world. What one does not answer is sent to the next. It belongs to one thread."""

    def __init__(self, nodes, key, patience=60):
        self.nodes = [nodes] if isinstance(nodes, str) else list(nodes)
        for node in self.nodes:
            if not _secure(node):
                raise ValueError(f"{node}: a key is sent over https only, or on this machine")
        self.key = key
        self.patience = patience  # how long a request is sent again, in seconds
        self._seq = 0

    def get(self, path, **query):
        """Returns the answer to a GET request, such as get("blocks", box="0,60,0:15,70,15")."""
        text = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})
        return self._request(path + ("?" + text if text else ""))

    def edit(self, edits):
        """Changes blocks: edits are pairs of a position and the name of a block. Returns for each None, or why it was refused."""
        edits, results = list(edits), []
        for first in range(0, len(edits), BATCH):
            batch = [{"at": list(at), "block": block} for at, block in edits[first : first + BATCH]]
            answer = self._request("edits", {"seq": self._take(len(batch)), "edits": batch})
            results += [result.get("error") for result in answer["results"]]
        return results

    def bulk(self, edits):
        """Changes up to 2,048 blocks of a chunk, all or none: edits are positions, with what each block is and becomes."""
        self._request("bulk", {"seq": self._take(1), "edits": [{"at": list(at), "from": old, "block": new} for at, old, new in edits]})

    def chat(self, text):
        """Shows a line to all players of the world. If no node answers it may have been shown."""
        return self._request("chat", {"text": text})

    def events(self, kinds=None, box=None, after=None):
        """Yields events for ever, each edit and line once. After is the cursor of an event of before."""
        seen = collections.OrderedDict()
        while True:
            try:
                for event in self._stream(kinds, box, after):
                    after = event.cursor
                    name = event.data.get("id")
                    if name in seen:
                        continue
                    if name is not None:
                        seen[name] = True
                        if len(seen) > 100_000:
                            seen.popitem(last=False)
                    yield event
            except (OSError, http.client.HTTPException):
                pass
            self._next()
            time.sleep(1)

    def _take(self, count):
        """Returns the first of so many numbers for edits: microseconds since 1970, above those before."""
        first = max(self._seq, time.time_ns() // 1000)
        self._seq = first + count
        return first

    def _next(self):
        self.nodes.append(self.nodes.pop(0))

    def _open(self, path, body=None, headers=None, timeout=30):
        request = urllib.request.Request(
            self.nodes[0].rstrip("/") + "/api/v1/" + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self.key, **(headers or {})},
        )
        try:
            return _opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as refused:
            with refused:
                try:
                    error = json.loads(refused.read())["error"]
                    answer = Error(refused.code, error["code"], error["message"])
                except (ValueError, KeyError, TypeError):  # of a proxy
                    answer = OSError(f"{path}: status {refused.code}")
            raise answer from None

    def _request(self, path, body=None):
        end = time.monotonic() + self.patience
        while True:
            try:
                with self._open(path, body) as answer:
                    return json.loads(answer.read())
            except Error as refused:
                if refused.status not in AGAIN or time.monotonic() > end:
                    raise
            except (OSError, http.client.HTTPException, ValueError):
                if path == "chat" or time.monotonic() > end:
                    raise
            self._next()
            time.sleep(0.5)

    def _stream(self, kinds, box, after):
        query = {"kinds": ",".join(kinds) if kinds else None, "box": box}
        text = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        try:
            stream = self._open("events" + ("?" + text if text else ""), headers=headers)
        except Error as refused:
            if refused.status not in AGAIN:
                raise
            return
        with stream:
            kind = cursor = data = None
            for line in stream:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    cursor = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    data = json.loads(value)
                elif name == "" and kind is not None:
                    if kind == "end" and data["code"] != "slow":
                        raise Error(401, data["code"], data["message"])
                    yield Event(kind, data, cursor)
                    kind = None
