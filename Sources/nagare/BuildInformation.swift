/// The version and build of this program, for `--version` and the metric `nagare_build_info`.
enum BuildInformation {
    static let version = "0.1.0"

    /// The compiler's version, as precisely as conditional compilation tells it.
    static var compiler: String {
        #if compiler(>=6.4)
            "6.4 or later"
        #elseif compiler(>=6.3)
            "6.3"
        #else
            "6.2"
        #endif
    }

    /// `debug` or `release`.
    static var mode: String {
        #if DEBUG
            "debug"
        #else
            "release"
        #endif
    }
}
