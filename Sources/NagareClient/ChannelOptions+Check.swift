internal import Foundation

extension ChannelOptions {
    /// The longest name of a channel or user in bytes.
    private static let nameBytesMax = 255

    /// - Throws: what is wrong with the options.
    func checked() throws(NagareError) -> JoinParameters {
        guard (1...Self.urlsMax).contains(urls.count) else {
            throw .badParameter("“urls” must have 1 to \(Self.urlsMax) addresses.")
        }
        var addresses: [String] = []
        for url in urls { addresses.append(try Self.signalingURL(url)) }
        let credential = try token.map { token throws(NagareError) in
            try Credential(token, channel: self.channel, user: self.user)
        }
        let channel = try Self.name("channel", self.channel, of: credential?.channel)
        let user = try Self.name("user", self.user, of: credential?.user)
        if role == .host, !canPublish { throw .badParameter("A host needs “canPublish”.") }
        return JoinParameters(
            urls: addresses,
            channel: channel,
            user: user,
            accessToken: credential?.accessToken,
            displayName: displayName,
            metadata: metadata,
            profile: profile,
            role: role ?? (canPublish ? .host : .audience),
            statesRole: role != nil,
            canPublish: canPublish,
            publishes: publishes,
            subscribes: subscribes,
            source: source,
            video: video,
            joinTimeout: joinTimeout
        )
    }

    private static func name(_ what: String, _ given: String, of token: String?) throws(NagareError) -> String {
        if let token, !given.isEmpty, token != given { throw .badParameter("The token is for another \(what).") }
        let name = given.isEmpty ? token ?? "" : given
        guard !name.isEmpty else { throw .badParameter("“\(what)” is missing, and the token names none.") }
        guard name.utf8.count <= nameBytesMax else {
            throw .badParameter("“\(what)” may have at most \(nameBytesMax) bytes.")
        }
        return name
    }

    private static func signalingURL(_ url: URL) throws(NagareError) -> String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let host = parts.host, !host.isEmpty
        else {
            throw .badParameter("“\(url.absoluteString)” is not an address: write wss://HOST/signaling.")
        }
        switch parts.scheme?.lowercased() {
        case "wss", "https": parts.scheme = "wss"
        case "ws", "http": parts.scheme = "ws"
        default: throw .badParameter("“\(url.absoluteString)” must start with wss:// or https://.")
        }
        if parts.path.isEmpty || parts.path == "/" { parts.path = "/signaling" }
        guard let text = parts.string else {
            throw .badParameter("“\(url.absoluteString)” is not an address: write wss://HOST/signaling.")
        }
        return text
    }
}

/// A token as the node takes it, with the channel and the user that it names.
struct Credential: Hashable, Sendable {
    let accessToken: JSONValue
    var channel: String?
    var user: String?

    /// - Parameters:
    ///   - channel: for a token in its multi-parameter form, as is `user`.
    init(_ token: ChannelToken, channel: String, user: String) throws(NagareError) {
        switch token {
        case .token(let text):
            let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard !text.isEmpty else { throw .badParameter("The token is empty.") }
            accessToken = .string(text)
            let fields = Self.appFields(text)
            self.channel = fields?["channelid"]?.text
            self.user = fields?["userid"]?.text
        case .app(let id, let nonce, let timestamp, let token):
            guard !id.isEmpty, !token.isEmpty else {
                throw .badParameter("An app's token needs the app's ID and the token that the app's server computed.")
            }
            guard timestamp > 0 else {
                throw .badParameter("The timestamp must be the token's expiry in seconds since 1970.")
            }
            accessToken = [
                "appid": .string(id), "channelid": .string(channel), "userid": .string(user), "nonce": .string(nonce),
                "timestamp": .number(Double(timestamp)), "token": .string(token),
            ]
            self.channel = channel.isEmpty ? nil : channel
            self.user = user.isEmpty ? nil : user
        }
    }

    /// The members of an app's token in its single-parameter form, which is base64 of JSON; `nil` for another token.
    private static func appFields(_ text: String) -> JSONValue? {
        let standard = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
        guard text.utf8.count <= 8_192, let data = Data(base64Encoded: standard + padding),
            let fields = try? JSONDecoder().decode([String: JSONValue].self, from: data), fields["appid"]?.text != nil
        else { return nil }
        return .object(fields)
    }
}
