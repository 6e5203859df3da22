import ArgumentParser
import SRTP
import Testing
import ToolCommands
import Wire

@testable import nagare

/// The errors of invalid settings. Each sentence names the source and the remedy.
@Suite struct ConfigurationErrorTests {
    struct Mistake: Sendable, CustomTestStringConvertible {
        var flags: [String] = []
        var environment: [String: String] = [:]
        var file: String?
        let message: String
        var testDescription: String { message }
    }

    private static func machine(_ cores: Int, _ addresses: [IPAddress] = []) -> Machine {
        Machine(cores: cores, addresses: addresses, srtpBackends: [.openssl, .libsrtp2])
    }

    private func resolve(_ mistake: Mistake, interfaces: [IPAddress] = [IPAddress(v4: 0x0A00_0005)]) throws {
        let command = try ServeCommand.parse(mistake.flags)
        var layers = [ConfigurationLayer.commandLine(command.flags), .environment(mistake.environment)]
        if let file = mistake.file { layers.append(try .file(path: "nagare.yaml", contents: Array(file.utf8))) }
        _ = try NodeConfiguration.resolve(layers, machine: Self.machine(2, interfaces))
    }

    /// The flags begin with the name of the server.
    @Test(arguments: [
        Mistake(
            flags: ["turn.example:5349"],
            message: "--turn-tls-name is \"turn.example:5349\": write a host name, as turn.example.org."
        ),
        Mistake(
            flags: ["turn.example", "--turn", "off"],
            message: "--turn-tls-port needs --turn auto or on."
        ),
        Mistake(
            flags: ["turn.example", "--http", "0.0.0.0:5350", "--loops", "2"],
            message: "--http 0.0.0.0:5350 is a port of --turn-tls-port 5349: each of the 2 loops takes the next port."
        ),
        Mistake(
            flags: ["turn.example", "--media", "192.0.2.1:5348", "--loops", "2"],
            message:
                "--media 192.0.2.1:5348 and --turn-tls-port 5349 overlap: each of the 2 loops takes the next port."
        ),
    ])
    func `TURN over TLS needs a name, a TURN server and ports of its own`(mistake: Mistake) {
        var mistake = mistake
        mistake.flags =
            ["--turn-tls-port", "5349", "--tls-cert", "c.pem", "--tls-key", "k.pem", "--turn-tls-name"] + mistake.flags
        #expect(throws: CommandError.usage(mistake.message)) { try resolve(mistake) }
    }

