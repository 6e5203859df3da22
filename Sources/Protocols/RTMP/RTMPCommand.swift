/// The commands that mean something to a server of publishers (RTMP 1.0 §7.2). All others are ignored.
package enum RTMPCommandName: String, Hashable, Sendable, CaseIterable {
    case connect
    case releaseStream
    case prepareToPublish = "FCPublish"
    case createStream
    case publish
    case unpublish = "FCUnpublish"
    case deleteStream
    case closeStream
    case play
    case play2
}

/// A command of the client.
struct RTMPCommand: Hashable, Sendable {
    /// `nil` for a command that is ignored.
    let name: RTMPCommandName?
    /// The number that the answer repeats; 0 when none is wanted.
    let transaction: Double
    /// The values behind the number: first the command object, which is null but for `connect`.
    let values: [AMF0Value]
    /// The message stream that it was sent on.
    let stream: UInt32

    /// - Parameter message: of type 20 or 17. The latter has a zero before the values, which are in AMF0 as well.
    init(_ message: RTMPMessage) throws(AMF0Error) {
        var reader = AMF0Reader(message.body)
        // No name begins with a zero byte, which would be the type of a number.
        if message.type == .commandAMF3 { reader.skip(0) }
        name = RTMPCommandName(rawValue: try reader.readName())
        stream = message.stream
        guard name != nil else {
            transaction = 0
            values = []
            return
        }
        transaction = reader.isAtEnd ? 0 : try reader.read().number ?? 0
        var values: [AMF0Value] = []
        while !reader.isAtEnd { values.append(try reader.read()) }
        self.values = values
    }

    /// The string behind the command object.
    var argument: String? { values.dropFirst().first?.string }
}

/// The metadata of a stream as its publisher sends it, for the log and for statistics: nothing depends on it.
package struct RTMPMetadata: Hashable, Sendable {
    /// Mostly `width`, `height`, `framerate`, `videocodecid`, `audiocodecid`, `encoder`. At most ``AMF0Reader/membersMax``.
    package let members: [AMF0Member]

    /// - Parameter message: of type 18 or 15.
    /// - Returns: `nil` for data of another kind, which is ignored.
    init?(_ message: RTMPMessage) throws(AMF0Error) {
        var reader = AMF0Reader(message.body)
        if message.type == .dataAMF3 { reader.skip(0) }
        var name = try reader.readName()
        if name == "@setDataFrame" { name = reader.isAtEnd ? "" : try reader.readName() }
        guard name == "onMetaData", !reader.isAtEnd else { return nil }
        members = try reader.read().members
    }
}
