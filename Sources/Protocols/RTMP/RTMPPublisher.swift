import Base

/// A client that publishes one stream, for tests and for load. It trusts its server but for what would trap, and does no I/O.
package struct RTMPPublisher: Sendable {
    package enum Event: Hashable, Sendable {
        case send([UInt8])
        /// The server accepted the stream: ``media(_:)`` may be called.
        case started
        /// An `onStatus` other than the start, with its level, code and description.
        case status(level: String, code: String, description: String, tcURL: String?)
    }

    private enum Phase: Sendable {
        /// - Parameter missing: bytes of S0, S1 and S2 that have not come yet.
        case handshake(missing: Int)
        case running
    }

    private let app: String
    private let name: String
    private let tcURL: String
    private let capabilities: RTMPCapabilities
    private let opening: [UInt8]
    private var phase = Phase.handshake(missing: 1 + 2 * RTMPHandshake.blockBytes)
    private var reader = RTMPChunkReader()
    private var writer = RTMPChunkWriter()

    /// - Parameters:
    ///   - name: the stream's name, with its query.
    ///   - generator: for the random bytes of the handshake.
    package init(
        app: String,
        name: String,
        tcURL: String,
        capabilities: RTMPCapabilities = [],
        using generator: inout some RandomNumberGenerator
    ) {
        self.app = app
        self.name = name
        self.tcURL = tcURL
        self.capabilities = capabilities
        opening = RTMPHandshake.block(using: &generator)
        reader.limits = .publisher
    }

    /// C0 and C1, which are sent first.
    package var start: [UInt8] { [RTMPHandshake.version] + opening }

    /// Takes the next bytes of the server.
    package mutating func receive(_ bytes: RawSpan) throws(RTMPError) -> [Event] {
        var events: [Event] = []
        var offset = 0
        if case .handshake(let missing) = phase {
            offset = min(missing, bytes.byteCount)
            phase = offset == missing ? .running : .handshake(missing: missing - offset)
            guard case .running = phase else { return [] }
            // A server does not verify C2 as a rule, so C1 serves for it.
            writer.writeHandshake(opening)
            connect()
        }
        while let message = try reader.read(bytes, &offset) { try receive(message, &events) }
        let output = writer.take()
        return output.isEmpty ? events : [.send(output)] + events
    }

    /// The bytes of one frame.
    package mutating func media(_ media: RTMPMedia) -> [UInt8] {
        let isAudio = media.kind == .audio
        let message = RTMPMessage(
            isAudio ? .audio : .video,
            stream: 1,
            timestamp: UInt32(truncatingIfNeeded: media.timestamp),
            media.body
        )
        writer.write(message, on: isAudio ? .audio : .video)
        return writer.take()
    }

    /// The commands that end the stream.
    package mutating func end() -> [UInt8] {
        writer.writeCommand(RTMPCommandName.unpublish.rawValue, 6, [.null, .string(name)])
        writer.writeCommand(RTMPCommandName.deleteStream.rawValue, 7, [.null, .number(1)])
        return writer.take()
    }

    private mutating func connect() {
        writer.setChunkSize(RTMPLimits.chunkBytesMax)
        var members = [
            AMF0Member("app", .string(app)), AMF0Member("type", .string("nonprivate")),
            AMF0Member("flashVer", .string("FMLE/3.0 (compatible; Nagare)")), AMF0Member("tcUrl", .string(tcURL)),
        ]
        if !capabilities.isEmpty {
            members.append(AMF0Member("capsEx", .number(Double(capabilities.rawValue))))
        }
        writer.writeCommand(RTMPCommandName.connect.rawValue, 1, [.object(members)])
    }

    private mutating func receive(_ message: RTMPMessage, _ events: inout [Event]) throws(RTMPError) {
        switch message.type {
        case .setChunkSize: try reader.setChunkSize(message)
        case .commandAMF0:
            do throws(AMF0Error) {
                var command = AMF0Reader(message.body)
                let name = try command.readName()
                let transaction = try command.read().number
                var values: [AMF0Value] = []
                while !command.isAtEnd { values.append(try command.read()) }
                receive(name, transaction, values.last ?? .null, &events)
            } catch {
                throw .amf(error)
            }
        default: break
        }
    }

    private mutating func receive(_ command: String, _ transaction: Double?, _ info: AMF0Value, _ events: inout [Event])
    {
        switch (command, transaction) {
        case ("_result", 1):
            writer.writeCommand(RTMPCommandName.releaseStream.rawValue, 2, [.null, .string(name)])
            writer.writeCommand(RTMPCommandName.prepareToPublish.rawValue, 3, [.null, .string(name)])
            writer.writeCommand(RTMPCommandName.createStream.rawValue, 4, [.null])
        case ("_result", 4):
            let values: [AMF0Value] = [.null, .string(name), .string("live")]
            writer.writeCommand(RTMPCommandName.publish.rawValue, 5, values, stream: 1)
        case ("onStatus", _):
            let code = info["code"]?.string ?? ""
            guard code != "NetStream.Publish.Start" else {
                events.append(.started)
                return
            }
            let level = info["level"]?.string ?? ""
            let description = info["description"]?.string ?? ""
            events.append(.status(level: level, code: code, description: description, tcURL: info["tcUrl"]?.string))
        default: break
        }
    }
}
