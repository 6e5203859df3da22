/// Big-endian loads with bounds checks. An offset outside the span traps, so a parser checks lengths first.
extension RawSpan {
    @inline(__always)
    public func byte(at offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
    @inline(__always)
    public func bigEndianUInt16(at offset: Int) -> UInt16 {
        unsafe UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }
    /// Three bytes in the low 24 bits.
    @inline(__always)
    public func bigEndianUInt24(at offset: Int) -> UInt32 {
        UInt32(byte(at: offset)) << 16 | UInt32(bigEndianUInt16(at: offset + 1))
    }
    @inline(__always)
    public func bigEndianUInt32(at offset: Int) -> UInt32 {
        unsafe UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    @inline(__always)
    public func bigEndianUInt64(at offset: Int) -> UInt64 {
        unsafe UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    /// A copy of the bytes.
    public func array() -> [UInt8] {
        unsafe withUnsafeBytes { unsafe Array($0) }
    }
}

/// Big-endian stores with bounds checks.
extension MutableRawSpan {
    @inline(__always)
    @_lifetime(self: copy self)
    public mutating func store(_ value: UInt8, at offset: Int) {
        storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
    }
    @inline(__always)
    @_lifetime(self: copy self)
    public mutating func store(bigEndian value: UInt16, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt16.self)
    }
    @inline(__always)
    @_lifetime(self: copy self)
    public mutating func store(bigEndian value: UInt32, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
    }
    @inline(__always)
    @_lifetime(self: copy self)
    public mutating func store(bigEndian value: UInt64, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt64.self)
    }
    /// Copies all of `source` to `offset`.
    @inline(__always)
    @_lifetime(self: copy self)
    public mutating func store(_ source: RawSpan, at offset: Int) {
        precondition(offset >= 0 && source.byteCount <= byteCount - offset, "the copy must fit")
        unsafe withUnsafeMutableBytes { target in
            unsafe source.withUnsafeBytes { bytes in
                guard let from = bytes.baseAddress, let to = target.baseAddress else { return }
                unsafe (to + offset).copyMemory(from: from, byteCount: bytes.count)
            }
        }
    }
}

/// Big-endian appends.
extension [UInt8] {
    public mutating func append(bigEndian value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }
    public mutating func append(bigEndian value: UInt32) {
        append(bigEndian: UInt16(truncatingIfNeeded: value >> 16))
        append(bigEndian: UInt16(truncatingIfNeeded: value))
    }
    public mutating func append(bigEndian value: UInt64) {
        append(bigEndian: UInt32(truncatingIfNeeded: value >> 32))
        append(bigEndian: UInt32(truncatingIfNeeded: value))
    }
    /// Overwrites two existing bytes.
    public mutating func store(bigEndian value: UInt16, at offset: Int) {
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }
}
