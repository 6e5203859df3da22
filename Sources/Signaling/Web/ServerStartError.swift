package import NIOCore

/// Why a listener cannot start, as a sentence for the operator.
public struct ServerStartError: Error, Hashable, CustomStringConvertible, Sendable {
    public let message: String
    public var description: String { message }

    /// - Parameter message: What is wrong, and what to do.
    public init(message: String) { self.message = message }
}

extension ServerStartError {
    package init(binding host: String, _ port: Int, _ error: IOError) {
        self.init(
            message: "Cannot listen on \(host):\(port) (TCP): \(error.description). "
                + "Is another program using the port, and is the address one of this machine?"
        )
    }
}
