public import Base
public import Wire

/// Datagrams between clients and media addresses, and from one member of a call to the other one.
extension TURNServer {
    /// ChannelData (RFC 8656 §12.4): channel, length, data, and padding that is ignored.
    mutating func receiveChannelData(
        _ message: RawSpan,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) -> TURNEvent? {
        let length = Int(message.bigEndianUInt16(at: 2))
        guard length <= message.byteCount - Self.channelHeaderBytes else { throw .malformed }
        guard length > 0 else { throw .empty }
        guard let slot = slotsByClient[client] else { throw .noAllocation }
        let start = Self.channelHeaderBytes
        let number = message.bigEndianUInt16(at: 0)
        if let call = callChannels[slot] {
            guard let peer = call.peer(of: number, at: now) else { throw .noChannel }
            try relay(message.extracting(start..<start + length), from: slot, toMember: peer, at: now, into: batch)
            return nil
        }
        let event = try relay(start..<start + length, from: slot, at: now) { allocation throws(TURNDropReason) in
            guard let peer = allocation.peer(of: number, at: now) else { throw .noChannel }
            return peer
        }
        return event
    }

    /// A Send indication (RFC 8656 §11.2).
    mutating func receiveSend(
        _ message: borrowing STUNMessageView,
        from client: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(TURNDropReason) -> TURNEvent? {
        let attributes = TURNAttributes(message)
        guard !attributes.isMalformed, attributes.unknown.isEmpty, let peer = attributes.peers.first,
            let data = attributes.data
        else { throw .badIndication }
        guard !data.isEmpty else { throw .empty }
        guard let slot = slotsByClient[client] else { throw .noAllocation }
        guard callChannels[slot] == nil else {
            try relay(message.bytes.extracting(data), from: slot, toMember: peer, at: now, into: batch)
            return nil
        }
        return try relay(data, from: slot, at: now) { allocation throws(TURNDropReason) in
            guard let index = allocation.peers.firstIndex(of: peer) else { throw .forbiddenPeer }
            return index
        }
    }

    private mutating func relay(
        _ payload: Range<Int>,
        from slot: Int,
        at now: Instant,
        to findPeer: (borrowing TURNAllocation) throws(TURNDropReason) -> Int
    ) throws(TURNDropReason) -> TURNEvent {
        // Expiry is left to the timeout, so that it is told.
        guard let allocation = allocations[slot], now < allocation.expiresAt else { throw .noAllocation }
        let peer = try findPeer(allocation)
        guard allocation.isPermitted(peer, at: now) else { throw .noPermission }
        counters.packetsIn &+= 1
        let path = NetworkPath(local: LocalEndpoint(.relayed, index: peer), remote: allocation.relayed)
        return .relayed(allocation.session, path: path, payload: payload)
    }

    /// Counts a datagram that was framed for a client.
    public mutating func noteSent() { counters.packetsOut &+= 1 }
    /// Counts a datagram that was too long to be framed.
    public mutating func noteTooLong() { counters.drop(.tooLong) }

    /// The session that a framed datagram belongs to, and where the datagram is in the frame; `nil` unless the frame is one
    /// of ``TURNRoute`` to a client with an allocation.
    public func payload(of frame: RawSpan, to client: NetworkPath) -> (TURNSessionID, Range<Int>)? {
        guard let payload = TURNRoute.payload(of: frame), let slot = slotsByClient[client],
            let allocation = allocations[slot]
        else { return nil }
        return (allocation.session, payload)
    }

    /// The session whose allocation a client has; `nil` without one.
    public func session(of client: NetworkPath) -> TURNSessionID? {
        slotsByClient[client].flatMap { allocations[$0]?.session }
    }

    /// The client whose allocation has a relayed address; `nil` when no allocation has it.
    public func client(of relayed: TransportAddress) -> NetworkPath? {
        slotsByRelayed[relayed].flatMap { allocations[$0]?.client }
    }

    /// How datagrams on a relayed path reach the client. One look-up serves a run of datagrams in one loop turn.
    /// - Throws: why they are dropped, which is counted.
    public mutating func route(over path: NetworkPath, at now: Instant) throws(TURNDropReason) -> TURNRoute {
        do throws(TURNDropReason) {
            guard path.local.kind == .relayed, let slot = slotsByRelayed[path.remote],
                let allocation = allocations[slot], now < allocation.expiresAt
            else { throw .noAllocation }
            let peer = path.local.index
            guard peer < allocation.peers.count else { throw .forbiddenPeer }
            guard allocation.isPermitted(peer, at: now) else { throw .noPermission }
            return TURNRoute(
                client: allocation.client,
                channel: allocation.channel(of: peer, at: now),
                peer: allocation.peers[peer],
                generator: SplitMix64(seed: generator.next())
            )
        } catch {
            counters.drop(error)
            throw error
        }
    }
}

/// How datagrams from one media address reach a client: over its channel, or else in Data indications.
public struct TURNRoute: Sendable {
    /// The most bytes that ``frame(_:in:)`` writes before a datagram.
    public static let headerBytesMax = 48

