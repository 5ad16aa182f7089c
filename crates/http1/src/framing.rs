//! Checks the framing of a chunked body (RFC 9112, section 7.1) over the bytes that the codec is about to decode.
//!
//! **Problem.** The codec accepts a lone LF where a trailer may begin, and reads what follows as a trailer: one request
//! hides in another. It bounds neither extensions nor trailers.
//!
//! **Invariant.** The check only refuses: the codec gets the lines and the data before the first fault, and the codec
//! alone decides where the body ends.
//!
//! **Proof.** The unit tests, and the fuzz target `chunked_framing`, which compares the check with the grammar as
//! regular expressions, and with the codec.

#[cfg(test)]
mod tests;

/// Maximum number of digits of a size, leading zeros included, so that it fits into 64 bits.
const MAX_SIZE_DIGITS: usize = 16;

/// Maximum number of bytes of the extensions and the trailers of a body, without line ends.
const MAX_EXTRA_BYTES: usize = 16 * 1024;

/// A longer line without its LF cannot be valid.
const MAX_LINE_BYTES: usize = MAX_SIZE_DIGITS + MAX_EXTRA_BYTES + 1;

/// The framing of one chunked body, of which some bytes were accepted.
#[derive(Default)]
pub(crate) struct Framing {
    next: Next,
    extra_bytes: usize,
}

/// What comes next.
#[derive(Clone, Copy, Default)]
enum Next {
    #[default]
    Size,
    /// This number of bytes, and their line end.
    Data(u64),
    Trailer,
    /// Nothing: the body has ended, or is invalid.
    Nothing,
}

impl Framing {
    /// Accepts data and complete lines up to the end of the body or the first fault, and returns the number of bytes.
    /// The rest has to be passed again, with what arrives after it.
    pub(crate) fn accept(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_over() {
            let accepted = match self.next {
                Next::Data(size @ 1..) => self.accept_data(size, rest.len()),
                _ => self.accept_line(rest),
            };
            if accepted == 0 {
                break;
            }
            rest = &rest[accepted..];
        }
        bytes.len() - rest.len()
    }

    /// Returns whether nothing more is accepted.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.next, Next::Nothing)
    }

    fn accept_data(&mut self, size: u64, available: usize) -> usize {
        let count = usize::try_from(size).map_or(available, |size| size.min(available));
        self.next = Next::Data(size - count as u64);
        count
    }

    /// Returns 0 if the line is incomplete or invalid.
    fn accept_line(&mut self, bytes: &[u8]) -> usize {
        let Some(line_feed) = bytes.iter().position(|&byte| byte == b'\n') else {
            if bytes.len() > MAX_LINE_BYTES {
                self.next = Next::Nothing;
            }
            return 0;
        };
        let Some(next) = self.after_line(&bytes[..line_feed]) else {
            self.next = Next::Nothing;
            return 0;
        };
        self.next = next;
        line_feed + 1
    }

    /// Returns what comes after a line, which has no LF. `None`: it is invalid.
    fn after_line(&mut self, line: &[u8]) -> Option<Next> {
        let line = line.strip_suffix(b"\r")?;
        if !line.iter().all(|&byte| is_text(byte)) {
            return None;
        }
        match self.next {
            Next::Size => self.after_size(line),
            Next::Data(_) if line.is_empty() => Some(Next::Size),
            Next::Trailer if line.is_empty() => Some(Next::Nothing),
            Next::Trailer => {
                after_token(line)?.strip_prefix(b":")?;
                self.count_extra(line)?;
                Some(Next::Trailer)
            }
            _ => None,
        }
    }

    fn after_size(&mut self, line: &[u8]) -> Option<Next> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
        let (size, extensions) = line.split_at(digits.count());
        if size.len() > MAX_SIZE_DIGITS {
            return None;
        }
        check_extensions(extensions)?;
        self.count_extra(extensions)?;
        let size = str::from_utf8(size).ok()?;
        match u64::from_str_radix(size, 16).ok()? {
            0 => Some(Next::Trailer),
            size => Some(Next::Data(size)),
        }
    }

    fn count_extra(&mut self, bytes: &[u8]) -> Option<()> {
        self.extra_bytes += bytes.len();
        (self.extra_bytes <= MAX_EXTRA_BYTES).then_some(())
    }
}

/// Checks `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`.
fn check_extensions(mut text: &[u8]) -> Option<()> {
    while !text.is_empty() {
        let extension = text.trim_ascii_start().strip_prefix(b";")?;
        text = after_token(extension.trim_ascii_start())?;
        if let Some(value) = text.trim_ascii_start().strip_prefix(b"=") {
            text = after_value(value.trim_ascii_start())?;
        }
    }
    Some(())
}

fn after_value(text: &[u8]) -> Option<&[u8]> {
    let Some(mut quoted) = text.strip_prefix(b"\"") else {
        return after_token(text);
    };
    loop {
        quoted = match quoted {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', _, rest @ ..] | [_, rest @ ..] => rest,
            [] => return None,
        };
    }
}

/// Returns what follows a token (RFC 9110, section 5.6.2).
fn after_token(text: &[u8]) -> Option<&[u8]> {
    let is_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let length = text.iter().take_while(is_token).count();
    (length > 0).then(|| &text[length..])
}

/// Returns whether a byte is a tab, or no control character (RFC 9110, section 5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}
