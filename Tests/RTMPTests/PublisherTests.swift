import Base
import Testing

@testable import RTMP

@Suite struct PublisherTests {
    /// A publisher and a server whose bytes arrive in pieces.
    private struct Pair {
        var publisher: RTMPPublisher
        var peer = RTMPConnection.made()
        var toServer: [UInt8] = []
        var toClient: [UInt8] = []
        var events: [RTMPPublisher.Event] = []
        var actions: [RTMPConnection.Action] = []
        var generator: SplitMix64
        let refusal: RTMPRefusal?

        init(seed: UInt64, refusal: RTMPRefusal? = nil) {
            generator = SplitMix64(seed: seed)
            self.refusal = refusal
            publisher = RTMPPublisher(
                app: "live",
                name: "demo?token=t",
                tcURL: "rtmp://127.0.0.1/live",
                capabilities: .reconnect,
                using: &generator
            )
            toServer = publisher.start
        }

        private static func piece(_ bytes: inout [UInt8], _ generator: inout SplitMix64) -> [UInt8] {
            let count = min(bytes.count, Int.random(in: 1...3_000, using: &generator))
            defer { bytes.removeFirst(count) }
            return Array(bytes.prefix(count))
        }

        mutating func run() throws {
            while !toServer.isEmpty || !toClient.isEmpty {
                let request = Self.piece(&toServer, &generator)
                for action in peer.receive(unsafe request.span.bytes, at: Peer.start) { handle(action) }
                let answer = Self.piece(&toClient, &generator)
                for event in try publisher.receive(unsafe answer.span.bytes) {
                    if case .send(let bytes) = event { toServer += bytes } else { events.append(event) }
                }
            }
        }

        mutating func handle(_ action: RTMPConnection.Action) {
            switch action {
            case .send(let bytes): toClient += bytes
            case .publish:
                actions.append(action)
                let answer =
                    if let refusal { peer.refuse(refusal, at: Peer.start) } else { peer.accept(at: Peer.start) }
                for action in answer { handle(action) }
            default: actions.append(action)
            }
        }
    }

    @Test(arguments: UInt64(1)...10)
    func `media of a publisher comes out of the server`(seed: UInt64) throws {
        var pair = Pair(seed: seed)
        try pair.run()
        #expect(pair.events == [.started])
        // The second time crosses 2^24 ms, and the last but one 2^32.
        let media = [0, 0xFF_FFFF, 0x100_0017, 0x7000_0000, 0xE000_0000, 0x1_0000_0001, 0x1_0000_0018].map { time in
            RTMPMedia(time % 2 == 0 ? .video : .audio, timestamp: Int64(time), body: pattern(90_000, seed: time & 0xFF))
        }
        for frame in media { pair.toServer += pair.publisher.media(frame) }
        for action in pair.peer.requestReconnect(to: "rtmp://b/live", description: "drain") { pair.handle(action) }
        try pair.run()
        pair.toServer += pair.publisher.end()
        try pair.run()
        #expect(Array(pair.actions.dropFirst()) == media.map { .media($0) } + [.ended(.unpublished)])
        #expect(
            pair.events == [
                .started,
                .status(
                    level: "status",
                    code: "NetConnection.Connect.ReconnectRequest",
                    description: "drain",
                    tcURL: "rtmp://b/live"
                ),
                .status(
                    level: "status",
                    code: "NetStream.Unpublish.Success",
                    description: "The stream has ended.",
                    tcURL: nil
                ),
            ]
        )
    }

    @Test func `a publisher sees why it is refused`() throws {
        var pair = Pair(seed: 1, refusal: RTMPRefusal(.denied, "The token has expired."))
        try pair.run()
        #expect(
            pair.events == [
                .status(
                    level: "error",
                    code: "NetStream.Publish.Denied",
                    description: "The token has expired.",
                    tcURL: nil
                )
            ]
        )
    }
}

extension RTMPConnection {
    fileprivate static func made() -> RTMPConnection {
        var generator = SplitMix64(seed: 7)
        return RTMPConnection(settings: RTMPSettings(), using: &generator, at: Peer.start)
    }
}
