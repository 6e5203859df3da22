/// Which simulcast layer of its source a slot plays. A source without layers plays whatever is chosen but
/// ``nothing``.
public enum LayerChoice: Hashable, Sendable, Codable {
    /// What flows with the highest bitrate.
    case richest
    /// The layer of a rank, 0 the lowest; a rank beyond the highest means that. While the layer does not flow, the
    /// nearest that does plays, lower ones first.
    case level(Int)
    /// Nothing is sent.
    case nothing
}
