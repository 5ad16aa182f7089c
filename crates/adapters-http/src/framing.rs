//! Where the parts of a request end in the bytes of its connection (RFC 9112).
//!
//! Not a parser: actix is that, and refuses what is malformed. This only looks for the end of what actix accepts.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// A part of a request of which some is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A head: ends with its empty line.
    Head(Line),
    /// So many bytes of a body.
    Length(u64),
    /// A chunked body.
    Chunks(Chunks),
}

/// How far the search for an empty line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// Before the first line: empty lines do not count here (RFC 9112, section 2.2).
    None,
    /// Within a line.
    Within,
    /// A line has ended.
    Ended,
    /// A line has ended, and a carriage return follows.
    Returned,
}

/// How far a chunked body has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunks {
    /// In the size of a chunk, as read so far.
    Size(u64),
    /// Behind the size of a chunk, on its line.
    Extension(u64),
    /// So many bytes of a chunk are left, its line end included.
    Data(u64),
    /// Behind the last chunk.
    Trailers(Trailer),
}

/// How far the trailers of a chunked body have come. Other than in a head, only a carriage return ends their lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trailer {
    /// At the start of a line.
    Start,
    /// Within a line.
    Within,
    /// A carriage return follows a line.
    Returned,
    /// A carriage return is all there is on a line.
    Ending,
}

impl Part {
    pub(crate) const HEAD: Self = Self::Head(Line::None);
    pub(crate) const CHUNKS: Self = Self::Chunks(Chunks::Size(0));

    /// How many of these bytes belong to the part, where it ends among them. Otherwise all of them do.
    pub(crate) fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Head(line) => line.end_in(bytes),
            Self::Length(left) => skip(left, bytes),
            Self::Chunks(chunks) => chunks.end_in(bytes),
        }
    }
}

/// Counts down by these bytes; how many of them it took, where that was the end.
fn skip(left: &mut u64, bytes: &[u8]) -> Option<usize> {
    let end = usize::try_from(*left).ok().filter(|&end| end <= bytes.len());
    *left -= end.unwrap_or(bytes.len()) as u64;
    end
}

impl Line {
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes.iter();
        while let Some(byte) = rest.next() {
            *self = match (*self, byte) {
                (Self::Ended | Self::Returned, b'\n') => return Some(bytes.len() - rest.len()),
                (Self::None, b'\r' | b'\n') => Self::None,
                (Self::Ended, b'\r') => Self::Returned,
                (Self::Within, b'\n') => Self::Ended,
                _ => {
                    // Nothing within a line matters but its end.
                    rest = rest.as_slice()[memchr(b'\n', rest.as_slice()).unwrap_or(rest.len())..].iter();
                    Self::Within
                }
            };
        }
        None
    }
}

impl Chunks {
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut index = 0;
        while index < bytes.len() {
            match self {
                Self::Size(size) => {
                    *self = match (bytes[index], char::from(bytes[index]).to_digit(16)) {
                        (_, Some(digit)) => Self::Size(size.saturating_mul(16).saturating_add(digit.into())),
                        (b'\n', _) => Self::after_size(*size),
                        _ => Self::Extension(*size),
                    };
                    index += 1;
                }
                Self::Extension(size) => {
                    index += memchr(b'\n', &bytes[index..])? + 1;
                    *self = Self::after_size(*size);
                }
                Self::Data(left) => {
                    index += skip(left, &bytes[index..])?;
                    *self = Self::Size(0);
                }
                Self::Trailers(trailer) => return trailer.end_in(&bytes[index..]).map(|end| index + end),
            }
        }
        None
    }

    fn after_size(size: u64) -> Self {
        if size == 0 { Self::Trailers(Trailer::Start) } else { Self::Data(size.saturating_add(2)) }
    }
}

impl Trailer {
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            *self = match (*self, byte) {
                (Self::Ending, b'\n') => return Some(index + 1),
                (Self::Returned, b'\n') => Self::Start,
                (Self::Start, b'\r') => Self::Ending,
                (Self::Within, b'\r') => Self::Returned,
                _ => Self::Within,
            };
        }
        None
    }
}