    @Test(arguments: [
        Mistake(
            flags: ["--http", "8080"],
            message: "--http is \"8080\": write an IP address and a port, as 127.0.0.1:8080 or [::1]:8080."
        ),
        Mistake(
            environment: ["NAGARE_ADMIN": "example.org:80"],
            message: "NAGARE_ADMIN is \"example.org:80\": write an IP address and a port, as 127.0.0.1:8080 or "
                + "[::1]:8080."
        ),
        Mistake(
            file: "media: [127.0.0.1:7000, 127.0.0.1:70000]",
            message: "media in nagare.yaml is \"127.0.0.1:70000\": write an IP address and a port, "
                + "as 127.0.0.1:8080 or [::1]:8080."
        ),
        Mistake(
            flags: ["--loops", "0"],
            message: "--loops is \"0\": write a whole number from 1 to 256."
        ),
        Mistake(
            environment: ["NAGARE_LOOPS": "two"],
            message: "NAGARE_LOOPS is \"two\": write a whole number from 1 to 256."
        ),
        Mistake(
            flags: ["--trusted-proxy", "10.0.0.0/33"],
            message: "--trusted-proxy is \"10.0.0.0/33\": write an IP address or a range, as 10.0.0.0/8."
        ),
        Mistake(
            flags: ["--trusted-proxy", "10.0.0.1", "--proxy-header", "forwarded"],
            message: "--proxy-header is \"forwarded\": write x-forwarded-for or proxy-protocol."
        ),
        Mistake(
            flags: ["--admin-host-name", "ops.example:3000"],
            message: "--admin-host-name is \"ops.example:3000\": write a host name without a port, as ops.example.org."
        ),
        Mistake(
            file: "proxy-header: proxy-protocol",
            message: "--proxy-header needs --trusted-proxy."
        ),
        Mistake(
            flags: ["--srtp-backend", "aes"],
            message: "--srtp-backend is \"aes\": write one of auto, libsrtp2, openssl, ipsec-mb."
        ),
        Mistake(
            environment: ["NAGARE_SRTP_BACKEND": "ipsec-mb"],
            message: "NAGARE_SRTP_BACKEND is \"ipsec-mb\", which this build or this processor does not have: write "
                + "one of auto, openssl, libsrtp2."
        ),
        Mistake(
            flags: ["--send-rate-max", "4"],
            message: "--send-rate-max is \"4\": write a whole number from 5 to 1000000."
        ),
        Mistake(
            environment: ["NAGARE_SEND_RATE_START": "1M"],
            message: "NAGARE_SEND_RATE_START is \"1M\": write a whole number from 5 to 1000000."
        ),
        Mistake(
            flags: ["--send-rate-min", "900"],
            file: "send-rate-max: 800",
            message: "--send-rate-min 900 is above --send-rate-max 800."
        ),
        Mistake(
            flags: ["--send-rate-start", "900", "--send-rate-max", "800"],
            message: "--send-rate-start 900 is above --send-rate-max 800."
        ),
        Mistake(
            flags: ["--send-rate-start", "20", "--send-rate-min", "40"],
            message: "--send-rate-min 40 is above --send-rate-start 20."
        ),
        Mistake(
            file: "bandwidth-probing: maybe",
            message: "bandwidth-probing in nagare.yaml is \"maybe\": write true or false."
        ),
        Mistake(file: "udp-gso: maybe", message: "udp-gso in nagare.yaml is \"maybe\": write true or false."),
        Mistake(file: "grace: -1", message: "grace in nagare.yaml is \"-1\": write a whole number from 1 to 3600."),
        Mistake(file: "dev: maybe", message: "dev in nagare.yaml is \"maybe\": write true or false."),
        Mistake(
            flags: ["--log-level", "loud"],
            message: "--log-level is \"loud\": write one of trace, debug, info, notice, warning, error, critical."
        ),
        Mistake(file: "log-format: xml", message: "log-format in nagare.yaml is \"xml\": write text or json."),
        Mistake(
            flags: ["--announce", "example.org"],
            message: "--announce is \"example.org\": write an IP address without a port, as 203.0.113.7."
        ),
        Mistake(
            flags: ["--announce", "0.0.0.0"],
            message: "--announce is 0.0.0.0, which no client can reach: write the address that clients connect to."
        ),
        Mistake(
            flags: ["--announce", "::1"],
            message: "--announce ::1 is an IPv6 address, but no --media address is."
        ),
        Mistake(
            flags: ["--media", "0.0.0.0:7000", "--media", "[2001:db8::5]:7000", "--announce", "203.0.113.7"],
            message: "--media [2001:db8::5]:7000 is announced by no --announce address of its family."
        ),
        Mistake(
            flags: ["--announce", "1.2.3.4", "--announce", "1.2.3.4"],
            message: "--announce names 1.2.3.4 twice."
        ),
        Mistake(
            flags: ["--tls-cert", "c.pem"],
            message: "--tls-cert needs --tls-key with the private key of the certificate."
        ),
        Mistake(
            file: "tls-key: k.pem",
            message: "--tls-key needs --tls-cert with the certificate of the private key."
        ),
        Mistake(
            flags: ["--dev", "--http", "0.0.0.0:8080"],
            message: "--dev listens on loopback only: leave --dev out to use --http 0.0.0.0:8080."
        ),
        Mistake(
            flags: ["--dev", "--media", "10.0.0.5:7000"],
            message: "--dev listens on loopback only: leave --dev out to use --media 10.0.0.5:7000."
        ),
        Mistake(
            flags: ["--dev", "--http", "127.0.0.1:3000"],
            message: "--http and --admin are both 127.0.0.1:3000: the admin page needs an address of its own."
        ),
        Mistake(
            flags: ["--media", "127.0.0.1:65535"],
            message: "--media 127.0.0.1:65535 leaves no room for 2 loops, which take one port each up to 65535."
        ),
        Mistake(
            flags: ["--media", "127.0.0.1:7000", "--media", "127.0.0.1:7001"],
            message: "--media 127.0.0.1:7000 and 127.0.0.1:7001 overlap: each of the 2 loops takes the next port."
        ),
        Mistake(
            environment: ["NAGARE_TOKEN": "two words"],
            message: "NAGARE_TOKEN may hold letters, digits and -._~+/= only."
        ),
        Mistake(file: "token:", message: "token in nagare.yaml is empty."),
        Mistake(flags: ["--http", ""], message: "--http is empty."),
        Mistake(file: "announce: []", message: "announce in nagare.yaml is empty."),
        Mistake(file: "http: [127.0.0.1:1]", message: "http in nagare.yaml takes one value, not a list."),
        Mistake(file: "tokn: x", message: "nagare.yaml has the unknown key \"tokn\" (do you mean \"token\"?)."),
        Mistake(
            flags: ["--http", "0.0.0.0:7001", "--media", "192.0.2.1:7000", "--loops", "2"],
            message: "--http 0.0.0.0:7001 is a port of --media 192.0.2.1:7000, where the loops listen on TCP too: "
                + "choose another port, or set --ice-tcp off."
        ),
        Mistake(
            flags: ["--turn-tls-port", "5349"],
            message: "--turn-tls-port needs --turn-tls-name with the host name that the certificate is for."
        ),
        Mistake(flags: ["--turn-tls-name", "a.example"], message: "--turn-tls-name needs --turn-tls-port."),
        Mistake(
            flags: ["--turn-tls-port", "5349", "--turn-tls-name", "turn.example"],
            message: "--turn-tls-port needs --tls-cert and --tls-key."
        ),
        Mistake(file: "turn-server: x", message: "nagare.yaml has the unknown key \"turn-server\"."),
        Mistake(
            flags: ["--auth-webhook-url", "hooks.example/auth"],
            message: "--auth-webhook-url is \"hooks.example/auth\": write an address as https://example.org/path."
        ),
        Mistake(
            environment: ["NAGARE_EVENT_WEBHOOK_URL": "http://u:s3cret@hooks.example/"],
            message: "NAGARE_EVENT_WEBHOOK_URL names a user: use --webhook-user and --webhook-password for that."
        ),
        Mistake(
            flags: ["--auth-webhook-url", "http://a/", "--webhook-user", "u"],
            message: "Set both --webhook-user and --webhook-password, or neither."
        ),
        Mistake(
            flags: ["--webhook-user", "u", "--webhook-password", "p"],
            message: "--webhook-user needs the URL of a webhook: --auth-webhook-url, --event-webhook-url, "
                + "--session-webhook-url, --stats-webhook-url, --ayame-auth-webhook-url or "
                + "--ayame-disconnect-webhook-url."
        ),
        Mistake(
            flags: ["--auth-webhook-url", "http://a/", "--token", "t"],
            message: "--token and --auth-webhook-url are set: choose one method of authentication."
        ),
        Mistake(
            flags: ["--webhook-timeout", "90"],
            message: "--webhook-timeout is \"90\": write a whole number from 1 to 60."
        ),
        Mistake(
            file: "jwt-key: s3cret",
            message: "jwt-key in nagare.yaml has to be an algorithm, a colon and the key or @ and its file: write "
                + "hs256:@FILE, rs256:@FILE, es256:@FILE or eddsa:@FILE, with a key id as es256/ID:@FILE."
        ),
        Mistake(
            flags: ["--jwt-key", "none:x"],
            message: "--jwt-key has to be an algorithm, a colon and the key or @ and its file: write "
                + "hs256:@FILE, rs256:@FILE, es256:@FILE or eddsa:@FILE, with a key id as es256/ID:@FILE."
        ),
        Mistake(
            flags: ["--admin-tls-cert", "/etc/c.pem"],
            message: "--admin-tls-cert needs --admin-tls-key with the private key of the certificate."
        ),
        Mistake(
            flags: ["--admin-tls-key", "/etc/k.pem"],
            message: "--admin-tls-key needs --admin-tls-cert with the certificate of the private key."
        ),
        Mistake(
            flags: ["--admin-read-token", "0123456789abcdef"],
            message: "--admin-read-token needs --admin-token: without it, everybody may make changes."
        ),
        Mistake(
            flags: ["--admin-token", "0123456789abcdef", "--admin-read-token", "short"],
            message: "--admin-read-token is not a valid admin token: it needs at least 16 characters, only letters, "
                + "digits and -._~+/=, as openssl rand -hex 16 makes."
        ),
        Mistake(
            flags: ["--jwks", "http://login.example.org/jwks"],
            message: "--jwks is a URL without TLS, where anyone on the way could replace the keys: write https, or "
                + "http with an address of this machine."
        ),
        Mistake(
            environment: ["NAGARE_JWKS": "https://user:secret@login.example.org/jwks"],
            message: "NAGARE_JWKS has to be a file, or a URL without user, password and fragment: write it as "
                + "https://login.example.org/jwks.json."
        ),
        Mistake(
            file: "jwks: file:///etc/jwks.json",
            message: "jwks in nagare.yaml has to be a file, or a URL without user, password and fragment: write it as "
                + "https://login.example.org/jwks.json."
        ),
        Mistake(
            flags: ["--jwks", "/etc/jwks.json", "--jwks-ca", "/etc/ca.pem"],
            message: "--jwks-ca needs --jwks with a URL of https."
        ),
        Mistake(
            flags: ["--jwks", "/etc/jwks.json", "--token", "s3cret"],
            message: "--token and --jwks are set: choose one method of authentication."
        ),
        Mistake(
            flags: ["--app", "live"],
            message: "--app has to be an app ID, a colon and @ and the file of the app's key: write ID:@FILE, with an "
                + "ID of 1 to 64 characters A-Z, a-z, 0-9, _ and -."
        ),
        Mistake(
            environment: ["NAGARE_APP": "li ve:@f"],
            message: "NAGARE_APP has to be an app ID, a colon and @ and the file of the app's key: write ID:@FILE, "
                + "with an ID of 1 to 64 characters A-Z, a-z, 0-9, _ and -."
        ),
        Mistake(
            flags: ["--app", "a:x", "--app", "a:y"],
            message: "--app names the app a twice: an app has one key."
        ),
        Mistake(
            flags: ["--app", "a:x", "--app-disabled", "b"],
            message: "--app-disabled is \"b\", which is no app of --app: write the ID of one."
        ),
        Mistake(
            flags: ["--app", "a:x", "--app-profile", "a"],
            message: "--app-profile is \"a\": write the ID of an app, a colon and communication or interactive."
        ),
        Mistake(
            flags: ["--app", "a:x", "--app-profile", "b:interactive"],
            message: "--app-profile names \"b\", which is no app of --app: write the ID of one."
        ),
        Mistake(
            flags: ["--app", "a:x", "--app-token", "safe"],
            message: "--app-token is \"safe\": write lenient or strict."
        ),
        Mistake(flags: ["--app-token", "strict"], message: "--app-token needs --app."),
        Mistake(
            file: "url-key: s3cret",
            message: "url-key in nagare.yaml has to be primary or secondary, a colon and @ and the key's file: write "
                + "primary:@FILE or secondary:@FILE."
        ),
        Mistake(
            flags: ["--url-key", "primary:"],
            message: "--url-key has to be primary or secondary, a colon and @ and the key's file: write primary:@FILE "
                + "or secondary:@FILE."
        ),
        Mistake(
            flags: ["--url-key", "primary:a", "--url-key", "primary:b"],
            message: "--url-key has two primary keys: one of them must be the other kind."
        ),
        Mistake(flags: ["--relay-media", "both"], message: "--relay-media is \"both\": write direct or server."),
        Mistake(
            flags: ["--duplicate-user", "kick"],
            message: "--duplicate-user is \"kick\": write one of allow, replace, refuse."
        ),
        Mistake(
            flags: ["--resume-grace", "301"],
            message: "--resume-grace is \"301\": write a whole number from 0 to 300."
        ),
        Mistake(
            flags: ["--channel-lifetime", "8761"],
            message: "--channel-lifetime is \"8761\": write a whole number from 0 to 8760."
        ),
        Mistake(
            flags: ["--metrics-channels", "101"],
            message: "--metrics-channels is \"101\": write a whole number from 0 to 100."
        ),
        Mistake(flags: ["--url-validity", "60"], message: "--url-validity needs --url-key."),
        Mistake(flags: ["--url-expiry", "all"], message: "--url-expiry needs --url-key."),
        Mistake(
            flags: ["--url-key", "primary:a", "--url-expiry", "viewers"],
            message: "--url-expiry is \"viewers\": write publishers or all."
        ),
        Mistake(
            flags: ["--url-key", "primary:a", "--url-validity", "1h"],
            message: "--url-validity is \"1h\": write a whole number from 0 to 315360000."
        ),
        Mistake(
            flags: ["--token", "t", "--app", "a:x", "--url-key", "primary:k"],
            message: "--token and --app and --url-key are set: choose one method of authentication."
        ),
        Mistake(
            flags: ["--turn-url", "stun:a:3478", "--turn-username", "u", "--turn-credential", "p"],
            message: "--turn-url is \"stun:a:3478\": write it as turn:203.0.113.5:3478?transport=udp."
        ),
        Mistake(
            flags: ["--turn-url", "turn:a:3478"],
            message: "--turn-url needs --turn-username and --turn-credential: some clients end without them."
        ),
        Mistake(
            flags: ["--turn-username", "u"],
            message: "--turn-username and --turn-credential need --turn-url."
        ),
        Mistake(
            flags: ["--video-codec", "theora"],
            message: "--video-codec is \"theora\": write one of VP8, VP9, AV1, H264, H265."
        ),
        Mistake(
            flags: ["--spotlight-focus-rid", "r3"],
            message: "--spotlight-focus-rid is \"r3\": write one of none, r0, r1, r2, q, h, f."
        ),
        Mistake(
            flags: ["--admin-origin", "ops.example"],
            message: "--admin-origin is \"ops.example\": write an origin as https://ops.example.org, or *."
        ),
        Mistake(
            file: "tls:\n  cert: c.pem",
            message: "nagare.yaml has the unknown key \"tls.cert\" (do you mean \"tls-cert\"?)."
        ),
    ])
    func `an invalid setting is refused with a sentence`(mistake: Mistake) throws {
        #expect(throws: CommandError.usage(mistake.message)) { try resolve(mistake) }
    }

