import Base
import Foundation
import Testing

@testable import RTMP

/// Connections of real encoders, recorded in front of a server that answered them.
struct Recording: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    /// Type, time, length and CRC-32 of each message, by another reader.
    let messages: [String]

    var testDescription: String { name }

    init(_ name: String) {
        self.name = name
        func text(_ type: String) -> String {
            let url = Bundle.module.url(forResource: name, withExtension: type, subdirectory: "Recorded")
            return url.flatMap { try? String(contentsOf: $0, encoding: .utf8) } ?? ""
        }
        bytes = Array(Data(base64Encoded: text("base64"), options: .ignoreUnknownCharacters) ?? Data())
        messages = text("messages").split(separator: "\n").map(String.init)
    }

    static let all = [
        "ffmpeg5", "ffmpeg5-extended", "ffmpeg9", "ffmpeg9-hevc-opus", "rtmp2sink", "rtmpsink",
    ].map(Recording.init)
}

@Suite struct RecordedTests {
    private func line(_ message: RTMPMessage) -> String {
        let checksum = CRC32.checksum(unsafe message.body.span.bytes)
        return "\(message.rawType) \(message.timestamp) \(message.body.count) \(checksum)"
    }

    @Test(arguments: Recording.all)
    func `the messages are those of another reader`(recording: Recording) throws {
        #expect(recording.messages.count > 50)
        for pieceBytes in [1, 2, 3, 7, 100, 1_460, .max] {
            var reader = RTMPChunkReader()
            reader.limits = .publisher
            let read = try reader.readAll(Array(recording.bytes.dropFirst(3_073)), pieceBytes: pieceBytes)
            #expect(read.map(line) == recording.messages, "\(pieceBytes)")
        }
    }

    /// All that a server does with these pieces of a recording, when it accepts at once.
    private func actions(_ pieces: [ArraySlice<UInt8>]) -> [RTMPConnection.Action] {
        var peer = Peer(isPastHandshake: false)
        for piece in pieces {
            peer.receive(Array(piece))
            if peer.actions.count == 1, case .publish = peer.actions[0] { peer.accept() }
        }
        return peer.actions
    }

    private func isMedia(_ action: RTMPConnection.Action) -> Bool {
        if case .media = action { true } else { false }
    }

    @Test(arguments: Recording.all)
    func `the stream comes out and ends`(recording: Recording) throws {
        let actions = actions([recording.bytes[...]])
        guard case .publish(let request) = actions.first else {
            Issue.record("no request: \(actions.count)")
            return
        }
        #expect(request.app == "live" && request.name == "demo" && request.query == "auth_key=secret")
        #expect(actions.last == .ended(.unpublished))
        let media = actions.compactMap { action in
            if case .media(let media) = action { media } else { nil }
        }
        #expect(media.count == recording.messages.count { $0.hasPrefix("8 ") || $0.hasPrefix("9 ") })
        #expect(media.count { $0.kind == .video } >= 6)
        #expect(media.count { $0.kind == .audio } >= 44)
        #expect(actions.contains { if case .metadata = $0 { true } else { false } })
        let times = media.map(\.timestamp)
        #expect(
            zip(times, times.dropFirst()).allSatisfy { $1 - $0 < 1_000 && $0 - $1 < 1_000 }
                || recording.name.contains("extended")
        )
    }

    @Test(arguments: Recording.all)
    func `where the bytes are cut changes nothing`(recording: Recording) {
        let whole = actions([recording.bytes[...]])
        // Every place of the handshake's end, of the commands and of the first frames, and every 97th of the rest.
        let places = Array(3_060..<4_200) + Array(stride(from: 1, to: recording.bytes.count, by: 97))
        for place in places where place < recording.bytes.count {
            let parts = actions([recording.bytes[..<place], recording.bytes[place...]])
            #expect(parts == whole, "at \(place)")
        }
        #expect(actions(recording.bytes.indices.map { recording.bytes[$0...$0] }) == whole)
    }

    @Test(arguments: Recording.all, UInt64(1)...5)
    func `changed bytes do not trap`(recording: Recording, seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<20 {
            var bytes = recording.bytes
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                bytes[Int.random(in: 3_073..<bytes.count, using: &generator)] = generator.next()
            }
            _ = actions([bytes[...]])
        }
    }
}
