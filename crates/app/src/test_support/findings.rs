//! Assertions about the findings of a diagnosis.

use crate::{Finding, Verdict};

/// Asserts the verdict about a subject, and that its finding or its advice contains the text. Returns the finding.
///
/// # Panics
/// If they do not.
#[track_caller]
pub fn assert_finding<'a>(
    findings: &'a [Finding],
    subject: &str,
    verdict: Verdict,
    text: &str,
) -> &'a Finding {
    let finding = findings.iter().find(|finding| finding.subject == subject);
    let finding = finding.unwrap_or_else(|| panic!("no {subject}: {findings:#?}"));
    assert_eq!(finding.verdict, verdict, "{findings:#?}");
    assert_eq!(
        finding.advice.is_none(),
        verdict == Verdict::Ok,
        "{finding:?}"
    );
    assert!(
        format!("{} {:?}", finding.found, finding.advice).contains(text),
        "{text}: {finding:?}"
    );
    finding
}

/// Returns the subjects whose verdict is not `ok`.
#[must_use]
pub fn conspicuous(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .filter(|finding| finding.verdict != Verdict::Ok)
        .map(|finding| finding.subject)
        .collect()
}
