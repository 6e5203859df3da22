/// Why something failed.
public struct NagareError: Error, Hashable, Sendable, CustomStringConvertible {
    /// For programs: `AUTHENTICATION-FAILURE`, `MUTED-BY-OPERATOR`, `JOIN-TIMEOUT`, …
    public let reason: String
    /// For people: what is wrong and what to do.
    public let message: String
    /// The result code of the ARTC reference where one exists, else 0.
    public let code: Int

    public init(reason: String, message: String, code: Int = 0) {
        self.reason = reason
        self.message = message
        self.code = code
    }

    public var description: String { "\(reason): \(message)" }
}

extension NagareError {
    static func badParameter(_ message: String) -> Self {
        Self(reason: "BAD-PARAMETER", message: message, code: 0x0103_0101)
    }

    static let notConnected = Self(reason: "NOT-CONNECTED", message: "There is no connection to the server now.")
    static let alreadyJoined = Self(
        reason: "ALREADY-JOINED",
        message: "This client is in the channel already, or joins it. Leave first.",
        code: 0x0101_0301
    )
    static let notPublisher = Self(
        reason: "NOT-A-PUBLISHER",
        message: "This client joined to watch only, and cannot publish.",
        code: 0x0101_0406
    )
    static let notHost = Self(
        reason: "NOT-A-HOST",
        message: "The audience cannot publish. Become a host first.",
        code: 0x0101_0406
    )
    static let left = Self(reason: "LEFT", message: "The channel was left.")
}
