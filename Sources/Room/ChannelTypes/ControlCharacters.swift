extension Unicode.Scalar {
    /// Whether it is a control character: U+0000…U+001F or U+007F…U+009F. Names and log lines must not contain any.
    package var isControl: Bool { value < 0x20 || (0x7F...0x9F).contains(value) }
}
