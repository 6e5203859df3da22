import Access
import Foundation
import Logging
import ToolCommands
import Wire

/// Where the public keys of tokens come from that are not in ``JWTKeySource``: a JSON Web Key Set.
struct KeySetSource: Equatable, Sendable {
    enum Location: Equatable, Sendable {
        case file(String)
        case url(String)
    }
    let location: Location
    /// Where it was set, for error messages.
    let origin: String

    static func == (left: Self, right: Self) -> Bool { left.location == right.location }

    /// The path of a file, or a URL: with `https`, or with `http` on this machine.
    init(_ value: String, origin: String) throws(CommandError) {
        self.origin = origin
        guard value.contains("://") else {
            location = .file(value)
            return
        }
        let problem = CommandError.usage(
            "\(origin) has to be a file, or a URL without user, password and fragment: write it as "
                + "https://login.example.org/jwks.json."
        )
        guard let url = URLComponents(string: value), let scheme = url.scheme?.lowercased(),
            ["http", "https"].contains(scheme), let host = url.host, !host.isEmpty, url.user == nil,
            url.password == nil, url.fragment == nil
        else { throw problem }
        guard scheme == "https" || Self.isThisMachine(host) else {
            throw .usage(
                "\(origin) is a URL without TLS, where anyone on the way could replace the keys: write https, or http with "
                    + "an address of this machine."
            )
        }
        location = .url(value)
    }

    private static func isThisMachine(_ host: String) -> Bool {
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return name.lowercased() == "localhost" || IPAddress(name)?.isLoopback == true
    }

    /// The path; `nil` for a URL.
    var path: String? { if case .file(let path) = location { path } else { nil } }
    /// The URL; `nil` for a file.
    var url: String? { if case .url(let url) = location { url } else { nil } }

    /// Reads the file.
    /// - Returns: its keys; none for a URL.
    func keys(logger: Logger) throws(CommandError) -> [JWTKey] {
        guard let path else { return [] }
        let contents = try SmallFile.contents(path)
        do throws(JSONWebKeySet.Problem) {
            let set = try JSONWebKeySet(parsing: contents)
            for warning in set.warnings {
                logger.warning("a key of tokens is not used", metadata: ["file": "\(path)", "reason": "\(warning)"])
            }
            return set.keys
        } catch {
            throw .usage("\(path) (\(origin)) cannot be used. \(error.message)")
        }
    }
}

extension SettingReader {
    /// The key set; its file is not read.
    func keySet() throws(CommandError) -> KeySetSource? {
        guard let entry = try entry(.jwks) else { return nil }
        return try KeySetSource(entry.value, origin: entry.origin)
    }

    /// The file of authorities for the key set's server.
    func keySetAuthority(_ source: KeySetSource?) throws(CommandError) -> String? {
        guard let path = try text(.jwksCA) else { return nil }
        guard source?.url?.lowercased().hasPrefix("https:") == true else {
            throw .usage("--jwks-ca needs --jwks with a URL of https.")
        }
        return path
    }
}
