/// What a client says of itself in `connect` (RTMP 1.0 §7.2.1.1, Enhanced RTMP v2 "Enhancing NetConnection connect Command").
///
/// It describes itself without the query, which may be a credential.
package struct RTMPClientInfo: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The most characters of ``flashVersion``; the rest is cut.
    private static let flashVersionScalarsMax = 128

    /// The application, without a query and slashes around it.
    package let app: String
    /// Behind the application's `?`; empty without one.
    package let query: String
    /// The URL up to the application, without a query. `nil` when the client tells none.
    package let tcURL: String?
    /// Such as `FMLE/3.0 (compatible; Lavf59.27.100)`; empty when the client tells none. Control
    /// characters are left out.
    package let flashVersion: String
    /// The flags of `capsEx`, none without it.
    package let capabilities: RTMPCapabilities
    /// The codecs of `fourCcList` and of the maps of codecs, or `*` for all. At most three times ``AMF0Reader/membersMax``.
    package let fourCCs: [String]

    init(_ object: AMF0Value) {
        (app, query) = Self.cut(object["app"]?.string ?? "")
        tcURL = (object["tcUrl"]?.string).map { Self.cut($0).path }
        let printable = (object["flashVer"]?.string ?? "").unicodeScalars.lazy.filter {
            $0.value >= 0x20 && $0.value != 0x7F
        }
        flashVersion = String(String.UnicodeScalarView(printable.prefix(Self.flashVersionScalarsMax)))
        capabilities = RTMPCapabilities(
            rawValue: object["capsEx"]?.number.flatMap { UInt32(exactly: $0.rounded(.towardZero)) } ?? 0
        )
        let maps = ["videoFourCcInfoMap", "audioFourCcInfoMap"].flatMap { object[$0]?.members.map(\.name) ?? [] }
        let list = object["fourCcList"]?.elements.compactMap(\.string) ?? []
        fourCCs = list + maps.filter { !list.contains($0) }
    }

    /// A name without slashes around it, and what stands behind its first `?`. Both are cut between bytes, so that nothing a
    /// client puts behind the `?` hides it.
    static func cut(_ text: String) -> (path: String, query: String) {
        let slash = UInt8(ascii: "/")
        let end = text.utf8.firstIndex(of: UInt8(ascii: "?"))
        let path = text.utf8[..<(end ?? text.utf8.endIndex)].drop { $0 == slash }
        let last = path.lastIndex { $0 != slash }
        let trimmed = last.map { path[...$0] } ?? path.prefix(0)
        let query = end.map { text.utf8[$0...].dropFirst() } ?? path.prefix(0)
        return (String(decoding: trimmed, as: UTF8.self), String(decoding: query, as: UTF8.self))
    }

    package var description: String { "\(app) of \(flashVersion.isEmpty ? "an unnamed encoder" : flashVersion)" }
    package var customMirror: Mirror { Mirror(self, children: ["app": app, "flashVersion": flashVersion]) }
}

/// The flags of `capsEx` (Enhanced RTMP v2).
package struct RTMPCapabilities: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The client follows `NetConnection.Connect.ReconnectRequest`.
    package static let reconnect = RTMPCapabilities(rawValue: 1)
    package static let multitrack = RTMPCapabilities(rawValue: 2)
    /// Packets with modifiers before their type.
    package static let modifiers = RTMPCapabilities(rawValue: 4)
    package static let nanosecondOffsets = RTMPCapabilities(rawValue: 8)
}

/// A client's request to publish a stream.
///
/// It describes itself without the query, which is a credential.
package struct RTMPPublishRequest: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    package let client: RTMPClientInfo
    /// The stream's name, without a query and slashes around it.
    package let name: String
    /// Behind the name's `?`, or the application's when the name has none; as it was written, empty without either.
    package let query: String

    init(_ client: RTMPClientInfo, argument: String) {
        let parts = RTMPClientInfo.cut(argument)
        self.client = client
        name = parts.path
        query = parts.query.isEmpty ? client.query : parts.query
    }

    package var app: String { client.app }
    package var description: String { "\(app)/\(name)" }
    package var customMirror: Mirror { Mirror(self, children: ["app": app, "name": name]) }
}

/// An answer that ends a connection.
package struct RTMPRefusal: Hashable, Sendable {
    /// What encoders know (librtmp and OBS by these words).
    package enum Code: String, Hashable, Sendable, CaseIterable {
        /// The credential does not allow it.
        case denied = "NetStream.Publish.Denied"
        /// The stream, its limits or the node do not allow it, or the stream ends.
        case rejected = "NetStream.Publish.Rejected"
        /// The name is no name, or taken.
        case badName = "NetStream.Publish.BadName"
        /// Nothing is played over RTMP.
        case notPlayable = "NetStream.Play.StreamNotFound"
    }

    package let code: Code
    /// A sentence, which encoders show. What is beyond ``RTMPLimits/descriptionBytesMax`` is not sent.
    package let description: String

    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
