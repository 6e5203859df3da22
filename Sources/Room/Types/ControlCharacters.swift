extension Unicode.Scalar {
    /// Whether it is a control character: U+0000…U+001F or U+007F…U+009F. None may stand in a name, nor in a line of a log.
    package var isControl: Bool { value < 0x20 || (0x7F...0x9F).contains(value) }
}
