/// What the server announces to its clients (Enhanced RTMP v2 "Enhancing NetConnection connect Command").
package struct RTMPSettings: Hashable, Sendable {
    /// The codecs that it takes beyond those of classic FLV. Encoders that ask refuse to send others.
    package var fourCCs: [String]
    package var capabilities: RTMPCapabilities

    package init(
        fourCCs: [String] = ["avc1", "hvc1", "av01", "vp08", "vp09", "Opus", "mp4a", ".mp3"],
        capabilities: RTMPCapabilities = .reconnect
    ) {
        self.fourCCs = fourCCs
        self.capabilities = capabilities
    }

    /// Members of the properties that answer `connect`.
    var members: [AMF0Member] {
        [
            AMF0Member("fourCcList", .strictArray(fourCCs.map { .string($0) })),
            AMF0Member("capsEx", .number(Double(capabilities.rawValue))),
        ]
    }
}
