//! Links and relative references in headers, resolved as by a client.

use animal_store_test_servers::Response;

/// The target of the `Link` header for this relation, or `None` without the header.
#[track_caller]
pub(crate) fn target(response: &Response, relation: &str) -> Option<String> {
    let link = response.header("Link")?;
    let target = link.strip_prefix('<').and_then(|link| link.strip_suffix(&format!(">; rel=\"{relation}\"")));
    Some(target.unwrap_or_else(|| panic!("{link} is no {relation} link")).to_owned())
}

/// Resolves a relative reference in the response to `base` to a path and query (RFC 3986, section 5.2).
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    assert!(!reference.starts_with('/') && !reference.contains(':'), "{reference} is not relative");
    let path = base.split('?').next().expect("a path");
    if reference.starts_with('?') {
        return format!("{path}{reference}");
    }
    let mut segments: Vec<_> = path.split('/').collect();
    segments.pop();
    for segment in reference.split('/') {
        if segment == ".." {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    segments.join("/")
}
