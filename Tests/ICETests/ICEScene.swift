import Base
import ICE
import TestSupport
import Wire

func credentials(_ seed: UInt64) -> ICECredentials {
    var generator = SeededGenerator(seed: seed)
    return ICECredentials(using: &generator)
}

/// A path to 192.0.2.`host`.
func path(_ host: UInt32, port: UInt16 = 5000, socket: Int = 0) -> NetworkPath {
    NetworkPath(
        socket: SocketIndex(rawValue: numericCast(socket)),
        remote: TransportAddress(ip: IPAddress(v4: 0xC000_0200 | host), port: port)
    )
}

func at(_ seconds: Double) -> Instant { Instant(nanoseconds: 1_000_000_000_000) + .seconds(seconds) }

/// The result of handling one message.
enum Outcome: Equatable {
    case event(ICEEvent?)
    case dropped(ICEDropReason)
}

/// A datagram that an agent sent.
struct Sent {
    let path: NetworkPath
    let bytes: [UInt8]

    var messageClass: STUNMessageClass? { read { $0.messageClass } }
    var errorCode: Int? { read { $0.errorCode } ?? nil }
    var xorMappedAddress: TransportAddress? { read { $0.xorMappedAddress } ?? nil }
    var useCandidate: Bool { read { $0.useCandidate } ?? false }
    var transactionID: STUNTransactionID? { read { $0.transactionID } }
    var username: String? { read { $0.username } ?? nil }
    var unknownAttributes: [STUNAttributeType] {
        var list: [STUNAttributeType] = []
        var builder = bytes[...].dropFirst(20)
        while builder.count >= 4 {
            let field = Array(builder)
            let type = UInt16(field[0]) << 8 | UInt16(field[1])
            let length = Int(field[2]) << 8 | Int(field[3])
            if type == STUNAttributeType.unknownAttributes.rawValue {
                for offset in stride(from: 4, to: 4 + length, by: 2) {
                    list.append(STUNAttributeType(rawValue: UInt16(field[offset]) << 8 | UInt16(field[offset + 1])))
                }
            }
            builder = builder.dropFirst(4 + (length + 3) & ~3)
        }
        return list
    }
    func isAuthentic(password: String) -> Bool {
        read { $0.hasValidIntegrity(key: Array(password.utf8)) && $0.hasValidFingerprint() } ?? false
    }
    private func read<Value>(_ body: (borrowing STUNMessageView) -> Value) -> Value? {
        guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return nil }
        return body(message)
    }
}

extension DatagramBatch {
    /// Empties the batch.
    func take() -> [Sent] {
        defer { removeAll() }
        return (0..<count).map { index in withDatagram(index) { Sent(path: $1, bytes: $0.array()) } }
    }
}

/// One check as a client sends it; each property can be invalid.
struct Check {
    var id: UInt64
    var local: ICECredentials
    var remote: ICECredentials
    var nominates = false
    var messageClass = STUNMessageClass.request
    var method = STUNMethod.binding
    var username: String?
    var hasUsername = true
    var password: String?
    var hasIntegrity = true
    var hasFingerprint = true
    var controlled: UInt64?
    var extra: [STUNAttributeType] = []

    /// - Parameters:
    ///   - local: the receiver's credentials.
    ///   - remote: the sender's.
    init(_ id: UInt64, to local: ICECredentials, from remote: ICECredentials, nominates: Bool = false) {
        self.id = id
        self.local = local
        self.remote = remote
        self.nominates = nominates
    }

    var bytes: [UInt8] {
        var builder = STUNMessageBuilder(
            messageClass,
            method: method,
            transactionID: STUNTransactionID(high: 0, low: id)
        )
        if hasUsername {
            builder.append(.username, username ?? "\(local.usernameFragment):\(remote.usernameFragment)")
        }
        builder.append(.priority, 1 as UInt32)
        if let controlled {
            builder.append(.iceControlled, controlled)
        } else {
            builder.append(.iceControlling, 7 as UInt64)
        }
        if nominates { builder.append(.useCandidate) }
        for type in extra { builder.append(type, [1, 2, 3, 4]) }
        if hasIntegrity { builder.appendMessageIntegrity(key: Array((password ?? local.password).utf8)) }
        if hasFingerprint { builder.appendFingerprint() }
        return builder.bytes
    }
}

extension ICELiteAgent {
    /// A timeout at which no check of the agent's own is due.
    mutating func handleTimeout(at now: Instant) -> ICEEvent? {
        let batch = DatagramBatch(capacity: 1)
        defer { precondition(batch.isEmpty, "the scene reads what is sent") }
        return handleTimeout(at: now, into: batch)
    }
}

extension Sent {
    /// A response of the client to this check: right in all parts that are not given.
    func response(
        id: STUNTransactionID? = nil,
        messageClass: STUNMessageClass = .success,
        from client: ICECredentials = LiteScene.client,
        hasIntegrity: Bool = true
    ) -> [UInt8] {
        guard let id = id ?? transactionID else { preconditionFailure("a check has an identifier") }
        var response = STUNMessageBuilder(messageClass, transactionID: id)
        if messageClass == .error {
            response.appendErrorCode(403, reason: "Forbidden")
        } else {
            response.appendXORMappedAddress(path.remote)
        }
        if hasIntegrity { response.appendMessageIntegrity(key: Array(client.password.utf8)) }
        response.appendFingerprint()
        return response.bytes
    }
}

/// A lite agent with the batch that it writes to.
struct LiteScene {
    static let server = credentials(1)
    static let client = credentials(2)
    static let serverRestarted = credentials(3)
    static let clientRestarted = credentials(4)

    var agent = ICELiteAgent(local: server, remote: client, at: at(0), tieBreaker: 1, pathSecret: 9)
    let batch = DatagramBatch(capacity: 64)

    mutating func deliver(_ bytes: [UInt8], on path: NetworkPath, at now: Instant) -> Outcome {
        do throws(ICEDropReason) {
            guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return .event(nil) }
            return .event(try agent.handle(message, path: path, at: now, into: batch))
        } catch {
            return .dropped(error)
        }
    }

    /// A valid check with the first credentials.
    mutating func check(
        _ id: UInt64,
        on path: NetworkPath,
        at now: Instant,
        nominates: Bool = false
    ) -> Outcome {
        deliver(Check(id, to: Self.server, from: Self.client, nominates: nominates).bytes, on: path, at: now)
    }

    /// A valid check with the credentials of the restart.
    mutating func restartedCheck(
        _ id: UInt64,
        on path: NetworkPath,
        at now: Instant,
        nominates: Bool = false
    ) -> Outcome {
        let check = Check(id, to: Self.serverRestarted, from: Self.clientRestarted, nominates: nominates)
        return deliver(check.bytes, on: path, at: now)
    }

    mutating func restart(at now: Instant) {
        agent.restart(local: Self.serverRestarted, remote: Self.clientRestarted, at: now)
    }
}
