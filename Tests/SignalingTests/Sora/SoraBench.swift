import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Negotiation
import RoomTestSupport
import Testing
import Wire

@testable import Room
@testable import Sora

/// A state machine without rooms: tests complete its actions.
struct SoraBench {
    static let id = ParticipantID("0123456789ABCDEFGHJKMNPQRS")!
    static let other = ParticipantID("1123456789ABCDEFGHJKMNPQRS")!
    static let third = ParticipantID("2123456789ABCDEFGHJKMNPQRS")!
    static let reservation = SoraStateMachine.Reservation(
        participant: id,
        session: ChannelSessionID("3123456789ABCDEFGHJKMNPQRS")!,
        local: LocalTransport(
            credentials: ICECredentials(usernameFragment: "server", password: "serverpasswordserverpass")!,
            fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32))!,
            candidates: [FakeMediaPlane.candidate]
        )
    )

    var state: SoraStateMachine
    var now = Instant(nanoseconds: 1_000_000_000)
    /// Texts that were sent and not looked at.
    private(set) var sent: [JSONValue] = []
    /// The same of data channels, with the labels.
    private(set) var sentData: [(label: String, message: JSONValue)] = []
    private(set) var close: SoraClose?
    private(set) var left: EndReason?
    private(set) var rest: [SoraStateMachine.Action] = []
    /// The names of the sections that the client sends in.
    private(set) var own: [String] = []

    init(_ configuration: SoraConfiguration = SoraConfiguration()) {
        state = SoraStateMachine(configuration: configuration, at: now)
    }

    static func connect(_ role: Role = .sendrecv, _ members: String = "") -> String {
        let rest = members.isEmpty ? "" : ",\(members)"
        return #"{"type":"connect","role":"\#(role.rawValue)","channel_id":"room","sora_client":"test"\#(rest)}"#
    }

    static func stream(_ sender: ParticipantID, video: CodecName = .vp8) -> VisibleStream {
        VisibleStream(
            sender: sender,
            tracks: [
                Publication(mid: MID("a")!, kind: .audio, formats: [.offered(.opus)]),
                Publication(mid: MID("v")!, kind: .video, formats: [.offered(video)]),
            ]
        )
    }

    mutating func take(_ actions: [SoraStateMachine.Action]) {
        for action in actions {
            switch action {
            case .send(let text):
                #expect(close == nil, "nothing is sent behind the end")
                guard let message = try? JSONValue(parsing: text) else {
                    Issue.record("not JSON: \(text)")
                    continue
                }
                if let mid = message["mid"]?.object { own = mid.values.compactMap(\.string) }
                sent.append(message)
            case .sendData(let text, let label):
                #expect(close == nil, "nothing is sent behind the end")
                guard let message = try? JSONValue(parsing: text) else {
                    Issue.record("not JSON: \(text)")
                    continue
                }
                sentData.append((label.rawValue, message))
            case .close(let close): self.close = close
            case .leave(let reason): left = reason
            default: rest.append(action)
            }
        }
    }

    mutating func receive(_ text: String) { take(state.received(text, at: now)) }
    mutating func receive(_ event: ParticipantEvent) { take(state.received(event, at: now)) }

    /// The next text that was sent.
    mutating func next(_ location: SourceLocation = #_sourceLocation) throws -> JSONValue {
        try #require(!sent.isEmpty, sourceLocation: location)
        return sent.removeFirst()
    }

    /// The next message on a data channel.
    mutating func nextData(_ location: SourceLocation = #_sourceLocation) throws -> (label: String, message: JSONValue)
    {
        try #require(!sentData.isEmpty, sourceLocation: location)
        return sentData.removeFirst()
    }

    /// Takes the next text, which has to be of a type.
    mutating func expectNext(_ type: String, _ location: SourceLocation = #_sourceLocation) throws {
        let message = try next(location)
        #expect(message["type"] == .string(type), sourceLocation: location)
    }

    /// The next action that is not a message.
    mutating func request(_ location: SourceLocation = #_sourceLocation) throws -> SoraStateMachine.Action {
        try #require(!rest.isEmpty, sourceLocation: location)
        return rest.removeFirst()
    }

    /// Advances to the next deadline, or to `limit` if that is earlier. Returns whether there was a deadline.
    mutating func wait(until limit: Instant) -> Bool {
        guard let deadline = state.nextDeadline, deadline <= limit else {
            now = limit
            return false
        }
        now = max(now, deadline)
        take(state.handleTimeout(at: now))
        return true
    }

    /// `connect` until the offer is there. Returns its SDP.
    mutating func offer(
        _ connect: String = Self.connect(),
        grants: Grants = Grants(),
        streams: [VisibleStream] = []
    ) throws -> String {
        receive(connect)
        guard case .authorize = try request() else { throw SoraClose.stopping }
        take(state.admitted(.allowed(grants), id: Self.id, at: now))
        guard case .reserve = try request() else { throw SoraClose.stopping }
        take(state.reserved(Self.reservation, streams: streams, at: now))
        let offer = try next()
        #expect(offer["type"] == "offer")
        return try #require(offer["sdp"]?.string)
    }

    mutating func answer(
        _ sdp: String,
        _ type: String = "re-answer",
        refused: Set<String> = [],
        lacking: Set<String> = []
    ) {
        let answer = SDPAnswer.make(to: sdp, own: own, refused: refused, lacking: lacking)
        receive(JSONValue.object(["type": .string(type), "sdp": .string(answer)]).text)
    }

    /// `connect` until the transport is up.
    mutating func connected(_ connect: String = Self.connect(), streams: [VisibleStream] = []) throws {
        answer(try offer(connect, streams: streams), "answer")
        guard case .activate = try request() else { throw SoraClose.stopping }
        take(state.activated(at: now))
        receive(.connected)
    }
}
