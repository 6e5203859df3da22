internal import Foundation

/// Why a text does not name a store, as a sentence for the operator. It has no part of the text, which may hold a password.
package struct RedisEndpointError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
}

/// Where the store is: `redis://[user:password@]host[:port][/db]`, `rediss://` with TLS, or through Sentinels
/// `redis+sentinel://[user:password@]host[:port],host[:port]/master[/db]` (`rediss+sentinel://`, then TLS for both).
package struct RedisEndpoint: Hashable, Sendable {
    package enum Location: Hashable, Sendable {
        case server(HostPort)
        /// The Sentinels to ask, and the name under which they know the primary.
        case sentinels([HostPort], master: String)
    }

    /// A password, which no description shows.
    struct Password: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        let secret: String
        var description: String { "…" }
        var debugDescription: String { description }
        var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
    }

    package let location: Location
    package let user: String?
    let password: Password?
    package let database: Int
    package let usesTLS: Bool

    private static let port = 6379
    private static let sentinelPort = 26379
    private static let sentinelsMax = 16

    package init(_ text: String) throws(RedisEndpointError) {
        guard let separator = text.firstRange(of: "://") else {
            throw RedisEndpointError(description: "The store's URL has to begin with redis:// or rediss://.")
        }
        let scheme = text[..<separator.lowerBound].lowercased()
        guard ["redis", "rediss", "redis+sentinel", "rediss+sentinel"].contains(scheme) else {
            throw RedisEndpointError(description: "The store's URL has to begin with redis:// or rediss://.")
        }
        usesTLS = scheme.hasPrefix("rediss")
        var rest = text[separator.upperBound...]
        var userInfo: Substring?
        if let at = rest.lastIndex(of: "@") {
            userInfo = rest[..<at]
            rest = rest[rest.index(after: at)...]
        }
        (user, password) = try Self.credentials(userInfo)
        let path = rest.split(separator: "/", omittingEmptySubsequences: false)
        var names = path.dropFirst().filter { !$0.isEmpty }.map(String.init)
        let isSentinel = scheme.hasSuffix("sentinel")
        var hosts: [HostPort] = []
        for part in (path.first ?? "").split(separator: ",", omittingEmptySubsequences: false) {
            guard let host = HostPort(part, defaultPort: isSentinel ? Self.sentinelPort : Self.port) else {
                throw RedisEndpointError(
                    description: "A host of the store's URL has to be a name or an address, as host:6379."
                )
            }
            hosts.append(host)
        }
        if isSentinel {
            guard !names.isEmpty, names[0].utf8.count <= 255, hosts.count <= Self.sentinelsMax else {
                throw RedisEndpointError(
                    description: "The URL of Sentinels has to end in the primary's name, as in /mymaster."
                )
            }
            location = .sentinels(hosts, master: names.removeFirst())
        } else {
            guard hosts.count == 1 else {
                throw RedisEndpointError(description: "The store's URL has to name one host; several are Sentinels'.")
            }
            location = .server(hosts[0])
        }
        guard names.count <= 1, let database = Int(names.first ?? "0"), 0...65_535 ~= database else {
            throw RedisEndpointError(description: "The path of the store's URL has to be a database's number, as /0.")
        }
        self.database = database
    }

    private static func credentials(_ userInfo: Substring?) throws(RedisEndpointError) -> (String?, Password?) {
        guard let userInfo else { return (nil, nil) }
        let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = parts[0].removingPercentEncoding, let password = parts.last?.removingPercentEncoding,
            parts.count == 2, !password.isEmpty
        else {
            throw RedisEndpointError(
                description: "The store's user and password have to be user:password or :password, percent-encoded."
            )
        }
        return (user.isEmpty ? nil : user, Password(secret: password))
    }
}

extension RedisEndpoint: CustomStringConvertible {
    /// The URL without the password.
    package var description: String {
        let scheme = usesTLS ? "rediss" : "redis"
        let credentials = password == nil ? "" : "\(user ?? ""):…@"
        let path = database == 0 ? "" : "/\(database)"
        switch location {
        case .server(let host): return "\(scheme)://\(credentials)\(host)\(path)"
        case .sentinels(let hosts, let master):
            let names = hosts.map(\.description).joined(separator: ",")
            return "\(scheme)+sentinel://\(credentials)\(names)/\(master)\(path)"
        }
    }
}
