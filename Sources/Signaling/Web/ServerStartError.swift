package import NIOCore

/// Why a listener cannot start, as a sentence for the operator.
package struct ServerStartError: Error, Hashable, CustomStringConvertible, Sendable {
    package let message: String
    package var description: String { message }

    /// - Parameter message: What is wrong, and what to do.
    package init(message: String) { self.message = message }
}

extension ServerStartError {
    package init(binding host: String, _ port: Int, _ error: IOError) {
        self.init(
            message: "Cannot listen on \(host):\(port) (TCP): \(error.description). "
                + "Is another program using the port, and is the address one of this machine?"
        )
    }
}
