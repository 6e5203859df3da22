import Base
public import Wire

/// The secret of one end of a link between nodes: 256 random bits. It is never printed.
public struct LinkSecret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let words: [4 of UInt64]

    /// - Parameter random: gives unpredictable numbers.
    public init(random: () -> UInt64) { words = [random(), random(), random(), random()] }

    /// The 32 bytes.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for index in words.indices { bytes.append(bigEndian: words[index]) }
        return bytes
    }

    public static func == (left: Self, right: Self) -> Bool {
        // All words are compared, whichever differs.
        var difference: UInt64 = 0
        for index in left.words.indices { difference |= left.words[index] ^ right.words[index] }
        return difference == 0
    }

    public func hash(into hasher: inout Hasher) {
        for index in words.indices { hasher.combine(words[index]) }
    }

    public var description: String { "LinkSecret(hidden)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// As 64 hexadecimal digits.
extension LinkSecret: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let digits = Array(try container.decode(String.self).utf8.prefix(65))
        var words: [4 of UInt64] = [0, 0, 0, 0]
        let isSecret =
            digits.count == 64
            && digits.indices.allSatisfy { index in
                guard let value = Self.value(of: digits[index]) else { return false }
                words[index / 16] = words[index / 16] << 4 | value
                return true
            }
        guard isSecret else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "The secret of a link has 64 hexadecimal digits."
            )
        }
        self.words = words
    }

    private static func value(of digit: UInt8) -> UInt64? {
        switch digit {
        case 0x30...0x39: UInt64(digit - 0x30)
        case 0x61...0x66: UInt64(digit - 0x61 + 10)
        default: nil
        }
    }

    public func encode(to encoder: any Encoder) throws {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 0xF)]] }
        var container = encoder.singleValueContainer()
        try container.encode(String(decoding: text, as: UTF8.self))
    }
}

/// One end of a link between media loops of two nodes: what the other end needs to send to it.
///
/// One pair of ends serves both directions. Each end tells the other one its own over the nodes' control link, and makes a
/// new one when the other end's is new.
public struct MediaLinkEnd: Hashable, Sendable, CustomStringConvertible {
    /// The most ``addresses``.
    public static let addressesMax = 16

    /// The loop.
    public let location: MediaLocation
    /// The UDP addresses that the loop sends from and receives at, most preferred first; 1…``addressesMax``.
    public let addresses: [TransportAddress]
    /// The loop's number of the link, which every datagram names.
    public let link: UInt16
    /// The version of the datagrams' contents (`TransferMessage.version`).
    public let version: UInt8
    public let secret: LinkSecret

    /// - Parameter addresses: those after the first ``addressesMax`` are left out.
    public init(
        location: MediaLocation,
        addresses: [TransportAddress],
        link: UInt16,
        version: UInt8 = TransferMessage.version,
        secret: LinkSecret
    ) {
        self.location = location
        self.addresses = Array(addresses.prefix(Self.addressesMax))
        self.link = link
        self.version = version
        self.secret = secret
    }

    public var description: String { "link \(link) of \(location) at \(addresses)" }
}

extension MediaLinkEnd: Codable {
    private enum CodingKeys: String, CodingKey { case location, addresses, link, version, secret }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        addresses = try container.decodeBounded(TransportAddress.self, 1...Self.addressesMax, forKey: .addresses)
        location = try container.decode(MediaLocation.self, forKey: .location)
        link = try container.decode(UInt16.self, forKey: .link)
        version = try container.decode(UInt8.self, forKey: .version)
        secret = try container.decode(LinkSecret.self, forKey: .secret)
    }
}

/// What the loop of a viewer asks of the loop of a publisher on another node: send a track to a mirror.
public struct RemoteExport: Hashable, Sendable, Codable {
    public var track: TrackID
    /// The mirror at the receiver.
    public var relay: MirrorID
    /// The viewer's loop.
    public var receiver: MediaLinkEnd
    /// The publisher's loop.
    public var origin: MediaLocation

    public init(track: TrackID, relay: MirrorID, receiver: MediaLinkEnd, origin: MediaLocation) {
        self.track = track
        self.relay = relay
        self.receiver = receiver
        self.origin = origin
    }
}

/// The answer to a ``RemoteExport``.
public struct RemoteExportAnswer: Hashable, Sendable, Codable {
    /// What the publisher sends.
    public var parameters: ReceiveTrackParameters
    /// The publisher's loop.
    public var origin: MediaLinkEnd

    public init(parameters: ReceiveTrackParameters, origin: MediaLinkEnd) {
        self.parameters = parameters
        self.origin = origin
    }
}

/// The loops of other nodes, as a media loop asks them for tracks.
public protocol RemoteOrigins: Sendable {
    /// Hands the request to the loop `request.origin`, on its node.
    /// - Throws: when the node cannot be asked or refuses. The caller connects nothing then, and may ask again.
    func export(_ request: RemoteExport) async throws -> RemoteExportAnswer
}

extension KeyedDecodingContainer {
    /// Decodes an array whose length is within `counts`.
    func decodeBounded<Element: Decodable>(
        _ type: Element.Type,
        _ counts: ClosedRange<Int>,
        forKey key: Key
    ) throws -> [Element] {
        var elements = try nestedUnkeyedContainer(forKey: key)
        var decoded: [Element] = []
        while !elements.isAtEnd, decoded.count <= counts.upperBound {
            decoded.append(try elements.decode(Element.self))
        }
        guard counts.contains(decoded.count) else {
            throw DecodingError.dataCorruptedError(
                forKey: key,
                in: self,
                debugDescription: "There must be \(counts.lowerBound) to \(counts.upperBound) elements."
            )
        }
        return decoded
    }
}
