package import Wire

/// Why an event loop could not start or open a socket.
package enum EventLoopError: Error, Hashable, Sendable {
    /// Another socket has the port.
    case addressInUse(TransportAddress)
    /// No interface of this machine has the address.
    case addressNotAvailable(TransportAddress)
    /// The port needs a privilege that the process lacks.
    case permissionDenied(TransportAddress)
    /// The machine has no IPv6.
    case ipv6NotAvailable(TransportAddress)
    /// The limit on open files, of the process or of the machine, is reached.
    case tooManyOpenFiles(TransportAddress)
    /// The loop has its maximum number of sockets already.
    case tooManySockets(TransportAddress, max: Int)
    /// A TCP listener could not be opened; the system's message.
    case cannotListen(TransportAddress, message: String)
    /// Another error of the system, with its message.
    case system(TransportAddress, message: String)
    /// The loop or its thread could not be created; the system's message.
    case loopFailed(message: String)
    /// The loop was started before.
    case alreadyStarted
    /// The loop was stopped.
    case stopped

    /// One sentence for the operator: the address, the reason and what to do.
    package var message: String {
        switch self {
        case .addressInUse(let address):
            "Cannot open UDP port \(address.port) on \(address.ip): another process uses it already; "
                + "stop that process or choose another port."
        case .addressNotAvailable(let address):
            "Cannot open UDP port \(address.port) on \(address.ip): this machine does not have that address; "
                + "choose one of its own, or 0.0.0.0 or [::] for all of them."
        case .permissionDenied(let address):
            "Cannot open UDP port \(address.port) on \(address.ip): the system does not permit it; "
                + "choose a port above 1023 or give the process the right to it."
        case .ipv6NotAvailable(let address):
            "Cannot open UDP port \(address.port) on \(address.ip): this machine has no IPv6; "
                + "choose an IPv4 address, or 0.0.0.0 for all of them."
        case .tooManyOpenFiles(let address):
            "Cannot open UDP port \(address.port) on \(address.ip): too many files are open; "
                + "raise the limit (ulimit -n)."
        case .tooManySockets(let address, let max):
            "Cannot open UDP port \(address.port) on \(address.ip): a loop takes \(max) sockets at most; "
                + "use fewer addresses."
        case .cannotListen(let address, let message):
            "Cannot listen on TCP port \(address.port) on \(address.ip): \(message); "
                + "stop the process that uses the port or choose another one."
        case .system(let address, let message):
            "Cannot open UDP port \(address.port) on \(address.ip): \(message); choose another address or port."
        case .loopFailed(let message):
            "Cannot start an event loop: \(message); check the limits on open files and threads."
        case .alreadyStarted:
            "The event loop was started before; make another one."
        case .stopped:
            "The event loop was stopped; make another one."
        }
    }
}

extension EventLoopError: CustomStringConvertible {
    package var description: String { message }
}
