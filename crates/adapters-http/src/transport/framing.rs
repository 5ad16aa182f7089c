//! Finds the end of each section of a request in the bytes of its connection (RFC 9112).
//!
//! This is not a parser: actix parses and refuses malformed requests. The ends have to be right only for requests that
//! actix accepts.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// An incomplete section of a request, with the progress of the search for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Head(HeadState),
    /// A body with this many bytes left.
    Body(u64),
    ChunkedBody {
        state: ChunkState,
        /// Sum of the sizes of the chunks up to here.
        announced: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadState {
    /// Before the first line. Empty lines do not count here (RFC 9112, section 2.2).
    Start,
    RequestLine,
    /// In a later line.
    Line,
    /// After the line feed of a line.
    LineFeed,
    /// After that line feed and a carriage return.
    CarriageReturn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// In the size of a chunk, with its value up to here.
    Size(u64),
    /// After the size of a chunk, on the same line.
    Extension(u64),
    /// In the data of a chunk, with this many bytes left, its line end included.
    Data(u64),
    Trailers(TrailerState),
}

/// Unlike in a head, only a carriage return ends the line of a trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrailerState {
    LineStart,
    Line,
    CarriageReturn,
    /// After the carriage return of an empty line.
    EmptyLine,
}

impl Section {
    pub(super) const HEAD: Self = Self::Head(HeadState::Start);
    pub(super) const CHUNKED_BODY: Self = Self::ChunkedBody { state: ChunkState::Size(0), announced: 0 };

    /// Returns how many of the next bytes belong to the section, or `None` if all of them belong to it and it does not
    /// end.
    pub(super) fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Head(state) => state.end_in(bytes),
            Self::Body(left) => skip(left, bytes),
            Self::ChunkedBody { state, announced } => state.end_in(bytes, announced),
        }
    }
}

/// Subtracts the length of these bytes from `left`. Returns how many of them belong to the section if it ends among
/// them.
fn skip(left: &mut u64, bytes: &[u8]) -> Option<usize> {
    let end = usize::try_from(*left).ok().filter(|&end| end <= bytes.len());
    *left -= end.unwrap_or(bytes.len()) as u64;
    end
}

impl HeadState {
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes.iter();
        while let Some(byte) = rest.next() {
            *self = match (*self, byte) {
                (Self::LineFeed | Self::CarriageReturn, b'\n') => return Some(bytes.len() - rest.len()),
                (Self::Start, b'\r' | b'\n') => Self::Start,
                (Self::LineFeed, b'\r') => Self::CarriageReturn,
                (Self::RequestLine | Self::Line, b'\n') => Self::LineFeed,
                (state, _) => {
                    // In a line, only its end matters.
                    rest = rest.as_slice()[memchr(b'\n', rest.as_slice()).unwrap_or(rest.len())..].iter();
                    if matches!(state, Self::Start | Self::RequestLine) { Self::RequestLine } else { Self::Line }
                }
            };
        }
        None
    }
}

impl ChunkState {
    fn end_in(&mut self, bytes: &[u8], announced: &mut u64) -> Option<usize> {
        let mut index = 0;
        while index < bytes.len() {
            match self {
                Self::Size(size) => {
                    *self = match char::from(bytes[index]).to_digit(16) {
                        Some(digit) => Self::Size(size.saturating_mul(16).saturating_add(digit.into())),
                        // Its last line feed follows: actix refuses a size that a line feed without `\r` ends.
                        None => Self::Extension(*size),
                    };
                    index += 1;
                }
                Self::Extension(size) => {
                    index += memchr(b'\n', &bytes[index..])? + 1;
                    *self = Self::after_size(*size, announced);
                }
                Self::Data(left) => {
                    index += skip(left, &bytes[index..])?;
                    *self = Self::Size(0);
                }
                Self::Trailers(state) => return state.end_in(&bytes[index..]).map(|end| index + end),
            }
        }
        None
    }

    fn after_size(size: u64, announced: &mut u64) -> Self {
        *announced = announced.saturating_add(size);
        if size == 0 { Self::Trailers(TrailerState::LineStart) } else { Self::Data(size.saturating_add(2)) }
    }
}

impl TrailerState {
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            *self = match (*self, byte) {
                (Self::EmptyLine, b'\n') => return Some(index + 1),
                (Self::CarriageReturn, b'\n') => Self::LineStart,
                (Self::LineStart, b'\r') => Self::EmptyLine,
                (Self::Line, b'\r') => Self::CarriageReturn,
                _ => Self::Line,
            };
        }
        None
    }
}
