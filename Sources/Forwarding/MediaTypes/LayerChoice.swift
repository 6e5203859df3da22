/// The simulcast layer of its source that a slot plays. A source without layers plays for every choice except
/// ``nothing``.
public enum LayerChoice: Hashable, Sendable, Codable {
    /// The flowing layer with the highest bitrate.
    case richest
    /// The layer of a rank; 0 is the lowest, and a rank above the highest is the highest. While the layer does not
    /// flow, the nearest flowing one plays, lower ones first.
    case level(Int)
    /// Nothing is sent.
    case nothing
}
