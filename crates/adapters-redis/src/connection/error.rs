use thiserror::Error;

/// The endpoint is not valid. The messages follow the name of a setting, and contain no secret.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum RedisEndpointError {
    /// This part of the URL is wrong.
    #[error(
        "{0}; it must be redis://[user:password@]host[:port][/database], rediss://… for TLS, \
         redis+sentinel://[user:password@]host[:port],…/service[/database], or \
         unix:///path[?db=number&user=name&pass=password]"
    )]
    Url(&'static str),
    /// Certificates are given for a connection without TLS.
    #[error("must begin with rediss:// if certificates are given")]
    NoTls,
    /// The certificate authorities cannot be used.
    #[error("{0}")]
    Authority(&'static str),
    /// The client's certificate cannot be used.
    #[error("{0}")]
    Certificate(&'static str),
    /// The private key of the client's certificate cannot be used.
    #[error("{0}")]
    PrivateKey(&'static str),
}