    public let client: NetworkPath
    /// `nil` while no channel is bound.
    public let channel: ChannelNumber?
    private let peer: TransportAddress
    /// For the indications' transaction identifiers.
    private var generator: SplitMix64

    init(client: NetworkPath, channel: ChannelNumber?, peer: TransportAddress, generator: SplitMix64) {
        self.client = client
        self.channel = channel
        self.peer = peer
        self.generator = generator
    }

    /// The bytes that ``frame(_:in:)`` writes before a datagram.
    public var headerBytes: Int {
        if channel != nil { return TURNServer.channelHeaderBytes }
        return peer.ip.isV4 ? 36 : Self.headerBytesMax
    }

    /// Writes the header and the padding around a datagram in place. The frame is one datagram to the client, or one
    /// message of its stream, where ChannelData is padded too (RFC 8656 §12.5).
    ///
    /// - Parameter payload: where the datagram is in `slot`, at least ``headerBytes`` from its start.
    /// - Returns: where the frame is; `nil` when it does not fit.
    @_lifetime(slot: copy slot)
    public mutating func frame(_ payload: Range<Int>, in slot: inout MutableRawSpan) -> Range<Int>? {
        let isPadded = channel == nil || client.local.kind == .tcp
        let padding = isPadded ? -payload.count & 3 : 0
        guard payload.lowerBound >= headerBytes, payload.count <= Int(UInt16.max) - Self.headerBytesMax,
            padding <= slot.byteCount - payload.upperBound
        else { return nil }
        let start = payload.lowerBound - headerBytes
        for offset in 0..<padding { slot.store(UInt8(0), at: payload.upperBound + offset) }
        if let channel {
            slot.store(bigEndian: channel.rawValue, at: start)
            slot.store(bigEndian: UInt16(payload.count), at: start + 2)
        } else {
            writeIndication(payload.count, at: start, in: &slot)
        }
        return start..<payload.upperBound + padding
    }

    /// Where the datagram is in a frame of ``frame(_:in:)``; `nil` for anything else.
    static func payload(of frame: RawSpan) -> Range<Int>? {
        guard frame.byteCount > TURNServer.channelHeaderBytes else { return nil }
        if PacketProtocol(firstByte: frame.byte(at: 0)) == .turnChannel { return value(at: 0, of: frame) }
        // A Data indication with XOR-PEER-ADDRESS of 8 or 20 bytes, and DATA behind it.
        guard frame.byteCount >= 36, frame.bigEndianUInt16(at: 0) == dataIndication,
            frame.bigEndianUInt16(at: 20) == STUNAttributeType.xorPeerAddress.rawValue
        else { return nil }
        let data = 24 + Int(frame.bigEndianUInt16(at: 22))
        guard data == 32 || data == 44, data + 4 <= frame.byteCount,
            frame.bigEndianUInt16(at: data) == STUNAttributeType.data.rawValue
        else { return nil }
        return value(at: data, of: frame)
    }

    /// The message type of Data indications (RFC 8656 §18).
    private static let dataIndication: UInt16 = 0x0017

    /// What follows a type and a length of two bytes each.
    private static func value(at start: Int, of frame: RawSpan) -> Range<Int>? {
        let length = Int(frame.bigEndianUInt16(at: start + 2))
        guard length > 0, start + 4 + length <= frame.byteCount else { return nil }
        return start + 4..<start + 4 + length
    }

    /// A Data indication up to the value of DATA (RFC 8656 §11.3).
    @_lifetime(slot: copy slot)
    private mutating func writeIndication(_ payloadBytes: Int, at start: Int, in slot: inout MutableRawSpan) {
        let id = STUNTransactionID(using: &generator)
        var header = STUNMessageBuilder(.indication, method: .data, transactionID: id)
        header.appendXORAddress(.xorPeerAddress, peer)
        var bytes = header.bytes
        bytes.append(bigEndian: STUNAttributeType.data.rawValue)
        bytes.append(bigEndian: UInt16(payloadBytes))
        bytes.store(bigEndian: UInt16(headerBytes - 20 + (payloadBytes + 3) & ~3), at: 2)
        slot.store(unsafe bytes.span.bytes, at: start)
    }
}
