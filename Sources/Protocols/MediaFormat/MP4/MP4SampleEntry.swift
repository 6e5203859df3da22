import Base

extension BoxWriter {
    /// A sample entry of `stsd` (ISO/IEC 14496-12 §8.5.2) with the configuration's box. Codecs that
    /// ``MP4Track/isSupported(_:)`` refuses write nothing.
    mutating func sampleEntry(_ configuration: CodecConfiguration) {
        switch configuration {
        case .h264(let record): visualEntry("avc1", configuration.size) { $0.box("avcC") { $0.append(record.encoded) } }
        case .h265(let record): visualEntry("hvc1", configuration.size) { $0.box("hvcC") { $0.append(record.encoded) } }
        case .av1(let record): visualEntry("av01", configuration.size) { $0.box("av1C") { $0.append(record.encoded) } }
        case .vp9(let record):
            visualEntry("vp09", configuration.size) { $0.fullBox("vpcC", version: 1) { $0.append(record.encoded) } }
        case .opus(let record):
            // Deviation: without a roll group and an edit for the pre-skip, which browsers and FFmpeg take from dOps.
            audioEntry("Opus", channels: record.channels, rate: OpusConfiguration.sampleRate) {
                $0.box("dOps") { $0.append(record.dOps) }
            }
        case .aac(let record):
            audioEntry("mp4a", channels: record.outputChannels, rate: record.outputSampleRate) { entry in
                entry.fullBox("esds") { $0.elementaryStream(record.encoded) }
            }
        case .vp8, .plain: break
        }
    }

    /// VisualSampleEntry (ISO/IEC 14496-12 §12.1.3), at 72 pixels an inch.
    private mutating func visualEntry(_ type: FourCC, _ size: PictureSize?, _ body: (inout BoxWriter) -> Void) {
        box(type) { entry in
            entry.append(zeros: 6)
            entry.append(UInt16(1))
            entry.append(zeros: 16)
            entry.append(UInt16(clamping: size?.width ?? 0))
            entry.append(UInt16(clamping: size?.height ?? 0))
            entry.append(UInt32(72 << 16))
            entry.append(UInt32(72 << 16))
            entry.append(zeros: 4)
            entry.append(UInt16(1))
            entry.append(zeros: 32)
            entry.append(UInt16(24))
            entry.append(UInt16.max)
            body(&entry)
        }
    }

    /// AudioSampleEntry (ISO/IEC 14496-12 §12.2.3). A rate that does not fit 16 bits is 0, as the configuration tells
    /// it.
    private mutating func audioEntry(
        _ type: FourCC,
        channels: Int,
        rate: Int,
        _ body: (inout BoxWriter) -> Void
    ) {
        box(type) { entry in
            entry.append(zeros: 6)
            entry.append(UInt16(1))
            entry.append(zeros: 8)
            entry.append(UInt16(clamping: channels))
            entry.append(UInt16(16))
            entry.append(zeros: 4)
            entry.append(rate <= Int(UInt16.max) ? UInt32(rate) << 16 : 0)
            body(&entry)
        }
    }

    /// ES_Descriptor with a DecoderConfigDescriptor of MPEG-4 audio and an SLConfigDescriptor (ISO/IEC 14496-1 §7.2.6).
    private mutating func elementaryStream(_ specific: [UInt8]) {
        let decoderLength = 13 + 5 + specific.count
        descriptor(tag: 3, length: 3 + 5 + decoderLength + 5 + 1)
        append(UInt16(0))
        append(UInt8(0))
        descriptor(tag: 4, length: decoderLength)
        // objectTypeIndication: audio of ISO/IEC 14496-3; streamType 5 is audio. Buffer and bitrates are not known.
        append([0x40, 0x15])
        append(zeros: 11)
        descriptor(tag: 5, length: specific.count)
        append(specific)
        descriptor(tag: 6, length: 1)
        append(UInt8(2))
    }

    /// A tag and a size in four bytes of seven bits.
    private mutating func descriptor(tag: UInt8, length: Int) {
        append(tag)
        for shift in [21, 14, 7] { append(UInt8(truncatingIfNeeded: length >> shift) & 0x7F | 0x80) }
        append(UInt8(truncatingIfNeeded: length) & 0x7F)
    }
}
