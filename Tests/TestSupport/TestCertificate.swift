/// Files of a TLS server.
public enum TestCertificate {
    /// A self-signed certificate for `localhost`, and its key.
    public static let chain = """
        -----BEGIN CERTIFICATE-----
        MIIBljCCATugAwIBAgIUUasMqjrgqTqESjWG9OMITrYQiPAwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAzNDc0NFoYDzIxMjYxMDI4
        MDM0NzQ0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAQLs+WrjDBqwj6F9gHPXcWo3bnUlpCmBhwVoMUQ/DztxhBBRqMX8QZj
        xzyC4KuLXtTpNr8kcIQRLKk5bGoflvRmo2kwZzAdBgNVHQ4EFgQUNvWUAup0kYjh
        gJBCjttMhWGeV5EwHwYDVR0jBBgwFoAUNvWUAup0kYjhgJBCjttMhWGeV5EwDwYD
        VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
        SQAwRgIhALO4YRw8HqUa7kk+VWNCiUeBKdjNoTiWcVqUFL4bmTuUAiEA+KNf72Vt
        nZFm0Msvj7B4bXsg2J+l136YP/niCP92pu8=
        -----END CERTIFICATE-----
        """
    public static let key = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIBCZXIiYCmKbfnwOK59aVuMFOF+f62osaUPn+bymz3looAoGCCqGSM49
        AwEHoUQDQgAEC7Plq4wwasI+hfYBz13FqN251JaQpgYcFaDFEPw87cYQQUajF/EG
        Y8c8guCri17U6Ta/JHCEESypOWxqH5b0Zg==
        -----END EC PRIVATE KEY-----
        """
    /// The serial number of ``otherChain``.
    public static let otherSerial = "4eaf57b6c55a78bdbf7b8fc36fb9cf0dc1b46150"
    /// Another certificate for `localhost`, and its key.
    public static let otherChain = """
        -----BEGIN CERTIFICATE-----
        MIIBljCCATugAwIBAgIUTq9XtsVaeL2/e4/Db7nPDcG0YVAwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzIyMjYwM1oYDzIxMjYxMDMw
        MjIyNjAzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAR6O5MsXwgkGj1xFm+HkprWaWqCUyRClVyeAmiXn/sT96zAQqkf2Jxw
        acszH4yBFRlZPLEuVKF+ECoAUTindGMoo2kwZzAdBgNVHQ4EFgQUo3iEjYRyeWNs
        lyd8aZoNc3LJ6wkwHwYDVR0jBBgwFoAUo3iEjYRyeWNslyd8aZoNc3LJ6wkwDwYD
        VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
        SQAwRgIhAIZmuKrlRYnYzmseqHMKZ073+KKfi5ayJpdAWsvYeoavAiEAkbs2aa9j
        0IFLRpWZ8Arw+gS5IN7Ec0Z+AYE5hH7GER8=
        -----END CERTIFICATE-----
        """
    public static let otherKey = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIJIp2XwrhvxM4eLpnsnU1RaHTDlYz5qSBFEA9xZdqMh4oAoGCCqGSM49
        AwEHoUQDQgAEejuTLF8IJBo9cRZvh5Ka1mlqglMkQpVcngJol5/7E/eswEKpH9ic
        cGnLMx+MgRUZWTyxLlShfhAqAFE4p3RjKA==
        -----END EC PRIVATE KEY-----
        """
}
