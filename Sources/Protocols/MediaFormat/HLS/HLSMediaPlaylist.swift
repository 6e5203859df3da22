package import Base

/// A media playlist of HLS with the tags of low latency (rfc8216bis §4.4.3, §4.4.4), as a value: who makes it decides
/// what is in the window.
package struct HLSMediaPlaylist: Hashable, Sendable {
    /// EXT-X-PART: a part of a segment (rfc8216bis §4.4.4.9).
    package struct Part: Hashable, Sendable {
        /// Relative to the playlist.
        package var uri: String
        /// At most PART-TARGET.
        package var duration: Interval
        /// Whether the part begins with a key frame.
        package var isIndependent: Bool

        /// Creates a part.
        package init(uri: String, duration: Interval, isIndependent: Bool) {
            self.uri = uri
            self.duration = duration
            self.isIndependent = isIndependent
        }
    }
    /// A media segment with the tags before it (rfc8216bis §4.4.4).
    package struct Segment: Hashable, Sendable {
        /// Relative to the playlist.
        package var uri: String
        /// Rounded to seconds, at most the target duration.
        package var duration: Interval
        /// Whether encoding or timestamps change in front of the segment.
        package var isDiscontinuity: Bool
        /// The wall clock of the first sample, in milliseconds since 1970.
        package var dateMS: Int64?
        /// The initialisation segment from here on; `nil` when it is that of the segment before.
        package var map: String?
        /// The parts, which are left out of old segments.
        package var parts: [Part]

        /// Creates a segment.
        package init(
            uri: String,
            duration: Interval,
            isDiscontinuity: Bool = false,
            dateMS: Int64? = nil,
            map: String? = nil,
            parts: [Part] = []
        ) {
            self.uri = uri
            self.duration = duration
            self.isDiscontinuity = isDiscontinuity
            self.dateMS = dateMS
            self.map = map
            self.parts = parts
        }
    }
    /// The segment that is being made: its parts so far, and the tags before them.
    package struct Pending: Hashable, Sendable {
        /// In order; at most as many as a segment has.
        package var parts: [Part]
        /// As of a segment: in front of the first part.
        package var isDiscontinuity: Bool
        /// As of a segment: of the first part.
        package var dateMS: Int64?
        /// As of a segment: for the parts.
        package var map: String?

        /// Creates the start of a segment.
        package init(parts: [Part], isDiscontinuity: Bool = false, dateMS: Int64? = nil, map: String? = nil) {
            self.parts = parts
            self.isDiscontinuity = isDiscontinuity
            self.dateMS = dateMS
            self.map = map
        }
    }
    /// EXT-X-SERVER-CONTROL (rfc8216bis §4.4.3.8).
    package struct ServerControl: Hashable, Sendable {
        /// Whether a request can wait for a part (rfc8216bis §6.2.5.2).
        package var canBlockReload: Bool
        /// The age from which segments are left out of a delta update, at least six target durations; `nil` without
        /// updates.
        package var canSkipUntil: Interval?
        /// The distance of players from the end with parts, at least twice the part target, better three times.
        package var partHoldBack: Interval?
        /// The distance of players from the end without parts, at least three target durations.
        package var holdBack: Interval?

        /// Creates the attributes.
        package init(
            canBlockReload: Bool = true,
            canSkipUntil: Interval? = nil,
            partHoldBack: Interval? = nil,
            holdBack: Interval? = nil
        ) {
            self.canBlockReload = canBlockReload
            self.canSkipUntil = canSkipUntil
            self.partHoldBack = partHoldBack
            self.holdBack = holdBack
        }
    }
    /// EXT-X-RENDITION-REPORT: how far another playlist of the presentation is (rfc8216bis §4.4.5.4).
    package struct RenditionReport: Hashable, Sendable {
        /// Relative to this playlist.
        package var uri: String
        /// LAST-MSN: the media sequence number of the last segment or of the one that is being made.
        package var lastSequence: Int
        /// The index of the last part; `nil` without parts.
        package var lastPart: Int?

        /// Creates a report.
        package init(uri: String, lastSequence: Int, lastPart: Int?) {
            self.uri = uri
            self.lastSequence = lastSequence
            self.lastPart = lastPart
        }
    }

    /// EXT-X-TARGETDURATION in seconds: no segment's rounded duration is longer. It never changes.
    package var targetSeconds: Int
    /// PART-TARGET: no part is longer; `nil` without low latency.
    package var partTarget: Interval?
    /// EXT-X-MEDIA-SEQUENCE: the number of the first segment of the window.
    package var mediaSequence: Int
    /// EXT-X-DISCONTINUITY-SEQUENCE: the discontinuities that left the window.
    package var discontinuitySequence: Int
    /// The attributes of EXT-X-SERVER-CONTROL; `nil` without the tag.
    package var control: ServerControl?
    /// The segments of the window, the oldest first. That one has its ``Segment/map``, also when it is that of a segment that left
    /// the window: players that begin here need it.
    package var segments: [Segment]
    /// The segment that is being made; `nil` when it has no part yet.
    package var pending: Pending?
    /// EXT-X-PRELOAD-HINT: the next part; `nil` without low latency.
    package var preloadHint: String?
    /// The other playlists of the presentation.
    package var reports: [RenditionReport]
    /// EXT-X-ENDLIST: nothing follows.
    package var isEnded: Bool

    /// Creates a playlist.
    package init(
        targetSeconds: Int,
        partTarget: Interval? = nil,
        mediaSequence: Int = 0,
        discontinuitySequence: Int = 0,
        control: ServerControl? = nil,
        segments: [Segment] = [],
        pending: Pending? = nil,
        preloadHint: String? = nil,
        reports: [RenditionReport] = [],
        isEnded: Bool = false
    ) {
        self.targetSeconds = targetSeconds
        self.partTarget = partTarget
        self.mediaSequence = mediaSequence
        self.discontinuitySequence = discontinuitySequence
        self.control = control
        self.segments = segments
        self.pending = pending
        self.preloadHint = preloadHint
        self.reports = reports
        self.isEnded = isEnded
    }

    /// The segments at the start that a delta update leaves out: those that end farther from the end of the playlist
    /// than CAN-SKIP-UNTIL (rfc8216bis §6.2.5.1). An ended playlist has no updates.
    package var skippableCount: Int {
        guard let boundary = control?.canSkipUntil, !isEnded else { return 0 }
        var behind = (pending?.parts ?? []).reduce(Interval.zero) { $0 + $1.duration }
        var kept = 0
        for segment in segments.reversed() {
            if behind > boundary { break }
            behind = behind + segment.duration
            kept += 1
        }
        return segments.count - kept
    }

    /// The playlist's text.
    /// - Parameter isDelta: whether old segments are replaced by EXT-X-SKIP, where some can be.
    package func text(isDelta: Bool = false) -> String {
        let skipped = isDelta ? skippableCount : 0
        var text = "#EXTM3U\n#EXT-X-VERSION:\(skipped > 0 ? 9 : 6)\n#EXT-X-TARGETDURATION:\(targetSeconds)\n"
        if let control { text += Self.line(control) }
        if let partTarget { text += "#EXT-X-PART-INF:PART-TARGET=\(HLSText.seconds(partTarget))\n" }
        text += "#EXT-X-MEDIA-SEQUENCE:\(mediaSequence)\n"
        if discontinuitySequence > 0 { text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuitySequence)\n" }
        text += "#EXT-X-INDEPENDENT-SEGMENTS\n"
        if skipped > 0 { text += "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n" }
        for segment in segments.dropFirst(skipped) { text += Self.lines(segment) }
        if let pending, !isEnded {
            text += Self.head(pending.isDiscontinuity, pending.map, pending.dateMS)
            for part in pending.parts { text += Self.line(part) }
        }
        if let preloadHint, !isEnded {
            text += "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\(HLSText.quoted(preloadHint))\n"
        }
        for report in reports where !isEnded { text += Self.line(report) }
        if isEnded { text += "#EXT-X-ENDLIST\n" }
        return text
    }

    private static func line(_ control: ServerControl) -> String {
        var attributes: [String] = []
        if control.canBlockReload { attributes.append("CAN-BLOCK-RELOAD=YES") }
        if let value = control.canSkipUntil { attributes.append("CAN-SKIP-UNTIL=\(HLSText.seconds(value))") }
        if let value = control.holdBack { attributes.append("HOLD-BACK=\(HLSText.seconds(value))") }
        if let value = control.partHoldBack { attributes.append("PART-HOLD-BACK=\(HLSText.seconds(value))") }
        return attributes.isEmpty ? "" : "#EXT-X-SERVER-CONTROL:\(attributes.joined(separator: ","))\n"
    }

    private static func head(_ isDiscontinuity: Bool, _ map: String?, _ dateMS: Int64?) -> String {
        var text = isDiscontinuity ? "#EXT-X-DISCONTINUITY\n" : ""
        if let map { text += "#EXT-X-MAP:URI=\(HLSText.quoted(map))\n" }
        if let dateMS {
            text +=
                "#EXT-X-PROGRAM-DATE-TIME:\(Timestamp.text(unixMilliseconds: min(max(dateMS, 0), 253_402_300_799_999)))\n"
        }
        return text
    }

    private static func lines(_ segment: Segment) -> String {
        var text = head(segment.isDiscontinuity, segment.map, segment.dateMS)
        for part in segment.parts { text += line(part) }
        return text + "#EXTINF:\(HLSText.seconds(segment.duration)),\n\(HLSText.uri(segment.uri))\n"
    }

    private static func line(_ part: Part) -> String {
        let independent = part.isIndependent ? ",INDEPENDENT=YES" : ""
        return "#EXT-X-PART:DURATION=\(HLSText.seconds(part.duration)),URI=\(HLSText.quoted(part.uri))\(independent)\n"
    }

    private static func line(_ report: RenditionReport) -> String {
        let part = report.lastPart.map { ",LAST-PART=\($0)" } ?? ""
        return "#EXT-X-RENDITION-REPORT:URI=\(HLSText.quoted(report.uri)),LAST-MSN=\(report.lastSequence)\(part)\n"
    }
}
