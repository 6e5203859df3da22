import Base

/// A parameter of RE-CONFIG (RFC 6525 §4).
enum ReconfigurationParameter: Equatable {
    /// The sender resets its outgoing streams once all up to `lastTSN` has arrived; no streams means all.
    case outgoingReset(request: UInt32, response: UInt32, lastTSN: UInt32, streams: [StreamID])
    /// The sender asks the receiver to reset its outgoing streams.
    case incomingReset(request: UInt32, streams: [StreamID])
    /// The sender asks to reset all numbers.
    case associationReset(request: UInt32)
    case response(request: UInt32, ReconfigurationResult)
    case addOutgoingStreams(request: UInt32, count: UInt16)
    case addIncomingStreams(request: UInt32, count: UInt16)

    /// How many streams it lists.
    var streamCount: Int {
        switch self {
        case .outgoingReset(_, _, _, let streams), .incomingReset(_, let streams): streams.count
        default: 0
        }
    }

    /// The most streams of one request; more would not fit into a packet.
    static let streamsMax = 500

    /// The parameters of a RE-CONFIG chunk that we know.
    /// - Returns: `nil` when one is malformed.
    static func parse(_ body: RawSpan) -> [Self]? {
        var parameters: [Self] = []
        var walk = ParameterWalk(from: 0)
        while let (type, range) = walk.next(in: body) {
            guard parameters.count < 2 else { return nil }
            let value = body.extracting(range)
            switch type {
            case 13 where value.byteCount >= 12:
                parameters.append(
                    .outgoingReset(
                        request: value.bigEndianUInt32(at: 0),
                        response: value.bigEndianUInt32(at: 4),
                        lastTSN: value.bigEndianUInt32(at: 8),
                        streams: streams(value, from: 12)
                    )
                )
            case 14 where value.byteCount >= 4:
                let request = value.bigEndianUInt32(at: 0)
                parameters.append(.incomingReset(request: request, streams: streams(value, from: 4)))
            case 15 where value.byteCount >= 4:
                parameters.append(.associationReset(request: value.bigEndianUInt32(at: 0)))
            case 16 where value.byteCount >= 8:
                let result = ReconfigurationResult(rawValue: value.bigEndianUInt32(at: 4))
                parameters.append(.response(request: value.bigEndianUInt32(at: 0), result))
            case 17 where value.byteCount >= 8:
                let count = value.bigEndianUInt16(at: 4)
                parameters.append(.addOutgoingStreams(request: value.bigEndianUInt32(at: 0), count: count))
            case 18 where value.byteCount >= 8:
                let count = value.bigEndianUInt16(at: 4)
                parameters.append(.addIncomingStreams(request: value.bigEndianUInt32(at: 0), count: count))
            default: return nil
            }
        }
        return walk.isBroken ? nil : parameters
    }

    private static func streams(_ value: RawSpan, from offset: Int) -> [StreamID] {
        stride(from: offset, to: value.byteCount - 1, by: 2).map {
            StreamID(rawValue: value.bigEndianUInt16(at: $0))
        }
    }

    /// The chunk with this parameter only.
    func encoded() -> [UInt8] {
        var value: [UInt8] = []
        let type: UInt16
        switch self {
        case .outgoingReset(let request, let response, let lastTSN, let streams):
            type = 13
            value.append(bigEndian: request)
            value.append(bigEndian: response)
            value.append(bigEndian: lastTSN)
            for stream in streams { value.append(bigEndian: stream.rawValue) }
        case .incomingReset(let request, let streams):
            type = 14
            value.append(bigEndian: request)
            for stream in streams { value.append(bigEndian: stream.rawValue) }
        case .associationReset(let request):
            type = 15
            value.append(bigEndian: request)
        case .response(let request, let result):
            type = 16
            value.append(bigEndian: request)
            value.append(bigEndian: result.rawValue)
        case .addOutgoingStreams(let request, let count), .addIncomingStreams(let request, let count):
            if case .addOutgoingStreams = self { type = 17 } else { type = 18 }
            value.append(bigEndian: request)
            value.append(bigEndian: count)
            value.append(bigEndian: UInt16(0))
        }
        var parameters: [UInt8] = []
        parameters.append(bigEndian: type)
        parameters.append(bigEndian: UInt16(truncatingIfNeeded: 4 + value.count))
        parameters += value
        return .chunk(.reconfiguration, parameters)
    }
}

/// The result of a request (RFC 6525 §4.4).
struct ReconfigurationResult: RawRepresentable, Hashable, Sendable {
    let rawValue: UInt32
    static let nothingToDo = Self(rawValue: 0)
    static let performed = Self(rawValue: 1)
    static let denied = Self(rawValue: 2)
    static let badSequenceNumber = Self(rawValue: 5)
    static let inProgress = Self(rawValue: 6)
}
