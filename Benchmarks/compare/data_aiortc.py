"""Sends the messages of `hotpath data` with aiortc, and prints the ratio: data_aiortc.py REPORT

Both ends run in this process, over the loopback, and the CPU time of both counts. The report has the same sum of ours, which does
without sockets.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection

SMALL, SMALL_COUNT = b"x" * 100, 5_000
LONG, LONG_COUNT = b"x" * 65_536, 160
# What may wait at the sender.
BUFFERED_MAX = 1 << 20


async def connect() -> tuple[RTCPeerConnection, RTCPeerConnection, RTCDataChannel, RTCDataChannel]:
    left, right = (RTCPeerConnection(RTCConfiguration(iceServers=[])) for _ in range(2))
    channel = left.createDataChannel("#x")
    opened, incoming = asyncio.Event(), asyncio.get_running_loop().create_future()
    channel.on("open", opened.set)
    right.on("datachannel", incoming.set_result)
    await left.setLocalDescription(await left.createOffer())
    await right.setRemoteDescription(left.localDescription)
    await right.setLocalDescription(await right.createAnswer())
    await left.setRemoteDescription(right.localDescription)
    await opened.wait()
    return left, right, channel, await incoming


async def measure(sender: RTCDataChannel, receiver: RTCDataChannel, message: bytes, count: int) -> float:
    """Seconds of CPU time for `count` messages."""
    arrived, finished = 0, asyncio.Event()

    def take(_: bytes) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == count:
            finished.set()

    receiver.on("message", take)
    began = time.process_time()
    for _ in range(count):
        while sender.bufferedAmount > BUFFERED_MAX:
            await asyncio.sleep(0.001)
        sender.send(message)
    await finished.wait()
    receiver.remove_listener("message", take)
    return time.process_time() - began


async def main() -> None:
    left, right, sender, receiver = await connect()
    await measure(sender, receiver, SMALL, 200)
    small = SMALL_COUNT / await measure(sender, receiver, SMALL, SMALL_COUNT)
    bulk = len(LONG) * LONG_COUNT * 8 / await measure(sender, receiver, LONG, LONG_COUNT) / 1e9
    await left.close()
    await right.close()
    with open(sys.argv[1], encoding="utf-8") as file:
        ours = {one["unit"]: one for one in json.load(file)}
    print(f"\n{'CPU time of both ends':36}{'aiortc':>14}{'Nagare':>14}{'ratio':>14}")
    for unit, theirs in (("deliveries/s", small), ("Gbit/s", bulk)):
        one = ours[unit]
        print(f"{one['name']:36}{theirs:14.4g}{one['bothEnds']:14.4g}{one['bothEnds'] / theirs:14.1f}  {unit}")


asyncio.run(main())
