import Access
import ArgumentParser
import ChannelTypes
import EventLoop
import Logging
import Media
import MediaTypes
import NodeLog
import Room
import SRTP
import Sora
import Testing
import Web
import Wire

@testable import Ayame
@testable import Webhooks
@testable import nagare

/// Flags, environment and file as a user writes them, merged as `nagare serve` does.
private func resolve(
    _ flags: [String] = [],
    environment: [String: String] = [:],
    file: String? = nil,
    cores: Int = 4,
    interfaces: [String] = ["10.0.0.5", "2001:db8::5"]
) throws -> NodeConfiguration {
    let command = try ServeCommand.parse(flags)
    var layers = [ConfigurationLayer.commandLine(command.flags), .environment(environment)]
    if let file { layers.append(try .file(path: "nagare.yaml", contents: Array(file.utf8))) }
    return try NodeConfiguration.resolve(
        layers,
        machine: Machine(
            cores: cores,
            addresses: interfaces.compactMap { IPAddress($0) },
            hostName: "test-machine",
            srtpBackends: [.ipsecMB, .openssl, .libsrtp2]
        ),
        unknownVariables: NodeConfiguration.unknownVariables(environment)
    )
}

private func address(_ text: String) throws -> TransportAddress { try #require(TransportAddress(text)) }

@Suite struct NodeConfigurationTests {
    /// Media on all addresses but in the last case.
    @Test(arguments: [
        (["--http", "0.0.0.0:443"], true), (["--http", "[::]:443"], true), (["--http", "192.0.2.1:443"], true),
        (["--http", "192.0.2.1:8443"], false),
        (["--http", "192.0.2.1:443", "--media", "192.0.2.2:7000"], false),
    ])
    func `HTTPS and TURN over TLS share a port that is set for both`(flags: [String], isShared: Bool) throws {
        let turn = ["--turn-tls-port", "443", "--turn-tls-name", "turn.example", "--tls-cert", "c", "--tls-key", "k"]
        let configuration = try resolve(turn + ["--loops", "3"] + flags)
        #expect(configuration.sharesHTTPSPort == isShared)
        #expect(configuration.turnTLSPorts == (isShared ? [] : [443, 444, 445]))
        #expect(configuration.turnSettings()?.reservedPorts.contains(443) == true)
    }

    @Test func `--dev needs no other setting and listens on loopback`() throws {
        let configuration = try resolve(["--dev"])
        #expect(configuration.isDevelopment)
        #expect(configuration.http == TransportAddress("127.0.0.1:8080"))
        #expect(configuration.media == [try address("127.0.0.1:7000"), try address("10.0.0.5:7000")])
        #expect(configuration.admin == TransportAddress("127.0.0.1:3000"))
        #expect(configuration.announce.isEmpty)
        #expect(configuration.loops == 4)
        #expect(configuration.srtpBackend == .ipsecMB)
        #expect(configuration.usesGSO && configuration.usesGRO)
        #expect(configuration.tls == nil)
        #expect(configuration.token == nil)
        #expect(configuration.logLevel == .info)
        #expect(configuration.logFormat == .text)
        #expect(configuration.graceSeconds == 10)
        #expect(configuration.drainSeconds == 0)
        #expect(configuration.warnings.isEmpty)
    }

    @Test
    func `without --dev it listens on all addresses, announces interfaces and warns about missing authentication`()
        throws
    {
        let configuration = try resolve()
        #expect(configuration.http == TransportAddress("0.0.0.0:8080"))
        #expect(configuration.media == [try address("0.0.0.0:7000")])
        #expect(configuration.admin == TransportAddress("127.0.0.1:3000"))
        #expect(configuration.announce.map(\.description) == ["10.0.0.5"])
        #expect(configuration.warnings.count == 3)
        #expect(configuration.warnings.contains { $0.hasPrefix("Anyone who reaches 0.0.0.0:8080 can publish") })
    }

    @Test func `an open node on loopback warns, too, because a proxy may be in front of it`() throws {
        let open = try resolve(["--http", "127.0.0.1:8080"])
        #expect(
            open.warnings.contains { $0.hasPrefix("Anyone who reaches 127.0.0.1:8080 through a proxy can publish") }
        )
        let closed = try resolve(["--http", "127.0.0.1:8080", "--token", "0123456789abcdef"])
        #expect(!closed.warnings.contains { $0.contains("can publish") })
    }

    struct Source: Sendable, CustomTestStringConvertible {
        let flags: [String]
        let environment: [String: String]
        let file: String?
        let loops: Int
        let testDescription: String
    }

    @Test(arguments: [
        Source(flags: [], environment: [:], file: nil, loops: 4, testDescription: "default"),
        Source(flags: [], environment: [:], file: "loops: 1", loops: 1, testDescription: "file over default"),
        Source(
            flags: [],
            environment: ["NAGARE_LOOPS": "2"],
            file: "loops: 1",
            loops: 2,
            testDescription: "environment over file"
        ),
        Source(
            flags: ["--loops", "3"],
            environment: ["NAGARE_LOOPS": "2"],
            file: "loops: 1",
            loops: 3,
            testDescription: "command line over environment"
        ),
        Source(
            flags: ["--loops", "3"],
            environment: [:],
            file: "loops: 1",
            loops: 3,
            testDescription: "command line over file"
        ),
        Source(
            flags: [],
            environment: ["NAGARE_LOOPS": ""],
            file: "loops: 1",
            loops: 1,
            testDescription: "an empty variable is not set"
        ),
    ])
    func `the command line overrides the environment, and the environment overrides the file`(source: Source) throws {
        let configuration = try resolve(["--dev"] + source.flags, environment: source.environment, file: source.file)
        #expect(configuration.loops == source.loops)
    }

    @Test func `a list replaces the list of a source with lower precedence`() throws {
        let configuration = try resolve(
            ["--media", "127.0.0.1:7000"],
            environment: ["NAGARE_MEDIA": "127.0.0.1:7100,[::1]:7100", "NAGARE_HTTP": "127.0.0.1:1"]
        )
        #expect(configuration.media == [try address("127.0.0.1:7000")])
    }

    static let webhooks = {
        var webhooks = WebhookSettings()
        webhooks.eventURL = "https://hooks.example/events"
        webhooks.sessionURL = "http://127.0.0.1:9000/sessions?a=b"
        webhooks.ayameAuthenticationURL = "https://hooks.example/ayame/auth"
        webhooks.ayameDisconnectURL = "https://hooks.example/ayame/disconnect"
        webhooks.relayMedia = .server
        webhooks.timeoutSeconds = 7
        webhooks.user = "node"
        webhooks.password = Token(secret: "pass:word")
        webhooks.certificateAuthorityPath = "/etc/ca.pem"
        return webhooks
    }()

    static let proxies = ProxyConfiguration(
        trusted: [AddressRange("127.0.0.1")!, AddressRange("10.0.0.0/8")!],
        header: .proxyProtocol
    )

    static let limits = {
        var limits = NodeLimits()
        limits.rooms.channelsMax = 5
        limits.http.requestsPerSecond = 7
        return limits
    }()

    static let sora = {
        var sora = SoraSettings()
        sora.turnURLs = ["turn:203.0.113.5:3478?transport=udp", "turns:turn.example:443?transport=tcp"]
        sora.turnUsername = "u"
        sora.turnCredential = Token(secret: "p")
        sora.videoCodec = .vp8
        sora.spotlightNumber = 3
        sora.spotlightFocusRID = .r2
        sora.spotlightUnfocusRID = .none
        sora.offersDataChannels = false
        sora.acceptsBundleID = false
        sora.pingSeconds = 9
        sora.nodeName = "n1"
        sora.label = "Studio"
        return sora
    }()

    static let sendRate: SendRateSettings = {
        var settings = SendRateSettings()
        settings.minimum = 50_000
        settings.start = 900_000
        settings.maximum = 4_000_000
        settings.isEstimating = false
        settings.isProbing = false
        return settings
    }()

    static let everything = NodeConfiguration(
        isDevelopment: false,
        http: TransportAddress(ip: .anyV6, port: 443),
        media: [TransportAddress(ip: .anyV4, port: 7000), TransportAddress(ip: .loopbackV6, port: 9000)],
        announce: [IPAddress(v4: 0xCB00_7107), .loopbackV6],
        admin: TransportAddress(ip: .loopbackV4, port: 3001),
        loops: 2,
        controlLoops: 3,
        srtpBackend: .openssl,
        usesGSO: false,
        usesGRO: false,
        sendRate: sendRate,
        pausesUnusedLayers: false,
        usesICETCP: false,
        turn: .on,
        turnTLS: TURNTLSListener(port: 5349, name: "turn.example"),
        tls: TLSFiles(certificatePath: "/etc/c.pem", keyPath: "/etc/k.pem"),
        proxies: proxies,
        token: try? CheckedSecretSource("s3cret=", origin: "--token"),
        jwtKeys: [],
        webhooks: webhooks,
        adminOrigins: ["https://ops.example"],
        adminHostNames: ["ops.example"],
        metricsChannels: 12,
        sora: sora,
        limits: limits,
        logLevel: .debug,
        logFormat: .json,
        graceSeconds: 3,
        drainSeconds: 60,
        warnings: []
    )

    @Test func `a default rate gives way to the rates that are set`() throws {
        let rates = { (flags: [String]) in
            let settings = try resolve(["--dev"] + flags).sendRate
            return [settings.minimum, settings.start, settings.maximum].map { $0 / 1_000 }
        }
        #expect(try rates([]) == [30, 600, 20_000])
        #expect(try rates(["--send-rate-max", "400"]) == [30, 400, 400])
        #expect(try rates(["--send-rate-max", "20"]) == [20, 20, 20])
        #expect(try rates(["--send-rate-min", "800"]) == [800, 800, 20_000])
        #expect(try rates(["--send-rate-min", "30000"]) == [30_000, 30_000, 30_000])
        #expect(try rates(["--send-rate-start", "25000"]) == [30, 25_000, 25_000])
        #expect(try rates(["--send-rate-start", "10"]) == [10, 10, 20_000])
    }

    @Test func `the command line, the environment and the file are equivalent`() throws {
        let flags = try resolve([
            "--no-dev", "--http", "[::]:443", "--media", "0.0.0.0:7000", "--media", "[::1]:9000",
            "--announce", "203.0.113.7", "--announce", "::1", "--admin", "localhost:3001", "--loops", "2",
            "--control-loops", "3", "--srtp-backend", "openssl", "--udp-gso", "off", "--udp-gro", "off", "--tls-cert",
            "/etc/c.pem", "--bandwidth-estimation", "off", "--bandwidth-probing", "no", "--send-rate-min", "50",
            "--send-rate-start", "900", "--send-rate-max", "4000", "--pause-unused-layers", "off",
            "--ice-tcp", "off", "--turn", "on", "--turn-tls-port", "5349",
            "--turn-tls-name", "turn.example", "--tls-key", "/etc/k.pem", "--token", "s3cret=",
            "--log-level", "DEBUG", "--log-format", "json",
            "--grace", "3", "--drain-deadline", "60",
            "--ayame-auth-webhook-url", "https://hooks.example/ayame/auth", "--ayame-disconnect-webhook-url",
            "https://hooks.example/ayame/disconnect", "--relay-media", "server",
            "--event-webhook-url", "https://hooks.example/events", "--session-webhook-url",
            "http://127.0.0.1:9000/sessions?a=b", "--webhook-timeout", "7", "--webhook-user", "node",
            "--webhook-password", "pass:word", "--webhook-ca", "/etc/ca.pem", "--admin-origin", "https://ops.example",
            "--turn-url", "turn:203.0.113.5:3478?transport=udp", "--turn-url", "turns:turn.example:443?transport=tcp",
            "--turn-username", "u", "--turn-credential", "p", "--video-codec", "vp8", "--spotlight-number", "3",
            "--spotlight-focus-rid", "r2", "--spotlight-unfocus-rid", "none", "--client-bundle-id", "off",
            "--data-channels", "off",
            "--ping-interval", "9", "--node-name", "n1", "--label", "Studio", "--limit", "channels=5", "--limit",
            "address-requests-per-second=7", "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.0.0.0/8",
            "--proxy-header", "proxy-protocol", "--admin-host-name", "ops.example",
            "--metrics-channels", "12",
        ])
        #expect(flags == Self.everything)

        let environment = try resolve(environment: [
            "NAGARE_DEV": "no", "NAGARE_HTTP": "[::]:443", "NAGARE_MEDIA": "0.0.0.0:7000, [::1]:9000",
            "NAGARE_ANNOUNCE": "203.0.113.7,::1", "NAGARE_ADMIN": "127.0.0.1:3001", "NAGARE_LOOPS": "2",
            "NAGARE_CONTROL_LOOPS": "3", "NAGARE_BANDWIDTH_ESTIMATION": "off", "NAGARE_BANDWIDTH_PROBING": "off",
            "NAGARE_SEND_RATE_MIN": "50", "NAGARE_SEND_RATE_START": "900", "NAGARE_SEND_RATE_MAX": "4000",
            "NAGARE_PAUSE_UNUSED_LAYERS": "off", "NAGARE_ICE_TCP": "off", "NAGARE_TURN": "on",
            "NAGARE_SRTP_BACKEND": "openssl", "NAGARE_UDP_GSO": "off", "NAGARE_UDP_GRO": "false",
            "NAGARE_TLS_CERT": "/etc/c.pem", "NAGARE_TLS_KEY": "/etc/k.pem", "NAGARE_TOKEN": "s3cret=",
            "NAGARE_LOG_LEVEL": "debug", "NAGARE_LOG_FORMAT": "json", "NAGARE_GRACE": "3",
            "NAGARE_DRAIN_DEADLINE": "60", "PATH": "/bin",
            "NAGARE_EVENT_WEBHOOK_URL": "https://hooks.example/events",
            "NAGARE_SESSION_WEBHOOK_URL": "http://127.0.0.1:9000/sessions?a=b", "NAGARE_WEBHOOK_TIMEOUT": "7",
            "NAGARE_AYAME_AUTH_WEBHOOK_URL": "https://hooks.example/ayame/auth",
            "NAGARE_AYAME_DISCONNECT_WEBHOOK_URL": "https://hooks.example/ayame/disconnect",
            "NAGARE_RELAY_MEDIA": "server", "NAGARE_WEBHOOK_USER": "node", "NAGARE_WEBHOOK_PASSWORD": "pass:word",
            "NAGARE_WEBHOOK_CA": "/etc/ca.pem", "NAGARE_ADMIN_ORIGIN": "https://ops.example",
            "NAGARE_TURN_URL": "turn:203.0.113.5:3478?transport=udp,turns:turn.example:443?transport=tcp",
            "NAGARE_TURN_TLS_PORT": "5349", "NAGARE_TURN_TLS_NAME": "turn.example", "NAGARE_TURN_USERNAME": "u",
            "NAGARE_TURN_CREDENTIAL": "p", "NAGARE_VIDEO_CODEC": "VP8",
            "NAGARE_SPOTLIGHT_NUMBER": "3", "NAGARE_SPOTLIGHT_FOCUS_RID": "r2",
            "NAGARE_SPOTLIGHT_UNFOCUS_RID": "none", "NAGARE_CLIENT_BUNDLE_ID": "off", "NAGARE_DATA_CHANNELS": "off",
            "NAGARE_PING_INTERVAL": "9",
            "NAGARE_NODE_NAME": "n1", "NAGARE_LABEL": "Studio",
            "NAGARE_LIMIT": "channels=5,address-requests-per-second=7",
            "NAGARE_TRUSTED_PROXY": "127.0.0.1,10.0.0.0/8", "NAGARE_PROXY_HEADER": "PROXY-protocol",
            "NAGARE_ADMIN_HOST_NAME": "ops.example", "NAGARE_METRICS_CHANNELS": "12",
        ])
        #expect(environment == Self.everything)

        let file = try resolve(
            file: """
                # A comment.
                dev: false
                http: "[::]:443"
                media:
                  - 0.0.0.0:7000
                  - "[::1]:9000"
                announce: [203.0.113.7, "::1"]
                admin: 127.0.0.1:3001
                loops: 2
                control-loops: 3
                srtp-backend: openssl
                udp-gso: off
                udp-gro: no
                bandwidth-estimation: false
                bandwidth-probing: off
                send-rate-min: 50
                send-rate-start: 900
                send-rate-max: 4000
                pause-unused-layers: off
                ice-tcp: off
                turn: on
                turn-tls-port: 5349
                turn-tls-name: turn.example
                tls-cert: /etc/c.pem
                tls-key: /etc/k.pem
                token: s3cret=
                log-level: debug
                log-format: json
                grace: 3
                drain-deadline: 60
                event-webhook-url: https://hooks.example/events
                session-webhook-url: http://127.0.0.1:9000/sessions?a=b
                ayame-auth-webhook-url: https://hooks.example/ayame/auth
                ayame-disconnect-webhook-url: https://hooks.example/ayame/disconnect
                relay-media: server
                webhook-timeout: 7
                webhook-user: node
                webhook-password: pass:word
                webhook-ca: /etc/ca.pem
                admin-origin: https://ops.example
                turn-url:
                  - turn:203.0.113.5:3478?transport=udp
                  - turns:turn.example:443?transport=tcp
                turn-username: u
                turn-credential: p
                video-codec: VP8
                spotlight-number: 3
                spotlight-focus-rid: r2
                spotlight-unfocus-rid: none
                client-bundle-id: off
                data-channels: off
                limit:
                  - channels=5
                  - address-requests-per-second=7
                trusted-proxy: [127.0.0.1, 10.0.0.0/8]
                proxy-header: proxy-protocol
                admin-host-name: ops.example
                metrics-channels: 12
                ping-interval: 9
                node-name: n1
                label: Studio
                """
        )
        #expect(file == Self.everything)
    }

    @Test func `keys and the authentication webhook can come from any source`() throws {
        let keys = ["hs256:correct horse battery staple: twice", "es256/k 1:@/etc/jwt.pem"]
        let expected = try keys.map { try JWTKeySource($0, origin: "") }
        #expect(expected.map(\.algorithm) == [.hs256, .es256] && expected.map(\.id) == [nil, "k 1"])
        #expect(
            expected.map(\.text) == [
                .written(Token(secret: "correct horse battery staple: twice")), .file("/etc/jwt.pem"),
            ]
        )
        #expect(try resolve(["--dev"] + keys.flatMap { ["--jwt-key", $0] }).jwtKeys == expected)
        let environment = ["NAGARE_JWT_KEY": keys.joined(separator: ",")]
        #expect(try resolve(["--dev"], environment: environment).jwtKeys == expected)
        let file = "jwt-key:\n" + keys.map { "  - \"\($0)\"\n" }.joined()
        #expect(try resolve(["--dev"], file: file).jwtKeys == expected)
        let url = "https://hooks.example/auth"
        for configuration in try [
            resolve(["--auth-webhook-url", url]), resolve(environment: ["NAGARE_AUTH_WEBHOOK_URL": url]),
            resolve(file: "auth-webhook-url: \(url)"),
        ] {
            #expect(configuration.webhooks.authenticationURL == url)
            #expect(!configuration.warnings.contains { $0.contains("can publish") })
        }
    }

    @Test(arguments: [
        ("/etc/jwks.json", KeySetSource.Location.file("/etc/jwks.json")), ("jwks", .file("jwks")),
        ("https://login.example/keys?a=1", .url("https://login.example/keys?a=1")),
        ("http://127.0.0.1:8000/k", .url("http://127.0.0.1:8000/k")), ("http://[::1]/k", .url("http://[::1]/k")),
        ("http://localhost/k", .url("http://localhost/k")),
    ])
    func `a key set can come from any source`(value: String, location: KeySetSource.Location) throws {
        for configuration in try [
            resolve(["--jwks", value]), resolve(environment: ["NAGARE_JWKS": value]),
            resolve(file: "jwks: \"\(value)\""),
        ] {
            #expect(configuration.keySet?.location == location && configuration.keySetAuthorityPath == nil)
            #expect(!configuration.warnings.contains { $0.contains("can publish") })
        }
        let trusted = try resolve(["--jwks", "https://login.example/keys", "--jwks-ca", "/etc/ca.pem"])
        #expect(trusted.keySetAuthorityPath == "/etc/ca.pem")
    }

    @Test func `apps and the keys of URLs can come from any source, beside keys of JWTs`() throws {
        let apps = ["live:@/etc/live.key", "a_B-1:key:with:colons"]
        let keys = ["secondary:@/etc/second", "primary:k"]
        let flags =
            apps.flatMap { ["--app", $0] } + keys.flatMap { ["--url-key", $0] }
            + [
                "--url-validity", "0", "--url-expiry", "all", "--app-disabled", "live", "--app-token", "strict",
                "--app-profile",
                "a_B-1:interactive",
            ]
            + ["--jwt-key", "hs256:@/etc/jwt.secret"]
        let environment = [
            "NAGARE_APP": apps.joined(separator: ","), "NAGARE_URL_KEY": keys.joined(separator: ","),
            "NAGARE_URL_VALIDITY": "0", "NAGARE_URL_EXPIRY": "all", "NAGARE_APP_DISABLED": "live",
            "NAGARE_APP_TOKEN": "strict",
            "NAGARE_APP_PROFILE": "a_B-1:interactive",
            "NAGARE_JWT_KEY": "hs256:@/etc/jwt.secret",
        ]
        let file = """
            app: ["live:@/etc/live.key", "a_B-1:key:with:colons"]
            app-disabled: live
            app-profile: "a_B-1:interactive"
            app-token: strict
            url-key:
              - secondary:@/etc/second
              - primary:k
            url-validity: 0
            url-expiry: all
            jwt-key: hs256:@/etc/jwt.secret
            """
        for configuration in try [
            resolve(["--dev"] + flags), resolve(["--dev"], environment: environment), resolve(["--dev"], file: file),
        ] {
            #expect(configuration.apps.map(\.appID) == ["live", "a_B-1"])
            #expect(configuration.apps.map(\.isEnabled) == [false, true])
            #expect(configuration.apps.allSatisfy { $0.mode == .strict })
            #expect(configuration.apps.map(\.profile) == [nil, .interactive])
            #expect(
                configuration.apps.map(\.secret) == [
                    .file("/etc/live.key"), .written(Token(secret: "key:with:colons")),
                ]
            )
            #expect(configuration.urlKeys.sources.map(\.slot) == [.primary, .secondary])
            #expect(
                configuration.urlKeys.sources.map(\.secret) == [.written(Token(secret: "k")), .file("/etc/second")]
            )
            #expect(configuration.urlKeys.validitySeconds == 0 && configuration.urlKeys.expiryEnds == .all)
            #expect(configuration.jwtKeys.count == 1)
            var dumped = ""
            dump(configuration, to: &dumped)
            #expect(!dumped.contains("with:colons"))
        }
        #expect(try !resolve(["--app", "a:k"]).warnings.contains { $0.contains("can publish") })
        #expect(try !resolve(["--url-key", "primary:k"]).warnings.contains { $0.contains("can publish") })
    }

    @Test func `a policy for users is warned of where nobody names users`() throws {
        for (flags, isWarned) in [
            (["--duplicate-user", "replace"], true), (["--duplicate-user", "refuse", "--token", "t"], true),
            (["--duplicate-user", "allow"], false), (["--duplicate-user", "replace", "--app", "a:k"], false),
            (["--duplicate-user", "refuse", "--url-key", "primary:k"], false),
            (["--duplicate-user", "replace", "--auth-webhook-url", "https://hooks.example.org/auth"], false),
        ] {
            let warnings = try resolve(["--dev"] + flags).warnings
            #expect(warnings.contains { $0.contains("--duplicate-user") } == isWarned, "\(flags)")
        }
    }

    @Test func `omitted settings have their defaults`() throws {
        let configuration = try resolve(["--dev"])
        #expect(configuration.sora.turnURLs.isEmpty && configuration.sora.configuration.turn == nil)
        #expect(configuration.sora.videoCodec == nil && configuration.sora.spotlightNumber == 8)
        #expect(configuration.sora.nodeName == "test-machine" && configuration.sora.acceptsBundleID)
        #expect(configuration.webhooks == WebhookSettings() && !configuration.webhooks.configuration.isUsed)
        #expect(configuration.jwtKeys.isEmpty && configuration.adminOrigins.isEmpty)
    }

    @Test(arguments: ["", "\n\n", "# nothing\n  # here\n"])
    func `an empty file is valid`(file: String) throws {
        #expect(try resolve(["--dev"], file: file) == resolve(["--dev"]))
    }

    @Test func `a list of one element can be written as a value`() throws {
        let configuration = try resolve(["--dev"], file: "media: 127.0.0.1:7100")
        #expect(configuration.media == [try address("127.0.0.1:7100")])
    }

    @Test func `subscriptions need no webhook for their secret and certificates`() throws {
        let secret = String(repeating: "s", count: 32)
        let webhooks = try resolve(["--dev", "--webhook-secret", secret, "--webhook-ca", "ca.pem"]).webhooks
        #expect(webhooks.secret != nil && webhooks.certificateAuthorityPath == "ca.pem")
    }

    @Test(arguments: [
        ["--token", "s3cret"], ["--jwt-key", "hs256:s3cret"],
        ["--event-webhook-url", "http://a/", "--webhook-user", "u", "--webhook-password", "s3cret"],
        ["--turn-url", "turn:a:1", "--turn-username", "u", "--turn-credential", "s3cret"],
        ["--event-webhook-url", "http://a/", "--webhook-secret", "s3cret-s3cret-s3cret-s3cret-s3cret"],
    ])
    func `a secret is never printed`(flags: [String]) throws {
        let configuration = try resolve(["--dev"] + flags)
        var dumped = ""
        dump(configuration, to: &dumped)
        dump(configuration.webhooks.configuration, to: &dumped)
        for text in ["\(configuration)", String(reflecting: configuration), dumped] {
            #expect(!text.contains("s3cret"))
        }
    }

    @Test func `an unknown variable is a warning`() throws {
        let configuration = try resolve(
            ["--dev"],
            environment: ["NAGARE_TOKN": "x", "NAGARE_CONFIG": "", "TOKEN": "y"]
        )
        #expect(configuration.warnings == ["NAGARE_TOKN is set, but is not a setting."])
    }

    @Test(
        arguments: [(nil, .ipsecMB), ("auto", .ipsecMB), ("libsrtp2", .libsrtp2), ("ipsec-mb", .ipsecMB)]
            as [(String?, SRTPBackend)]
    )
    func `the SRTP backend is the configured or the fastest available one`(
        name: String?,
        backend: SRTPBackend
    ) throws {
        #expect(try resolve(["--dev"] + (name.map { ["--srtp-backend", $0] } ?? [])).srtpBackend == backend)
    }

    @Test func `socket options follow the settings`() throws {
        let options = try resolve(["--dev", "--udp-gso", "off"]).socketOptions
        #expect(!options.usesGSO && options.usesGRO)
    }

    @Test func `each loop takes the next port, and port 0 stays any free port`() throws {
        let configuration = try resolve(["--media", "127.0.0.1:65533", "--media", "[::1]:0", "--loops", "3"])
        #expect(configuration.mediaAddresses(loop: 2).map(\.description) == ["127.0.0.1:65535", "[::1]:0"])
    }

    @Test(arguments: [
        (["--media", "127.0.0.1:7000"], ["127.0.0.1:7000"]),
        (["--media", "0.0.0.0:7000"], ["10.0.0.5:7000"]),
        (["--media", "[::]:7000"], ["10.0.0.5:7000", "[2001:db8::5]:7000"]),
        (["--media", "0.0.0.0:7000", "--announce", "203.0.113.7"], ["203.0.113.7:7000"]),
        (
            [
                "--media", "10.0.0.5:7000", "--media", "[2001:db8::5]:7100", "--announce", "203.0.113.7",
                "--announce", "::1",
            ],
            ["203.0.113.7:7000", "[::1]:7100"]
        ),
        (["--media", "10.0.0.5:7000", "--media", "[2001:db8::5]:7100"], ["10.0.0.5:7000", "[2001:db8::5]:7100"]),
        (
            ["--media", "127.0.0.1:7000", "--media", "[::]:7100"],
            [
                "127.0.0.1:7000", "10.0.0.5:7000", "127.0.0.1:7100", "10.0.0.5:7100", "[2001:db8::5]:7100",
            ]
        ),
    ])
    func `candidates are the announced addresses, or else the sockets' own`(flags: [String], told: [String]) throws {
        let configuration = try resolve(flags + ["--loops", "1"])
        let bound = configuration.mediaAddresses(loop: 0)
        #expect(configuration.candidates(bound: bound).map(\.description) == told)
    }

    @Test(arguments: [
        (["--dev"], "http://127.0.0.1:8080/"),
        (["--http", "0.0.0.0:8080"], "http://localhost:8080/"),
        (["--http", "[::]:8080", "--tls-cert", "c", "--tls-key", "k"], "https://localhost:8080/"),
        (["--http", "[2001:db8::5]:8080"], "http://[2001:db8::5]:8080/"),
    ])
    func `the page's URL works on this machine`(flags: [String], url: String) throws {
        #expect(try resolve(flags).pageURL(port: 8080) == url)
    }
}
