/// A test needs IPv6, and this machine cannot bind an IPv6 address of its own.
public struct MissingIPv6: Error, CustomStringConvertible {
    public let description =
        "This test needs IPv6, and no socket could be bound to ::1. Enable IPv6: "
        + "sysctl -w net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.lo.disable_ipv6=0"

    public init() {}
}
