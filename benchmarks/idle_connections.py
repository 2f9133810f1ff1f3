"""What idle connections cost others: the time of a label without them and with 1,000 of them.

    python benchmarks/idle_connections.py [--idle N] [--labels N]

A small trained project is served by ``agcd serve``. The idle ones come from several addresses of the loopback, as one
client may not have so many, and send half a head again whenever the server has closed them. One browser labels
meanwhile. Milliseconds; Markdown.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from page_server import Client, Served, serving
from support.projects import N_IMAGES
from support.servers import trained_project

PER_ADDRESS = 200
HALF = b"GET /api/v1/state HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@contextmanager
def idle_connections(port: int, n: int) -> Iterator[None]:
    """``n`` connections that never finish a request; what the server closes is opened again."""
    end = threading.Event()

    def opened(place: int) -> socket.socket:
        address = f"127.0.0.{2 + place // PER_ADDRESS}"
        connection = socket.create_connection(("127.0.0.1", port), 10, (address, 0))
        connection.sendall(HALF)
        connection.setblocking(False)
        return connection

    def is_open(connection: socket.socket) -> bool:
        try:
            return connection.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    held = [opened(place) for place in range(n)]

    def hold() -> None:
        while not end.wait(0.2):
            for place, connection in enumerate(held):
                if not is_open(connection):
                    connection.close()
                    held[place] = opened(place)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        yield
    finally:
        end.set()
        holder.join()
        for connection in held:
            connection.close()


def label_times(served: Served, n: int) -> list[float]:
    """Milliseconds of each of ``n`` labels, with a short pause after each."""
    client, found = Client(served, "ann", cycle(range(N_IMAGES))), []
    # The same label again is known already: each time a row comes round it gets another class.
    names = cycle(range(7))
    for _ in range(n):
        row, name = next(client.rows), f"kind {next(names)}"
        began = time.perf_counter()
        client.change("/api/v1/answers", answers=[{"row": row, "kind": "label", "name": name}])
        found.append(1e3 * (time.perf_counter() - began))
        time.sleep(0.02)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=500)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder, serving(trained_project(Path(folder))) as served:
        label_times(served, 50)  # to warm up
        without = label_times(served, arguments.labels)
        with idle_connections(served.port, arguments.idle):
            beside = label_times(served, arguments.labels)
    print("| idle connections | median | p95 |\n|---|---|---|")
    for n, times in ((0, without), (arguments.idle, beside)):
        print(f"| {n:,} | {np.median(times):.1f} | {np.percentile(times, 95):.1f} |")
    print(f"\np95 with them is {np.percentile(beside, 95) / np.percentile(without, 95):.2f} times that without.")


if __name__ == "__main__":
    main()
