/// A key of RSA of no other use.
public enum RSATestKey {
    /// Of 2,048 bits, PKCS #8.
    public static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQC1k+DEiBwfzrRK
        gJwekYgRjbgwWb71gLU/7JbkvSZ1tH48zN4OB+LvncpNUIkrkVQEV/ITZ7IaJVtI
        8zv0PlkDkSstSDDVMLaQuQ5JvoqsSG5koUJChVAGbLb0iHKe2Du429Zw6eMy4y8F
        t9dpSdK/9wifST9GM8ZsOu85gAi/PcyAldU5AzHswtAcLSQ2WcLocboTjlgeWZqA
        D4Q1q3wZ8fov6dNloYVx/+xA4UW+y3/J9q7NuLKayr7EnztIxZr03mcxzvgbtAxi
        WSpgB6AJKnj4nROXc4BfJj1Pwmn/SXCAw5FvQOAVmfB3HflED5Glp6NaXReR2q5l
        yQnGqhldAgMBAAECggEAIdUoOg5faSjPbJtam5KDzzuAEJhETcO54euQMRYyapej
        Nup4TJZ5GSsmNPI24NSPGlEVtLprU9ZWlDjoGKoeVV0Q9brACJUvSzeD+0ci2ReU
        5DCs4y6qWswaaeVbsA+7zwW9RuQ5lnOAwTjATSi5eVXK+D0Cam7+v49aoDTkTFej
        sUIPCr5sDPs3b/PWuL9YWs78V0w72FpG4PJ1QM5Qzwg+H3leJ1c2I0nDyqV5S6Xa
        ilNUiYq/8rSSWOkW04/Z0qw2HwiLJZo7r9tybJrlU153P/iJ4i6o+ZLB8KCbqkGp
        dtII0cU+GBjlL1NILBpoClArJRSjluifXLmkxahviQKBgQDmy44ZmTKDre2HGNJT
        Qsd/H8sxyTiqsE9ucMiZuL0iDzBV0WSskBnhIGWaYlEi9bCFK7pjJd7Dps6dWLsK
        DsvThukqgGGLNVIp920YT7G/I16gvhiVKdRkK/ycbWmqurUeUrNrWSTDe1xh/21M
        QdeTA7F/E60mtQYjTOUZfvL0yQKBgQDJaFO/kdfdfuZMpvA9nNtBR9QRoxnhDXRr
        YKiUPvWPn+kxcvHb+LdJ88d8VELqSh8kRTakruJQaAxFndxuOAcNRCo6hfxrPvV8
        4sL5hM++yy+9/j09RZg1qUvyWo9fuIajH5UAbvHTCs7wFprznmajHR9KS3ttUj8o
        H3JkEeqt9QKBgEXDTebK+gv3rQ7jH+BvFSKGF8Oq0Wg29yupB9n/j5wV/0RRkR7g
        SBJW2p96DJCGt57pguOpdNarO1UwlwkJQ+9inmRsfg+4RGfPFLj+jfn61QW9sGyW
        Qk8tRKR8Ji6nVUwfL4DJZ2V3iotMzFr6pBEaUrLY3cQPgBV3juDQENyRAoGAEwXl
        kxyFVQhdXDQQUOF13A6auye6lAUfT90LTyU7MFucPO1sZqhxN2ztFJMo1tQ1aMmY
        xak2+v0424JzhX2JPPmJO4nYM5D4wtjwLX0b2ht64OkYg6cFH1xkLfnbvODC5rle
        63GPKa3FqeuYqxX0/8cKY4wJlmPET1fZCBahIdkCgYAKu5soRYT+XpDTUspxA2/v
        H23qeHBIZkSou5qctm0HxAgMEl1jBUWqn7knUBEDiZ9oCoprUPElO12Gzu4Hf3fE
        SlUgJJYYMPkQX3D+DQrCXyYFqYIKQPI6ZOmIdgW34QO9GmvB4r8UyKonZV9W0Ak2
        7SNeBVUm8vWJva2JxznkTg==
        -----END PRIVATE KEY-----
        """
}
