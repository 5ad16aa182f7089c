use super::framing::Section;

/// Maximum length of a request target in bytes. A longer one is a 414 (RFC 9110, section 15.5.15).
pub(super) const MAX_TARGET_BYTES: usize = 8 * 1024;

/// Decides which bytes actix receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The bytes of this section of a request.
    Receiving(Section),
    /// None: the request is complete and waits for its response.
    Responding,
    /// This number of zero bytes in place of the missing bytes of a body, so that actix keeps the connection open.
    Filling { filler: u64, missing: u64 },
    /// The response came before the end of the body. actix discards the rest of a chunked body; the stream discards
    /// the rest of any other body.
    Discarding(Section),
    /// None: the head is too large.
    Refusing(HeadLimit),
    /// None: the connection has its final response. `unread`: input may follow.
    Closing { unread: bool },
}

/// The phase of a connection that has no request.
pub(super) const FIRST_PHASE: Phase = Phase::Receiving(Section::HEAD);

/// The limit that a head exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadLimit {
    Target,
    Fields,
}

impl HeadLimit {
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Target => 414,
            Self::Fields => 431,
        }
    }

    /// The response to the head, as actix writes its own.
    pub(super) const fn response(self) -> &'static [u8] {
        match self {
            Self::Target => b"HTTP/1.1 414 URI Too Long\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            Self::Fields => {
                b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            }
        }
    }
}
