import ChannelTypes

extension String {
    /// The text with U+FFFD in place of each control character (U+0000…U+001F, U+007F…U+009F). Untrusted text can then
    /// neither start a new log line nor control an operator's terminal.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        var text = UnicodeScalarView()
        for scalar in unicodeScalars { text.append(scalar.isControl ? "\u{FFFD}" : scalar) }
        return String(text)
    }
}
