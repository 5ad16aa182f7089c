//! Findings as text and as JSON.

use std::fmt::Write;

use animal_store_app::{Finding, Verdict};
use serde_json::{Value, json};

/// A line per finding, and a line for its advice.
pub(super) fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Finding { subject, verdict, found, advice } in findings {
        let _ = writeln!(text, "{:7}  {subject:width$}  {found}", verdict.as_str());
        if let Some(advice) = advice {
            let _ = writeln!(text, "{:7}  {:width$}  -> {advice}", "", "");
        }
    }
    text
}

/// A document with the worst verdict and all findings.
pub(super) fn json(findings: &[Finding]) -> serde_json::Result<String> {
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
    let findings: Vec<Value> = findings
        .iter()
        .map(|Finding { subject, verdict, found, advice }| {
            json!({ "subject": subject, "verdict": verdict.as_str(), "found": found, "advice": advice })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&json!({ "verdict": worst.as_str(), "findings": findings }))? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> [Finding; 2] {
        [Finding::ok("http.listen", "127.0.0.1:8080"), Finding::error("postgres.fsync", "off", "set fsync = on")]
    }

    #[test]
    fn the_text_has_aligned_columns() {
        assert_eq!(
            text(&findings()),
            "ok       http.listen     127.0.0.1:8080\n\
             error    postgres.fsync  off\n\
             \x20                        -> set fsync = on\n"
        );
    }

    #[test]
    fn the_json_document_has_the_worst_verdict_and_all_findings() {
        let document: Value = serde_json::from_str(&json(&findings()).unwrap()).unwrap();
        assert_eq!(
            document,
            json!({ "verdict": "error", "findings": [
                { "subject": "http.listen", "verdict": "ok", "found": "127.0.0.1:8080", "advice": null },
                { "subject": "postgres.fsync", "verdict": "error", "found": "off", "advice": "set fsync = on" },
            ] })
        );
    }
}
