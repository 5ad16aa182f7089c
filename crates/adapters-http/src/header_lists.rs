//! Headers that are lists.

use actix_web::http::header::{HeaderMap, HeaderName};

/// Returns the elements of all headers of this name. Empty ones do not count (RFC 9110, section 5.6.1.2). A comma in a
/// quoted string separates elements, too: a quotation mark of a client must not hide the comma of a proxy.
pub(crate) fn elements(
    headers: &HeaderMap,
    name: HeaderName,
) -> impl DoubleEndedIterator<Item = &[u8]> {
    let lines: Vec<_> = headers.get_all(name).collect();
    lines
        .into_iter()
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}
