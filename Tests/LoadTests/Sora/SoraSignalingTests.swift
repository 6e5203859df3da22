import ClientEngine
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Load

/// The messages over a real WebSocket, without media.
@Suite(.timeLimit(.minutes(10)))
struct SoraSignalingTests {
    private func signaling(_ port: Int, _ edit: (inout LoadConfiguration) -> Void = { _ in }) -> SoraSignaling {
        var configuration = LoadConfiguration()
        configuration.url = "http://127.0.0.1:\(port)"
        configuration.signaling = .sora
        configuration.sendsAudio = true
        edit(&configuration)
        return SoraSignaling(configuration)
    }

    private func object(_ text: String?) throws -> NSDictionary {
        try #require(try JSONSerialization.jsonObject(with: Data((text ?? "").utf8)) as? NSDictionary)
    }

    @Test func `a sender sends its role and media options, and gets an offer`() async throws {
        let heard = Mutex<[String]>([])
        let server = try await SoraServer.start { connection in
            for await text in connection.texts {
                heard.withLock { $0.append(text) }
                if text.contains("connect\"") && !text.contains("disconnect") {
                    connection.send(#"{"type":"notify","event_type":"early"}"#)
                    connection.send(pieces: [#"{"type":"offer","sdp":"v=0","mid":{"au"#, #"dio":"a1"},"#, #""x":[1]}"#])
                } else {
                    connection.close(1_000, "TYPE-DISCONNECT")
                }
            }
            heard.withLock { $0.append(connection.uri) }
        }
        let signaling = signaling(server.port) {
            $0.token = "secret"
            $0.signalingPath = "/signaling?x=1"
        }
        let (session, offer) = try await signaling.join(channel: "room", role: .sendonly)
        #expect(offer.sdp == "v=0" && offer.mid == SoraMessage.Lines(audio: "a1"))
        await signaling.end(session, reader: nil)
        await server.stop()
        let texts = heard.withLock { $0 }
        #expect(texts.count == 3)
        #expect(
            try object(texts.first) == [
                "type": "connect", "role": "sendonly", "channel_id": "room", "sora_client": "Nagare load",
                "environment": "Linux", "audio": true, "video": ["codec_type": "VP8"],
                "metadata": ["access_token": "secret"],
            ]
        )
        #expect(try object(texts[1]) == ["type": "disconnect", "reason": "NO-ERROR"])
        #expect(texts.last == "/signaling?x=1")
    }

    @Test func `a receiver requests kinds without a codec`() async throws {
        let heard = Mutex<[String]>([])
        let server = try await SoraServer.start { connection in
            for await text in connection.texts {
                heard.withLock { $0.append(text) }
                connection.close(4_490, "AUTHENTICATION-FAILURE")
            }
        }
        let signaling = signaling(server.port) { $0.sendsAudio = false }
        await #expect(
            throws: LoadError.failed(
                "http://127.0.0.1:\(server.port)/signaling made no offer. "
                    + "The server closed with 4490 AUTHENTICATION-FAILURE."
            )
        ) {
            _ = try await signaling.join(channel: "room", role: .recvonly)
        }
        await server.stop()
        let connect = try object(heard.withLock { $0.first })
        #expect(connect["audio"] as? Bool == false)
        #expect(connect["video"] as? Bool == true)
        #expect(connect["metadata"] == nil && connect["redirect"] == nil)
    }

    @Test func `a redirection is followed once`() async throws {
        let heard = Mutex<[String]>([])
        let second = try await SoraServer.start { connection in
            for await text in connection.texts {
                heard.withLock { $0.append(text) }
                connection.send(#"{"type":"offer","sdp":"v=0"}"#)
            }
        }
        let location = "ws://127.0.0.1:\(second.port)/signaling"
        let first = try await SoraServer.start { connection in
            for await _ in connection.texts {
                connection.send(#"{"type":"redirect","location":"\#(location)"}"#)
                connection.close(1_000, "")
            }
        }
        let (session, offer) = try await signaling(first.port).join(channel: "room", role: .sendrecv)
        #expect(offer.sdp == "v=0")
        #expect(try object(heard.withLock { $0.first })["redirect"] as? Bool == true)
        session.abandon()
        await first.stop()
        await second.stop()
    }

    @Test func `a server without WebSocket, and no server, give an error sentence`() async throws {
        let server = try await SoraServer.start { _ in }
        let refusing = signaling(server.port) { $0.signalingPath = "none" }
        let error = await #expect(throws: LoadError.self) {
            _ = try await refusing.join(channel: "room", role: .sendonly)
        }
        #expect(error?.message.contains("/none") == true)
        await server.stop()
        let closed = try RefusingPort()
        let nobody = await #expect(throws: LoadError.self) {
            _ = try await signaling(closed.port).join(channel: "room", role: .sendonly)
        }
        #expect(nobody?.message.contains("the connection was refused") == true)
    }

    @Test func `an invalid message ends the connection`() async throws {
        let server = try await SoraServer.start { connection in
            for await _ in connection.texts { connection.send("[1]") }
        }
        let error = await #expect(throws: LoadError.self) {
            _ = try await signaling(server.port).join(channel: "room", role: .sendonly)
        }
        #expect(error?.message.hasSuffix("The server sent an invalid message.") == true)
        await server.stop()
    }
}
