import Access
import ChannelTypes
import ToolCommands

/// Where an app's key comes from.
struct AppKeySource: Equatable, Sendable {
    let appID: String
    let secret: SecretSource
    /// Where it was set, for error messages.
    let origin: String
    var isEnabled = true
    var mode = AppTokenMode.lenient
    /// What all channels of the app are; `nil` for what their members say.
    var profile: ChannelProfile?

    /// The maximum number of apps.
    static let appsMax = 1_000

    static func == (left: Self, right: Self) -> Bool {
        (left.appID, left.secret, left.isEnabled, left.mode, left.profile)
            == (right.appID, right.secret, right.isEnabled, right.mode, right.profile)
    }

    /// `ID:@FILE` or `ID:KEY`.
    init(_ value: String, origin: String) throws(CommandError) {
        let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, AppToken.isIdentifier(String(parts[0])), let secret = SecretSource(parts[1]) else {
            throw .usage(
                "\(origin) has to be an app ID, a colon and @ and the file of the app's key: write ID:@FILE, with an ID of "
                    + "1 to 64 characters A-Z, a-z, 0-9, _ and -."
            )
        }
        appID = String(parts[0])
        self.secret = secret
        self.origin = origin
    }

    /// Reads the file, if it is one, and makes the key.
    func key() throws(CommandError) -> AppKey {
        let (text, name) = try secret.contents(origin: origin, trimsNewline: true)
        do throws(AppKey.Problem) {
            return try AppKey(appID: appID, key: text, isEnabled: isEnabled, mode: mode, profile: profile)
        } catch {
            throw .usage(
                "\(name) is no key of app \(appID): a key has 1 to \(AppKey.keyBytesMax) printable ASCII characters without "
                    + "spaces."
            )
        }
    }
}

/// Where the keys of signed URLs come from.
struct URLKeySettings: Equatable, Sendable {
    struct Source: Equatable, Sendable {
        let slot: Slot
        let secret: SecretSource
        /// Where it was set, for error messages.
        let origin: String

        static func == (left: Self, right: Self) -> Bool { (left.slot, left.secret) == (right.slot, right.secret) }

        /// `primary:@FILE` or `primary:KEY`, and the same for `secondary`.
        init(_ value: String, origin: String) throws(CommandError) {
            let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let slot = Slot(rawValue: String(parts[0])), let secret = SecretSource(parts[1])
            else {
                throw .usage(
                    "\(origin) has to be primary or secondary, a colon and @ and the key's file: write primary:@FILE or "
                        + "secondary:@FILE."
                )
            }
            self.slot = slot
            self.secret = secret
            self.origin = origin
        }

        /// Reads the file, if it is one.
        fileprivate func key() throws(CommandError) -> String {
            let (text, name) = try secret.contents(origin: origin, trimsNewline: true)
            guard URLKeys.isKey(text), text.utf8.count >= URLKeys.nodeKeyBytesMin else {
                let lengths = "\(URLKeys.nodeKeyBytesMin) to \(URLKeys.keyBytesMax)"
                throw .usage(
                    "\(name) is no key of signed URLs: a key has \(lengths) printable ASCII characters without spaces, as "
                        + "openssl rand -hex 16 makes."
                )
            }
            return text
        }
    }
    /// Both keys are valid at the same time. `nagare token` signs with the primary one.
    enum Slot: String, Sendable {
        case primary, secondary
    }

    /// At most one of each slot, the primary one first.
    var sources: [Source] = []
    /// From a URL's timestamp to its expiry.
    var validitySeconds = URLKeys.validityDefault
    /// Whose sessions the expiry ends.
    var expiryEnds = URLExpiryScope.publishers

    /// Reads the files; `nil` without keys.
    func keys() throws(CommandError) -> URLKeys? {
        guard !sources.isEmpty else { return nil }
        var keys: [String] = []
        for source in sources { keys.append(try source.key()) }
        return URLKeys(keys, validity: validitySeconds, expiryEnds: expiryEnds)
    }
}

extension SettingReader {
    /// The configured apps; the files of their keys are not read.
    func apps() throws(CommandError) -> [AppKeySource] {
        var apps: [AppKeySource] = []
        if let entry = try entry(.app) {
            guard entry.values.count <= AppKeySource.appsMax else {
                throw .usage(
                    "\(entry.origin) has \(entry.values.count) apps: at most \(AppKeySource.appsMax) are possible."
                )
            }
            var seen: Set<String> = []
            for value in entry.values {
                let app = try AppKeySource(value, origin: entry.origin)
                guard seen.insert(app.appID).inserted else {
                    throw .usage("\(entry.origin) names the app \(app.appID) twice: an app has one key.")
                }
                apps.append(app)
            }
        }
        if let entry = try entry(.appDisabled) {
            for value in entry.values {
                guard let index = apps.firstIndex(where: { $0.appID == value }) else {
                    throw .usage("\(entry.origin) is \"\(value)\", which is no app of --app: write the ID of one.")
                }
                apps[index].isEnabled = false
            }
        }
        try readProfiles(of: &apps)
        if let mode = try appTokenMode() {
            guard !apps.isEmpty else { throw .usage("--app-token needs --app.") }
            for index in apps.indices { apps[index].mode = mode }
        }
        return apps
    }

    /// Each `ID:PROFILE`.
    private func readProfiles(of apps: inout [AppKeySource]) throws(CommandError) {
        guard let entry = try entry(.appProfile) else { return }
        for value in entry.values {
            let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let profile = ChannelProfile(rawValue: String(parts[1])) else {
                throw .usage(
                    "\(entry.origin) is \"\(value)\": write the ID of an app, a colon and communication or interactive."
                )
            }
            guard let index = apps.firstIndex(where: { $0.appID == parts[0] }) else {
                throw .usage("\(entry.origin) names \"\(parts[0])\", which is no app of --app: write the ID of one.")
            }
            apps[index].profile = profile
        }
    }

    private func appTokenMode() throws(CommandError) -> AppTokenMode? {
        guard let entry = try entry(.appToken) else { return nil }
        guard let mode = AppTokenMode(rawValue: entry.value) else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write lenient or strict.")
        }
        return mode
    }

    /// The keys of signed URLs; their files are not read.
    func urlKeys() throws(CommandError) -> URLKeySettings {
        var settings = URLKeySettings()
        if let entry = try entry(.urlKey) {
            for value in entry.values {
                let source = try URLKeySettings.Source(value, origin: entry.origin)
                guard !settings.sources.contains(where: { $0.slot == source.slot }) else {
                    throw .usage(
                        "\(entry.origin) has two \(source.slot.rawValue) keys: one of them must be the other kind."
                    )
                }
                settings.sources.append(source)
            }
            settings.sources.sort { $0.slot == .primary && $1.slot == .secondary }
        }
        if let validity = try integer(.urlValidity, URLKeys.validities) {
            guard !settings.sources.isEmpty else { throw .usage("--url-validity needs --url-key.") }
            settings.validitySeconds = validity
        }
        if let entry = try entry(.urlExpiry) {
            guard !settings.sources.isEmpty else { throw .usage("--url-expiry needs --url-key.") }
            guard let scope = URLExpiryScope(rawValue: entry.value) else {
                throw .usage("\(entry.origin) is \"\(entry.value)\": write publishers or all.")
            }
            settings.expiryEnds = scope
        }
        return settings
    }
}
