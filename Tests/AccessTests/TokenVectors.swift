/// Keys of no other use, and tokens that another implementation made with them. All say the same: channel `lobby`, role
/// `sendrecv`, valid from 10⁹ to 2·10⁹ seconds after 1970.
enum TokenVectors {
    static let secret = "correct horse battery staple, twice over"
    static let es256Private = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOS0aJLeSTp7iErpc
        nsYrwwn6FRVV3vSaYzFid2PFjSqhRANCAATJNpK6NH4nodxG9TOwJhn3ymtshYUb
        TEPYbGRreiX1jfBiAnj4RyoKXMttqsCIqRbpyImU3sR90YvALZf/+QzS
        -----END PRIVATE KEY-----
        """
    static let es256SEC1 = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIDktGiS3kk6e4hK6XJ7GK8MJ+hUVVd70mmMxYndjxY0qoAoGCCqGSM49
        AwEHoUQDQgAEyTaSujR+J6HcRvUzsCYZ98prbIWFG0xD2Gxka3ol9Y3wYgJ4+Ecq
        ClzLbarAiKkW6ciJlN7EfdGLwC2X//kM0g==
        -----END EC PRIVATE KEY-----
        """
    static let es256Public = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyTaSujR+J6HcRvUzsCYZ98prbIWF
        G0xD2Gxka3ol9Y3wYgJ4+EcqClzLbarAiKkW6ciJlN7EfdGLwC2X//kM0g==
        -----END PUBLIC KEY-----
        """
    static let edDSAPrivate = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIIF6hIXagPJFLpSBmuffFzai9BiJbXQjAwVFYBRhteCs
        -----END PRIVATE KEY-----
        """
    static let edDSAPublic = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEA3HhX4RwvKJB74UDDiaSnPow7Q693Hq2Np97NIgYfcus=
        -----END PUBLIC KEY-----
        """
    static let hs256Token =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xlIjoic2VuZHJlY3Y"
        + "iLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoidXNlci03Iiwic2l"
        + "tdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nvbm5lY3Rpb25zIjo"
        + "zfQ.tTkYxg4otnSQ84YtuU_fDnHF_wy65gBUsojYw-IZbGw"
    static let es256Token =
        "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiSldUIn0.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xl"
        + "Ijoic2VuZHJlY3YiLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoi"
        + "dXNlci03Iiwic2ltdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nv"
        + "bm5lY3Rpb25zIjozfQ.Vf7-Kr9Dw14OjOLM5XQUykg4OCIm6Pijk2aGQna3KtNcwQ2b2UNhbc0pK2ZzwZdbY0RJp"
        + "-SPf9TRWICtmEVlbg"
    static let edDSAToken =
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xlIjoic2VuZHJlY3Y"
        + "iLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoidXNlci03Iiwic2l"
        + "tdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nvbm5lY3Rpb25zIjo"
        + "zfQ.15bfEcYFHCeRdtmmcz9PXUy9iFAGCUPpWBwutuPNuWs6iFKMrBP4Hf7EyUda4dyGyeeLbSHjbbkJa9wGQGjG"
        + "CA"
}
