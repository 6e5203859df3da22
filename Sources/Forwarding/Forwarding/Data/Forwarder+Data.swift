public import Base
public import MediaTypes
public import Wire

/// Data channels of peers.
extension Forwarder {
    /// Performs commands about data channels in their order. Those for unknown peers and closed channels do nothing. What they
    /// send leaves at the end of the turn.
    public func perform(_ commands: [DataCommand], at now: Instant, into batch: DatagramBatch) {
        for command in commands {
            switch command {
            case .open(let id, let parameters): withData(of: id) { $0.open(parameters, at: now) }
            case .send(let message, let receivers):
                for receiver in receivers {
                    withData(of: receiver.peer) { $0.send(message, on: receiver.channel, &counters, at: now) }
                }
            case .close(let address): withData(of: address.peer) { $0.close(address.channel, at: now) }
            case .closeAll(let id):
                // Without channels nothing delays the end.
                if peer(id)?.isConnected == true, peer(id)?.transport.data != nil {
                    withData(of: id) { $0.closeAll(at: now) }
                } else {
                    removePeer(id, at: now, into: batch)
                }
            }
        }
    }

    private func withData(of id: PeerID, _ body: (inout PeerData) -> Void) {
        guard let peer = peer(id), let data = peer.transport.data else { return }
        body(&data.value)
        schedule.markDirty(peer)
    }

    /// Hands out what happened on a peer's data channels, and sends what they have to send.
    /// - Returns: whether the peer is still here: all its channels may have been closed, and it with them.
    func serveData(of peer: Peer, at now: Instant, into batch: DatagramBatch) -> Bool {
        guard let data = peer.transport.data, peer.isConnected else { return true }
        let id = peer.id
        let end = data.value.takeEvents(&counters, at: now) { emit(.data($0), of: id) }
        if let end {
            counters.data.end(end)
            emit(.dataEnded(end), of: id)
        }
        peer.transport.flushData(rate: peer.dataRate, &counters, at: now, into: batch)
        if data.value.mustWaitForTurn() { dataBudget.addWaiting(id) }
        guard data.value.isClosed(at: now) else { return true }
        removePeer(id, at: now, into: batch)
        return false
    }

    /// Serves peers that found no packets left in an earlier turn, in their order, while this one has packets.
    func serveWaitingData(_ serve: (Peer) -> Void) {
        guard dataBudget.hasWaiting, dataBudget.hasTurn else { return }
        let waiting = dataBudget.takeWaiting()
        var next = 0
        while next < waiting.count, dataBudget.hasTurn {
            let id = waiting[next]
            next += 1
            guard let peer = peer(id), let data = peer.transport.data else { continue }
            data.value.turnCame()
            serve(peer)
        }
        dataBudget.putBack(waiting[next...])
    }
}

extension Peer {
    /// The least rate of data, bit/s, and its least part of what the path carries.
    private static let dataRateMin = 32_000
    private static let dataShareMin = 20
    /// The least rate of data while all media that is wanted is sent and the path carries it.
    private static let relaxedDataRateMin = 1_000_000

    /// Bit/s that data channels may take of the path: what media leaves of it. `nil` for no limit but their own congestion
    /// control, to a peer that is sent no media.
    var dataRate: Int? {
        guard let sendRate, divided.layers > 0 else { return nil }
        let path = sendRate.sustained
        let least = max(Self.dataRateMin, path / Self.dataShareMin)
        // Media waits, so it needs what there is.
        guard transport.egress.waiting.isEmpty else { return least }
        return max(path - divided.layers, sendRate.isRelaxed ? Self.relaxedDataRateMin : least)
    }
}