    @Test func `a socket on all addresses of a machine without any is refused`() {
        #expect(
            throws: CommandError.usage(
                "--media 0.0.0.0:7000 needs --announce: no network interface has an address to tell clients."
            )
        ) {
            try resolve(Mistake(message: ""), interfaces: [.loopbackV6])
        }
    }

    @Test(arguments: [
        "loops: [", "\tloops: 1", "just a sentence", "- 1\n- 2", "loops: 1\nloops: 2", "media: [[1]]", "\u{0}",
    ])
    func `an invalid configuration file is refused in one line`(file: String) throws {
        let error = #expect(throws: CommandError.self) { try resolve(Mistake(file: file, message: "")) }
        let message = try #require(error?.message)
        #expect(error?.kind == .usage)
        #expect(message.hasPrefix("nagare.yaml is not a valid configuration file: "))
        #expect(message.hasSuffix(".") && !message.hasSuffix(".."))
        #expect(!message.contains("\n"))
    }

    @Test(arguments: [
        ("/nonexistent/nagare.yaml", "no such file or directory"), ("/", "is a directory"),
        ("/dev/zero", "it is larger than 1048576 bytes"),
    ])
    func `the error for an unreadable file has the reason`(path: String, reason: String) throws {
        let command = try ServeCommand.parse(["--config", path])
        #expect(throws: CommandError.system("\(path) cannot be read: \(reason).")) {
            _ = try command.source(environment: [:], machine: Self.machine(1)).read()
        }
    }

    @Test func `the environment can name the file, and the command line overrides it`() throws {
        let command = try ServeCommand.parse([])
        #expect(throws: CommandError.system("/nonexistent/a cannot be read: no such file or directory.")) {
            _ = try command.source(
                environment: ["NAGARE_CONFIG": "/nonexistent/a"],
                machine: Self.machine(1)
            ).read()
        }
        let other = try ServeCommand.parse(["--config", "/nonexistent/b"])
        #expect(throws: CommandError.system("/nonexistent/b cannot be read: no such file or directory.")) {
            _ = try other.source(
                environment: ["NAGARE_CONFIG": "/nonexistent/a"],
                machine: Self.machine(1)
            ).read()
        }
    }

    @Test(arguments: [["serve", "--htp", "x"], ["serve", "extra"], ["serv"], ["serve", "--loops"]])
    func `a wrong command line is a usage error`(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try NagareCommand.parseAsRoot(arguments) }
        if let error { #expect(NagareCommand.exitCode(for: error).rawValue == 64) }
    }
}
