//! Each link of a document leads to a file, and to a heading in it.

use std::{fs, path::Path};

use crate::texts::{anchor, documents, root};

/// Returns the text without its fenced blocks: what is in them is no link and no heading.
fn without_fences(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns the target of each link.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let rests = text.split("](").skip(1);
    rests.filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Returns whether a link of this document leads somewhere.
fn is_sound(document: &Path, link: &str) -> bool {
    if link.starts_with("https://") {
        return true;
    }
    let (file, wanted) = link.split_once('#').unwrap_or((link, ""));
    let path = if file.is_empty() {
        root().join(document)
    } else {
        root().join(document).with_file_name(file)
    };
    if wanted.is_empty() {
        return path.exists();
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = without_fences(&text);
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    headings.any(|heading| anchor(heading) == wanted)
}

#[test]
fn each_link_of_a_document_leads_to_a_file_and_a_heading() {
    let mut count = 0;
    for (document, text) in documents() {
        for link in links(&without_fences(&text)) {
            count += 1;
            assert!(is_sound(&document, link), "{}: {link}", document.display());
        }
    }
    assert!(count >= 200, "{count} links are found");
}
