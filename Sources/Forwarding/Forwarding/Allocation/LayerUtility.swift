import MediaTypes

/// What layers are worth to a receiver: how the allocation compares sizes, frame rates and slots.
enum LayerUtility {
    /// - Parameters:
    ///   - pixels: of the picture, none beyond those that the receiver shows.
    ///   - halvings: of the frame rate, relative to the layers' full one.
    ///   - isScreen: of a shared screen, not of a camera.
    static func value(pixels: Int, halvings: Int, isScreen: Bool) -> Double {
        let parts = isScreen ? screenParts : cameraParts
        return log2(1 + Double(pixels) / 14_400) * parts[min(max(halvings, 0), 3)]
    }

    // What is left of the utility after 0…3 halvings of the frame rate: its square root, and its fifth root for a screen. That
    // is read, so it needs its size before its frame rate.
    private static let cameraParts: [4 of Double] = [1, 0.707, 0.5, 0.354]
    private static let screenParts: [4 of Double] = [1, 0.871, 0.758, 0.66]

    /// The binary logarithm of a number above 0, exact at powers of two and linear between them.
    private static func log2(_ value: Double) -> Double { Double(value.exponent) + value.significand - 1 }

    /// How much more a slot's utility counts than that of ``SlotImportance/other``.
    static func weight(of importance: SlotImportance) -> Double {
        switch importance {
        case .other: 1
        case .speaker: 2
        case .screen: 4
        case .stage: 8
        }
    }

    /// Pixels of a 360p picture, with some room for odd sizes: the least on a stage.
    static let stagePixels = 200_000

    /// Pixels of a picture whose size is not known, by the bit rate of ordinary video.
    static func pixels(atBitrate bitsPerSecond: Int) -> Int { max(1, bitsPerSecond / 5 * 2) }
}
