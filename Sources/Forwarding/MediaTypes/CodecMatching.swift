import Wire

/// An H.264 profile of a `profile-level-id` (RFC 6184 §8.1), in the classes that libwebrtc compares.
package enum H264Profile: Hashable, Sendable {
    case constrainedBaseline, baseline, main, constrainedHigh, high, predictiveHigh444

    /// From six hexadecimal digits; `nil` for malformed digits and unknown profiles. Without the parameter the profile
    /// is constrained baseline, as in libwebrtc.
    package init?(profileLevelID: String?) {
        guard let profileLevelID else {
            self = .constrainedBaseline
            return
        }
        guard profileLevelID.utf8.count == 6, profileLevelID.utf8.allSatisfy({ $0 != 0x2B && $0 != 0x2D }),
            let value = UInt32(profileLevelID, radix: 16)
        else { return nil }
        let profileIDC = UInt8(truncatingIfNeeded: value >> 16)
        let constraints = UInt8(truncatingIfNeeded: value >> 8)
        guard let row = Self.table.first(where: { $0.idc == profileIDC && constraints & $0.mask == $0.bits }) else {
            return nil
        }
        self = row.profile
    }

    /// RFC 6184 §8.1 table 5: a profile has several spellings.
    private static let table: [(idc: UInt8, mask: UInt8, bits: UInt8, profile: Self)] = [
        (0x42, 0b0100_1111, 0b0100_0000, .constrainedBaseline),
        (0x4D, 0b1000_1111, 0b1000_0000, .constrainedBaseline),
        (0x58, 0b1100_1111, 0b1100_0000, .constrainedBaseline),
        (0x42, 0b0100_1111, 0b0000_0000, .baseline),
        (0x58, 0b1100_1111, 0b1000_0000, .baseline),
        (0x4D, 0b1010_1111, 0b0000_0000, .main),
        (0x64, 0b1111_1111, 0b0000_0000, .high),
        (0x64, 0b1111_1111, 0b0000_1100, .constrainedHigh),
        (0xF4, 0b1111_1111, 0b0000_0000, .predictiveHigh444),
    ]

    /// Whether a decoder of profile `decoder` can decode this profile.
    ///
    /// Deviation: baseline counts as constrained baseline. No WebRTC encoder uses the tools that differ (flexible
    /// macroblock order, arbitrary slice order, redundant slices), and Chromium publishes as `42001f` what Safari and
    /// Firefox list as `42e01f` only.
    func isDecodable(by decoder: Self) -> Bool {
        switch self {
        case .constrainedBaseline, .baseline: true
        case .main: decoder == .main || decoder == .high || decoder == .predictiveHigh444
        case .constrainedHigh: decoder == .constrainedHigh || decoder == .high || decoder == .predictiveHigh444
        case .high: decoder == .high || decoder == .predictiveHigh444
        case .predictiveHigh444: decoder == .predictiveHigh444
        }
    }
}

/// Whether two payload formats are equal by the rules of their media types: same codec, clock rate and channels, and
/// for video the same profile. Levels are not compared, as in libwebrtc.
///
/// H.264 compares profile and packetization mode (RFC 6184 §8.2.2), VP9 `profile-id` (RFC 9628 §6.1), AV1 `profile` and
/// `tier`, H.265 `profile-id`, `tier-flag` and transmission mode (RFC 7798 §7.1).
public func matches(_ left: CodecParameters, _ right: CodecParameters) -> Bool {
    guard left.name == right.name, left.clockRate == right.clockRate, left.channels == right.channels else {
        return false
    }
    let agree = { (key: String, standard: String) in
        (left.formatValue(key) ?? standard).lowercased() == (right.formatValue(key) ?? standard).lowercased()
    }
    switch left.name {
    case .opus, .red, .vp8: return true
    case .vp9: return agree("profile-id", "0")
    case .av1: return agree("profile", "0") && agree("tier", "0")
    case .h264:
        guard let mine = H264Profile(profileLevelID: left.formatValue("profile-level-id")),
            let other = H264Profile(profileLevelID: right.formatValue("profile-level-id"))
        else { return false }
        return mine == other && agree("packetization-mode", "0")
    case .h265: return agree("profile-id", "1") && agree("tier-flag", "0") && agree("tx-mode", "srst")
    }
}

/// The format of a slot that can carry a source's format; `nil` without one.
///
/// An equal format, otherwise one whose decoder can decode the source's profile: High includes Constrained Baseline,
/// packetization mode 1 includes mode 0, Main 10 includes Main, the high tier includes the main tier.
public func payloadFormat(for source: CodecParameters, in slot: SendTrackParameters) -> CodecParameters? {
    slot.codecs.first { matches(source, $0) } ?? slot.codecs.first { isDecodable(source, by: $0) }
}

/// The second rule of ``payloadFormat(for:in:)``.
func isDecodable(_ source: CodecParameters, by target: CodecParameters) -> Bool {
    guard source.name == target.name, source.clockRate == target.clockRate, source.channels == target.channels else {
        return false
    }
    // A malformed value of the source exceeds every value of the target.
    let isAtMost = { (key: String, standard: Int) in
        (source.formatValue(key).map { Int($0) ?? .max } ?? standard)
            <= (target.formatValue(key).map { Int($0) ?? -1 } ?? standard)
    }
    switch source.name {
    case .opus, .red, .vp8: return true
    case .vp9: return matches(source, target)
    case .av1:
        // Main, High, Professional: each includes the ones before it (AV1 specification, annex A).
        return isAtMost("profile", 0) && isAtMost("tier", 0)
    case .h264:
        guard let profile = H264Profile(profileLevelID: source.formatValue("profile-level-id")),
            let decoder = H264Profile(profileLevelID: target.formatValue("profile-level-id"))
        else { return false }
        return profile.isDecodable(by: decoder) && isAtMost("packetization-mode", 0)
    case .h265:
        let mainInMain10 = source.formatValue("profile-id") ?? "1" == "1" && target.formatValue("profile-id") == "2"
        let isSameProfile = source.formatValue("profile-id") ?? "1" == target.formatValue("profile-id") ?? "1"
        return (mainInMain10 || isSameProfile) && isAtMost("tier-flag", 0)
    }
}
