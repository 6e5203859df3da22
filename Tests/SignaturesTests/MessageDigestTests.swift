import Testing

@testable import Signatures

@Suite struct MessageDigestTests {
    /// RFC 1321 A.5, and FIPS 180-4 examples.
    @Test(arguments: [
        (MessageDigest.md5, "", "d41d8cd98f00b204e9800998ecf8427e"), (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
        (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
    func `hashes equal the published ones`(digest: MessageDigest, message: String, expected: String) {
        #expect(digest.hexadecimal(of: Array(message.utf8)) == expected)
    }
}
