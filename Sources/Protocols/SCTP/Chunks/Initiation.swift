import Base

/// Extensions that both ends must support.
struct Capabilities: OptionSet, Hashable, Sendable {
    let rawValue: UInt8
    /// FORWARD-TSN (RFC 3758).
    static let partialReliability = Self(rawValue: 1)
    /// RE-CONFIG (RFC 6525).
    static let reconfiguration = Self(rawValue: 2)
    /// I-DATA and I-FORWARD-TSN (RFC 8260).
    static let interleaving = Self(rawValue: 4)
    /// The sender of this accepts packets without checksum (RFC 9653). Unlike the others, each direction is on its own.
    static let zeroChecksum = Self(rawValue: 8)
}

/// What INIT and INIT ACK say (RFC 9260 §3.3.2 and §3.3.3).
struct Initiation: Hashable, Sendable {
    /// The tag that packets to the sender of this must have; never 0.
    var tag: UInt32
    /// The receive window in bytes.
    var window: UInt32
    var outgoingStreams: UInt16
    var incomingStreams: UInt16
    var firstTSN: UInt32
    var capabilities: Capabilities

    static let windowMin: UInt32 = 1_500
    private static let fixedBytes = 16
    /// Error-detection method identifier of DTLS (RFC 9653 §4).
    private static let alternateMethodDTLS: UInt32 = 1

    private enum Parameter {
        static let cookie: UInt16 = 7
        static let unrecognized: UInt16 = 8
        static let hostName: UInt16 = 11
        static let zeroChecksum: UInt16 = 0x8001
        static let supportedExtensions: UInt16 = 0x8008
        static let forwardTSN: UInt16 = 0xC000
        /// IPv4, IPv6, cookie preservative, supported address types, ECN: known, and without meaning over DTLS.
        static let ignored: Set<UInt16> = [5, 6, 9, 12, 0x8000, 0xC006]
    }

    /// The parts of a received chunk that are not in the association.
    struct Extras: Equatable {
        var cookie: [UInt8]?
        /// Parameters to report, as they came.
        var unrecognized: [UInt8] = []
    }

    enum Failure: Error, Hashable {
        /// Too short, or a parameter with an impossible length.
        case malformed
        /// A tag or window or number of streams that is not allowed, or a host name.
        case invalid
    }

    /// The most bytes of parameters that an INIT ACK reports.
    private static let unrecognizedBytesMax = 128

    /// Reads the value of an INIT or INIT ACK chunk.
    static func parse(_ body: RawSpan) throws(Failure) -> (Initiation, Extras) {
        guard body.byteCount >= fixedBytes else { throw .malformed }
        var initiation = Initiation(
            tag: body.bigEndianUInt32(at: 0),
            window: body.bigEndianUInt32(at: 4),
            outgoingStreams: body.bigEndianUInt16(at: 8),
            incomingStreams: body.bigEndianUInt16(at: 10),
            firstTSN: body.bigEndianUInt32(at: 12),
            capabilities: []
        )
        guard initiation.tag != 0, initiation.window >= windowMin, initiation.outgoingStreams != 0,
            initiation.incomingStreams != 0
        else { throw .invalid }
        var extras = Extras()
        var walk = ParameterWalk(from: fixedBytes)
        while let (type, value) = walk.next(in: body) {
            switch type {
            case Parameter.cookie: extras.cookie = body.extracting(value).array()
            case Parameter.hostName: throw .invalid
            case Parameter.forwardTSN: initiation.capabilities.insert(.partialReliability)
            case Parameter.zeroChecksum:
                if value.count >= 4, body.bigEndianUInt32(at: value.lowerBound) == alternateMethodDTLS {
                    initiation.capabilities.insert(.zeroChecksum)
                }
            case Parameter.supportedExtensions:
                initiation.capabilities.formUnion(extensions(body.extracting(value)))
            case Parameter.unrecognized: break
            case let type where Parameter.ignored.contains(type): break
            default:
                if type & 0x4000 != 0, extras.unrecognized.count + value.count + 8 <= unrecognizedBytesMax {
                    let whole = body.extracting(value.lowerBound - 4..<value.upperBound).array()
                    extras.unrecognized.appendParameter(Parameter.unrecognized, whole)
                }
                if type & 0x8000 == 0 { return (initiation, extras) }
            }
        }
        guard !walk.isBroken else { throw .malformed }
        return (initiation, extras)
    }

    private static func extensions(_ list: RawSpan) -> Capabilities {
        var types: Set<ChunkType> = []
        for offset in 0..<list.byteCount { types.insert(ChunkType(rawValue: list.byte(at: offset))) }
        var capabilities: Capabilities = []
        if types.contains(.forwardTSN) { capabilities.insert(.partialReliability) }
        if types.contains(.reconfiguration) { capabilities.insert(.reconfiguration) }
        if types.contains(.interleavedData) { capabilities.insert(.interleaving) }
        return capabilities
    }

    /// The whole chunk, padded.
    func encoded(as type: ChunkType, _ extras: Extras = Extras()) -> [UInt8] {
        var value: [UInt8] = []
        value.append(bigEndian: tag)
        value.append(bigEndian: window)
        value.append(bigEndian: outgoingStreams)
        value.append(bigEndian: incomingStreams)
        value.append(bigEndian: firstTSN)
        var types: [UInt8] = []
        if capabilities.contains(.reconfiguration) { types.append(ChunkType.reconfiguration.rawValue) }
        if capabilities.contains(.partialReliability) { types.append(ChunkType.forwardTSN.rawValue) }
        if capabilities.contains(.interleaving) {
            types += [ChunkType.interleavedData.rawValue, ChunkType.interleavedForwardTSN.rawValue]
        }
        if let cookie = extras.cookie { value.appendParameter(Parameter.cookie, cookie) }
        if !types.isEmpty { value.appendParameter(Parameter.supportedExtensions, types) }
        if capabilities.contains(.partialReliability) { value.appendParameter(Parameter.forwardTSN, []) }
        if capabilities.contains(.zeroChecksum) {
            var method: [UInt8] = []
            method.append(bigEndian: Self.alternateMethodDTLS)
            value.appendParameter(Parameter.zeroChecksum, method)
        }
        value += extras.unrecognized
        return .chunk(type, value)
    }
}
