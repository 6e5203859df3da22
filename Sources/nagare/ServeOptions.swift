import ArgumentParser

/// The flags of `nagare serve` about who may take part, and about an operator's own servers and tools.
struct AccessOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Let in only who presents a token that this key signed: hs256:@FILE, es256:@FILE or eddsa:@FILE, with a key id "
                + "as es256/ID:@FILE. May be repeated.",
            valueName: "key"
        )
    )
    var jwtKey: [String] = []

    @Option(help: ArgumentHelp("Ask this server about every newcomer.", valueName: "url"))
    var authWebhookUrl: String?

    @Option(help: ArgumentHelp("Tell this server of every connection.", valueName: "url"))
    var eventWebhookUrl: String?

    @Option(help: ArgumentHelp("Tell this server of every session.", valueName: "url"))
    var sessionWebhookUrl: String?

    @Option(help: ArgumentHelp("How long those servers may take to answer. (default: 5)", valueName: "seconds"))
    var webhookTimeout: String?

    @Option(help: ArgumentHelp("The user that those servers know the node as.", valueName: "name"))
    var webhookUser: String?

    @Option(
        help: ArgumentHelp(
            "The user's password. Other users of the machine can read it here: prefer NAGARE_WEBHOOK_PASSWORD or the file.",
            valueName: "password"
        )
    )
    var webhookPassword: String?

    @Option(
        help: ArgumentHelp(
            "Trust the certificates in this file for those servers, in place of the system's, PEM.",
            valueName: "file"
        )
    )
    var webhookCa: String?

    @Option(
        help: ArgumentHelp(
            "Let pages of this web origin use the operators' API. May be repeated. (default: none)",
            valueName: "origin"
        )
    )
    var adminOrigin: [String] = []

    @Option(
        help: ArgumentHelp(
            "A name that requests to an admin listener on loopback may have in Host, besides localhost and IP addresses. May "
                + "be repeated. (default: none)",
            valueName: "name"
        )
    )
    var adminHostName: [String] = []

    @Option(help: ArgumentHelp("What the node is called. (default: the machine's name)", valueName: "name"))
    var nodeName: String?

    @Option(help: ArgumentHelp("What webhooks are told with everything. (default: Nagare)", valueName: "text"))
    var label: String?

    var single: [(Setting, String?)] {
        [
            (.authWebhookURL, authWebhookUrl), (.eventWebhookURL, eventWebhookUrl),
            (.sessionWebhookURL, sessionWebhookUrl), (.webhookTimeout, webhookTimeout), (.webhookUser, webhookUser),
            (.webhookPassword, webhookPassword), (.webhookCA, webhookCa), (.nodeName, nodeName), (.label, label),
        ]
    }
    var lists: [(Setting, [String])] {
        [(.jwtKey, jwtKey), (.adminOrigin, adminOrigin), (.adminHostName, adminHostName)]
    }
}

/// The flags of `nagare serve` about Sora's clients.
struct SoraOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A TURN server that clients are told: turn:HOST:PORT?transport=udp. May be repeated.",
            valueName: "url"
        )
    )
    var turnUrl: [String] = []

    @Option(help: ArgumentHelp("The user of the TURN servers.", valueName: "name"))
    var turnUsername: String?

    @Option(help: ArgumentHelp("The user's password there.", valueName: "password"))
    var turnCredential: String?

    @Option(help: ArgumentHelp("What a client sends that does not choose. (default: VP9)", valueName: "codec"))
    var videoCodec: String?

    @Option(help: ArgumentHelp("How many speakers are in focus, 1 to 8. (default: 8)", valueName: "n"))
    var spotlightNumber: String?

    @Option(help: ArgumentHelp("Which layer of those is sent: none, r0, r1, r2. (default: r1)", valueName: "rid"))
    var spotlightFocusRid: String?

    @Option(help: ArgumentHelp("Which layer of all others is sent. (default: r0)", valueName: "rid"))
    var spotlightUnfocusRid: String?

    @Option(help: ArgumentHelp("Let clients choose their bundle_id. (default: on)", valueName: "on|off"))
    var clientBundleId: String?

    @Option(help: ArgumentHelp("Time between two pings. (default: 5)", valueName: "seconds"))
    var pingInterval: String?

    var single: [(Setting, String?)] {
        [
            (.turnUsername, turnUsername), (.turnCredential, turnCredential), (.videoCodec, videoCodec),
            (.spotlightNumber, spotlightNumber), (.spotlightFocusRID, spotlightFocusRid),
            (.spotlightUnfocusRID, spotlightUnfocusRid), (.clientBundleID, clientBundleId),
            (.pingInterval, pingInterval),
        ]
    }
    var lists: [(Setting, [String])] { [(.turnURL, turnUrl)] }
}
