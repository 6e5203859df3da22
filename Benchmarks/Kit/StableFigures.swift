/// Figures that other load on the machine does not change: bytes, datagrams, round trips, and delays in virtual time.
package enum StableFigures {
    package static func all() throws -> [Figure] {
        try DataFigures.stable() + TURNFigures.stable() + HopFigures.stable()
    }
}
