import Access
import Ayame
import Foundation
import ToolCommands
import Webhooks

/// The settings of webhooks.
struct WebhookSettings: Equatable, Sendable {
    var authenticationURL: String?
    var eventURL: String?
    var sessionURL: String?
    var statisticsURL: String?
    var ayameAuthenticationURL: String?
    var ayameDisconnectURL: String?
    /// The path of the media of 1:1 calls.
    var relayMedia = CallMedia.direct
    var timeoutSeconds = 5
    var user: String?
    var password: Token?
    /// Signs the requests; `nil` for unsigned ones.
    var secret: CheckedSecretSource<WebhookSigner>?
    /// The trusted certificates in place of the system's, PEM.
    var certificateAuthorityPath: String?

    static let timeoutSecondsMax = 60

    init() {}

    init(_ reader: SettingReader) throws(CommandError) {
        authenticationURL = try reader.url(.authWebhookURL)
        eventURL = try reader.url(.eventWebhookURL)
        sessionURL = try reader.url(.sessionWebhookURL)
        statisticsURL = try reader.url(.statsWebhookURL)
        ayameAuthenticationURL = try reader.url(.ayameAuthWebhookURL)
        ayameDisconnectURL = try reader.url(.ayameDisconnectWebhookURL)
        relayMedia = try reader.relayMedia() ?? .direct
        timeoutSeconds = try reader.integer(.webhookTimeout, 1...Self.timeoutSecondsMax) ?? 5
        user = try reader.text(.webhookUser)
        password = try reader.text(.webhookPassword).map { Token(secret: $0) }
        secret = try reader.secret(.webhookSecret)
        certificateAuthorityPath = try reader.text(.webhookCA)
        guard (user == nil) == (password == nil) else {
            throw .usage("Set both --webhook-user and --webhook-password, or neither.")
        }
        if user?.contains(":") == true { throw .usage("--webhook-user must not contain a colon.") }
        let isUsed = [authenticationURL, eventURL, sessionURL, statisticsURL].contains { $0 != nil } || isUsedByAyame
        // The secret and the certificates serve subscriptions of the operators' API as well.
        guard user == nil || isUsed else {
            throw .usage(
                "--webhook-user needs the URL of a webhook: --auth-webhook-url, --event-webhook-url, "
                    + "--session-webhook-url, --stats-webhook-url, --ayame-auth-webhook-url or "
                    + "--ayame-disconnect-webhook-url."
            )
        }
    }

    /// Whether the 1:1 relay has a webhook.
    var isUsedByAyame: Bool { ayameAuthenticationURL != nil || ayameDisconnectURL != nil }

    /// The settings of the 1:1 relay as the module Signaling takes them.
    var ayame: AyameConfiguration {
        var configuration = AyameConfiguration()
        configuration.authenticationURL = ayameAuthenticationURL
        configuration.disconnectURL = ayameDisconnectURL
        configuration.media = relayMedia
        return configuration
    }

    /// The settings as the module Signaling takes them.
    var configuration: WebhookConfiguration {
        var configuration = WebhookConfiguration()
        configuration.authenticationURL = authenticationURL
        configuration.eventURL = eventURL
        configuration.sessionURL = sessionURL
        configuration.statisticsURL = statisticsURL
        configuration.timeout = .seconds(timeoutSeconds)
        if let user, let password {
            configuration.credentials = WebhookConfiguration.Credentials(user: user, password: password.secret)
        }
        return configuration
    }
}

extension SettingReader {
    /// An HTTP or HTTPS URL without user and password.
    func url(_ setting: Setting) throws(CommandError) -> String? {
        guard let entry = try entry(setting) else { return nil }
        guard let url = URLComponents(string: entry.value), ["http", "https"].contains(url.scheme?.lowercased()),
            url.host?.isEmpty == false, url.fragment == nil
        else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write an address as https://example.org/path.")
        }
        guard url.user == nil, url.password == nil else {
            throw .usage("\(entry.origin) names a user: use --webhook-user and --webhook-password for that.")
        }
        return entry.value
    }

    fileprivate func relayMedia() throws(CommandError) -> CallMedia? {
        guard let entry = try entry(.relayMedia) else { return nil }
        guard let media = CallMedia(rawValue: entry.value) else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write direct or server.")
        }
        return media
    }

    /// The names that the admin listener accepts in `Host`.
    func hostNames() throws(CommandError) -> [String] {
        guard let entry = try entry(.adminHostName) else { return [] }
        guard entry.values.count <= NodeConfiguration.addressesMax else {
            throw .usage("\(entry.origin) has more than \(NodeConfiguration.addressesMax) names.")
        }
        for value in entry.values {
            let isName =
                value.utf8.count <= 253
                && value.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
            guard isName else {
                throw .usage("\(entry.origin) is \"\(value)\": write a host name without a port, as ops.example.org.")
            }
        }
        return entry.values
    }

    /// The web origins of pages that may use the admin API.
    func origins() throws(CommandError) -> [String] {
        guard let entry = try entry(.adminOrigin) else { return [] }
        guard entry.values.count <= NodeConfiguration.addressesMax else {
            throw .usage("\(entry.origin) has more than \(NodeConfiguration.addressesMax) origins.")
        }
        for value in entry.values where value != "*" {
            guard let url = URLComponents(string: value), ["http", "https"].contains(url.scheme),
                url.host?.isEmpty == false, url.path.isEmpty, url.query == nil, url.fragment == nil, url.user == nil
            else {
                throw .usage("\(entry.origin) is \"\(value)\": write an origin as https://ops.example.org, or *.")
            }
        }
        return entry.values
    }
}
