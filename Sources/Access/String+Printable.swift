import Room

extension String {
    /// The text with U+FFFD in place of each control character (U+0000…U+001F, U+007F…U+009F): what a peer says cannot
    /// begin a line of its own in a log, nor command an operator's terminal.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        var text = UnicodeScalarView()
        for scalar in unicodeScalars { text.append(scalar.isControl ? "\u{FFFD}" : scalar) }
        return String(text)
    }
}
