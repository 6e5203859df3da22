/// A multivariant playlist of HLS (rfc8216bis §4.4.6), as a value.
package struct HLSMultivariantPlaylist: Hashable, Sendable {
    /// EXT-X-STREAM-INF: one variant (rfc8216bis §4.4.6.2).
    package struct Variant: Hashable, Sendable {
        /// The media playlist, relative to this one.
        package var uri: String
        /// The peak in bits each second.
        package var bandwidth: Int
        /// The average in bits each second.
        package var averageBandwidth: Int?
        /// The configurations of all tracks: `CODECS`, `RESOLUTION` and `FRAME-RATE` come from them.
        package var configurations: [CodecConfiguration]
        /// The group of audio renditions; `nil` when the variant has its audio inside.
        package var audioGroup: String?

        /// Creates a variant.
        package init(
            uri: String,
            bandwidth: Int,
            averageBandwidth: Int? = nil,
            configurations: [CodecConfiguration],
            audioGroup: String? = nil
        ) {
            self.uri = uri
            self.bandwidth = bandwidth
            self.averageBandwidth = averageBandwidth
            self.configurations = configurations
            self.audioGroup = audioGroup
        }
    }
    /// EXT-X-MEDIA: an audio rendition (rfc8216bis §4.4.6.1).
    package struct AudioRendition: Hashable, Sendable {
        /// GROUP-ID, which variants refer to.
        package var group: String
        /// NAME, which players show.
        package var name: String
        /// The media playlist, relative to this one.
        package var uri: String
        /// CHANNELS: the audio channels.
        package var channels: Int
        /// Whether players choose it unasked.
        package var isDefault: Bool

        /// Creates a rendition.
        package init(group: String, name: String, uri: String, channels: Int, isDefault: Bool) {
            self.group = group
            self.name = name
            self.uri = uri
            self.channels = channels
            self.isDefault = isDefault
        }
    }

    /// The audio renditions; empty when variants have their audio inside.
    package var audio: [AudioRendition]
    /// The variants, the one to start with first.
    package var variants: [Variant]

    /// Creates a playlist.
    package init(variants: [Variant], audio: [AudioRendition] = []) {
        self.variants = variants
        self.audio = audio
    }

    /// The playlist's text.
    package var text: String {
        var text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n"
        for rendition in audio {
            text += "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\(HLSText.name(rendition.group))"
            text += ",NAME=\(HLSText.name(rendition.name)),CHANNELS=\"\(rendition.channels)\""
            text +=
                ",DEFAULT=\(rendition.isDefault ? "YES" : "NO"),AUTOSELECT=YES,URI=\(HLSText.quoted(rendition.uri))\n"
        }
        for variant in variants {
            text +=
                "#EXT-X-STREAM-INF:\(Self.attributes(variant).joined(separator: ","))\n\(HLSText.uri(variant.uri))\n"
        }
        return text
    }

    private static func attributes(_ variant: Variant) -> [String] {
        var attributes = ["BANDWIDTH=\(max(variant.bandwidth, 1))"]
        if let average = variant.averageBandwidth { attributes.append("AVERAGE-BANDWIDTH=\(average)") }
        let codecs = variant.configurations.compactMap(\.codecs)
        if !codecs.isEmpty { attributes.append("CODECS=\"\(codecs.joined(separator: ","))\"") }
        if let size = variant.configurations.lazy.compactMap(\.size).first {
            attributes.append("RESOLUTION=\(size.width)x\(size.height)")
        }
        if let rate = variant.configurations.lazy.compactMap(\.frameRate).first {
            let thousandths = Int((rate * 1_000).rounded())
            attributes.append("FRAME-RATE=\(thousandths / 1_000).\(String(1_000 + thousandths % 1_000).dropFirst())")
        }
        if let group = variant.audioGroup { attributes.append("AUDIO=\(HLSText.name(group))") }
        return attributes
    }
}
