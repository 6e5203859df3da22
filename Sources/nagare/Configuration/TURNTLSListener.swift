import Signaling
import Sora
import TLS
import ToolCommands
import Wire

/// Where the media loops are TURN servers over TLS.
struct TURNTLSListener: Equatable, Sendable {
    /// Of loop 0; loop i listens i ports further. All loops share the port of the HTTPS listener, if it is the same.
    var port: UInt16
    /// The host name in the URL.
    var name: String
}

extension TURNTLSListener {
    /// `nil` when neither of the settings is set.
    init?(_ reader: SettingReader) throws(CommandError) {
        let port = try reader.integer(.turnTLSPort, 1...65_535)
        let name = try reader.entry(.turnTLSName)
        guard let port, let name else {
            guard port == nil else {
                throw .usage("--turn-tls-port needs --turn-tls-name with the host name that the certificate is for.")
            }
            guard name == nil else { throw .usage("--turn-tls-name needs --turn-tls-port.") }
            return nil
        }
        guard Self.isHostName(name.value) else {
            throw .usage("\(name.origin) is \"\(name.value)\": write a host name, as turn.example.org.")
        }
        self.init(port: UInt16(truncatingIfNeeded: port), name: name.value)
    }

    /// Whether a text is a host name, or an IPv4 address, which a certificate may be for too.
    private static func isHostName(_ text: String) -> Bool {
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return text.utf8.count <= 253
            && labels.allSatisfy { label in
                (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
                    && label.allSatisfy(isLetterDigitHyphen)
            }
    }

    private static func isLetterDigitHyphen(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

extension NodeConfiguration {
    /// Whether the HTTPS listener gets the connections of TURN over TLS too.
    var sharesHTTPSPort: Bool {
        guard let turnTLS else { return false }
        return turnTLS.port == http.port && sharesMediaAddress(http)
    }

    private func sharesMediaAddress(_ address: TransportAddress) -> Bool {
        media.contains { $0.ip == address.ip || $0.ip.isUnspecified || address.ip.isUnspecified }
    }

    /// The ports of the TURN servers over TLS, one for each loop; empty when they share the port of the HTTPS listener.
    var turnTLSPorts: [UInt16] {
        guard let turnTLS, !sharesHTTPSPort else { return [] }
        return (0..<loops).map { UInt16(truncatingIfNeeded: Int(turnTLS.port) + $0) }
    }

    /// The servers listen on TCP at the addresses of the media sockets, and start before the web listeners.
    func checkTURNTLS() throws(CommandError) {
        guard let turnTLS else { return }
        guard tls != nil else { throw .usage("--turn-tls-port needs --tls-cert and --tls-key.") }
        guard turn != .off else { throw .usage("--turn-tls-port needs --turn auto or on.") }
        guard !sharesHTTPSPort else { return }
        let port = Int(turnTLS.port)
        guard port + loops - 1 <= 65_535 else {
            throw .usage(
                "--turn-tls-port \(port) leaves no room for \(loops) loops, which take one port each up to 65535."
            )
        }
        for (setting, address) in [(Setting.http, http), (.admin, admin)] {
            if sharesMediaAddress(address), (port..<port + loops).contains(Int(address.port)) {
                throw .usage(
                    "\(setting.flag) \(address) is a port of --turn-tls-port \(port): each of the \(loops) loops takes the next "
                        + "port."
                )
            }
        }
        for socket in media where usesICETCP && socket.port != 0 && abs(Int(socket.port) - port) < loops {
            throw .usage(
                "--media \(socket) and --turn-tls-port \(port) overlap: each of the \(loops) loops takes the next port."
            )
        }
    }
}

extension TLSError {
    /// What the operator is told of the certificate's files.
    func message(_ files: TLSFiles) -> String {
        switch self {
        case .certificate: "\(files.certificatePath) is no certificate chain in PEM, the server's certificate first."
        case .key: "\(files.keyPath) is no private key in PEM without a password."
        case .mismatch: "\(files.keyPath) is not the private key of the first certificate in \(files.certificatePath)."
        case .setup: "TLS could not be set up for TURN."
        }
    }
}
