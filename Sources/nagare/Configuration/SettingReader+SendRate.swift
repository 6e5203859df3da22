import MediaTypes
import ToolCommands

extension SettingReader {
    /// The bounds of a rate in kbit/s.
    private static let kbps = 5...1_000_000

    /// A default that contradicts a setting gives way to it; two settings that contradict each other are an error.
    func sendRate() throws(CommandError) -> SendRateSettings {
        var settings = SendRateSettings()
        settings.isEstimating = try boolean(.bandwidthEstimation) ?? settings.isEstimating
        settings.isProbing = try boolean(.bandwidthProbing) ?? settings.isProbing
        let minimum = try rate(.sendRateMin)
        let start = try rate(.sendRateStart)
        let maximum = try rate(.sendRateMax)
        try check(.sendRateMin, minimum, isAtMost: .sendRateMax, maximum)
        try check(.sendRateMin, minimum, isAtMost: .sendRateStart, start)
        try check(.sendRateStart, start, isAtMost: .sendRateMax, maximum)
        settings.maximum = maximum ?? max(settings.maximum, start ?? 0, minimum ?? 0)
        settings.minimum = minimum ?? min(settings.minimum, start ?? settings.maximum, settings.maximum)
        settings.start = start ?? min(max(settings.start, settings.minimum), settings.maximum)
        return settings
    }

    /// In bit/s.
    private func rate(_ setting: Setting) throws(CommandError) -> Int? {
        try integer(setting, Self.kbps).map { $0 * 1_000 }
    }

    private func check(
        _ lower: Setting,
        _ low: Int?,
        isAtMost upper: Setting,
        _ high: Int?
    ) throws(CommandError) {
        guard let low, let high, low > high else { return }
        throw .usage("\(lower.flag) \(low / 1_000) is above \(upper.flag) \(high / 1_000).")
    }
}
