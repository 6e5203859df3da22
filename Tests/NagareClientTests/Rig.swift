import Testing

@testable import NagareClient

/// A channel machine in virtual time, with the test in the place of the driver, of the server and of the engine.
struct Rig {
    var machine: ChannelMachine
    private(set) var now = Duration.zero
    private var pending: [ChannelMachine.Action] = []
    /// The WebSockets and sessions that were opened last.
    private(set) var sockets: [MemberConnection.Slot: SignalingSession.ID] = [:]
    private(set) var urls: [String] = []
    private(set) var sessions: [MemberConnection.Slot: SignalingSession.ID] = [:]

    static let urls = ["wss://a.example/signaling", "wss://b.example/signaling"]

    static func parameters(_ edit: (inout JoinParameters) -> Void = { _ in }) -> JoinParameters {
        var parameters = JoinParameters(
            urls: [urls[0]],
            channel: "room",
            user: "me",
            accessToken: "first",
            metadata: [:],
            role: .host,
            statesRole: false,
            canPublish: true,
            publishes: [.audio, .video],
            subscribes: [.audio, .video],
            source: .camera,
            video: VideoOptions(),
            joinTimeout: .seconds(30)
        )
        edit(&parameters)
        return parameters
    }

    /// The pauses of reconnections are 0.3 s, 0.6 s, … with this `random`.
    init(random: Double = 0.5, _ edit: (inout JoinParameters) -> Void = { _ in }) {
        machine = ChannelMachine(Self.parameters(edit), random: { random })
    }

    /// A rig whose client is in the channel.
    static func joined(
        random: Double = 0.5,
        message: String = Self.joinedMessage(),
        _ edit: (inout JoinParameters) -> Void = { _ in }
    ) -> Rig {
        var rig = Rig(random: random, edit)
        rig.machine.join(at: rig.now)
        rig.connect(message: message)
        _ = rig.take()
        return rig
    }

    static func joinedMessage(role: String = "host", profile: String = "communication", users: String = "[]") -> String
    {
        #"{"type":"notify","event_type":"channel.joined","user_id":"me","connection_id":"C0","profile":"\#(profile)","#
            + #""role":"\#(role)","resume_token":"r1","grace":30,"users":\#(users)}"#
    }
    static let offer =
        #"{"type":"offer","sdp":"v=0","connection_id":"C0","mid":{"audio":"a0","video":"v0"},"config":{"iceServers":[]}}"#
    static let created = #"{"type":"notify","event_type":"connection.created","connection_id":"C0"}"#

    /// From the WebSocket to the list of users.
    mutating func connect(_ slot: MemberConnection.Slot = .main, message: String = Self.joinedMessage()) {
        open(slot)
        say(Self.offer, slot)
        if let session = sessions[slot] { machine.answered("v=0 answer", .answer, session: session, at: now) }
        say(Self.created, slot)
        say(message, slot)
    }

    mutating func open(_ slot: MemberConnection.Slot = .main) {
        collect()
        if let socket = sockets[slot] { machine.opened(socket, at: now) }
    }

    mutating func say(_ text: String, _ slot: MemberConnection.Slot = .main) {
        collect()
        if let socket = sockets[slot] { machine.received(ServerMessage.parse(text), on: socket, at: now) }
        collect()
    }

    mutating func event(_ type: String, _ members: String = "") {
        say(#"{"type":"notify","event_type":"\#(type)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
    }

    mutating func close(_ code: Int, _ reason: String, _ slot: MemberConnection.Slot = .main) {
        collect()
        if let socket = sockets[slot] { machine.closed(socket, .closed(code: code, reason: reason), at: now) }
    }

    mutating func lose(_ slot: MemberConnection.Slot = .main) {
        collect()
        if let socket = sockets[slot] { machine.closed(socket, .lost("gone"), at: now) }
    }

    mutating func media(_ event: MediaConnectionEvent, _ slot: MemberConnection.Slot = .main) {
        collect()
        if let session = sessions[slot] { machine.media(event, session: session, at: now) }
    }

    /// Lets time pass, with every deadline on the way.
    mutating func pass(_ time: Duration) {
        let end = now + time
        while let deadline = machine.nextDeadline, deadline <= end {
            now = max(now, deadline)
            machine.handleTimeout(at: now)
            collect()
            #expect(machine.nextDeadline.map { $0 > deadline } ?? true, "a deadline is passed once")
        }
        now = end
        machine.handleTimeout(at: now)
        collect()
    }

    private mutating func collect() {
        for action in machine.takeActions() {
            if case .connection(let command) = action {
                switch command {
                case .open(let socket, let url):
                    sockets[socket.slot] = socket
                    urls.append(url)
                case .answer(_, _, let session): sessions[session.slot] = session
                default: break
                }
            }
            pending.append(action)
        }
    }

    /// What was done since the last call.
    mutating func take() -> [ChannelMachine.Action] {
        collect()
        defer { pending = [] }
        return pending
    }

    mutating func events() -> [ChannelEvent] {
        take().compactMap { if case .emit(let event) = $0 { event } else { nil } }
    }

    /// Requests and other messages to the server.
    mutating func sent() -> [ClientMessage] {
        take().compactMap { if case .connection(.send(let message, _)) = $0 { message } else { nil } }
    }
}

extension [ChannelMachine.Action] {
    var events: [ChannelEvent] { compactMap { if case .emit(let event) = $0 { event } else { nil } } }
    var sent: [ClientMessage] {
        compactMap { if case .connection(.send(let message, _)) = $0 { message } else { nil } }
    }
    /// The methods of requests, with their parameters.
    var requests: [String] {
        sent.compactMap { message in
            guard case .request(_, let method, let parameters) = message else { return nil }
            return
                "\(method) \(ClientMessage.request(0, method: method, parameters: parameters).json["params"]?.shown ?? "")"
        }
    }
    var connects: [ConnectMessage] { sent.compactMap { if case .connect(let message) = $0 { message } else { nil } } }
    func result(_ call: Int) -> Result<JSONValue, NagareError>? {
        for case .finishCall(call, let result) in self { return result }
        return nil
    }
    var join: Result<JoinedChannel, NagareError>? {
        for case .finishJoin(let result) in self { return result }
        return nil
    }
}

extension JSONValue {
    /// Members in the order of their names.
    var shown: String {
        switch self {
        case .null: "null"
        case .bool(let flag): "\(flag)"
        case .number(let number): "\(number)"
        case .string(let text): text
        case .array(let elements): "[\(elements.map(\.shown).joined(separator: ","))]"
        case .object(let members):
            members.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.shown)" }.joined(separator: " ")
        }
    }
}

extension Result {
    var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
    var isSuccess: Bool { failure == nil }
}
